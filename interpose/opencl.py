"""The wrappers of OpenCL's functions, as a layer of its loader."""
import re
import sys

import arguments
from prototypes import Function, preprocess, write_numbers


def read_functions(table, text):
    """All functions of the header by name, and the names in the order of the loader's table."""
    prefix = table['prefix']
    name = rf'({prefix}[A-Z]\w*)'
    found = {}
    # typedefs first: prototypes, which name their arguments, take their place
    for pattern in (rf'typedef\s+([\w\s\*]+?)\(\s*\*\s*{table["typedef_prefix"]}{name}\s*\)\s*\(([^;]*)\)\s*;',
                    rf'typedef\s+([\w\s\*]+?)\b{name}_t\s*\(([^;]*)\)\s*;',
                    rf'typedef\s+([\w\s\*]+?)\(\s*\*\s*{name}_fn\s*\)\s*\(([^;]*)\)\s*;',
                    rf'extern\s+([\w\s\*]+?)\b{name}\s*\(([^;]*)\)\s*;'):
        for returns, function, arguments in re.findall(pattern, text):
            found[function] = Function(function, returns, arguments)
    struct = re.search(rf'struct\s+{table["dispatch"]}\s*\{{(.*?)\}}', text, re.S).group(1)
    # "cl_api_clFoo clFoo;", in newer headers "clFoo_t *clFoo;"
    order = re.findall(rf'\b{name}\s*;', struct)
    if not order:
        sys.exit(f'{table["header"]}: the loader\'s table (struct {table["dispatch"]}) is of a form that is not known')
    return found, [f for f in order if f in found]


def body(function, table, target, call, types):
    """The wrapper's C code."""
    name, returns = function.name, function.returns
    work = table['work'].get(name)
    hooked = name in table['hooks']
    queue = work.get('queue', 'command_queue') if work else None
    if work and not ('event' in function.names and ('queue' in work or queue in function.names)):
        sys.exit(f'{name}: listed under [work], but has no command_queue and event')
    note = table['notes'].get(name)
    real = f'{table["hook_prefix"]}{name}' if hooked else f'noted_{name}' if note else f'{target}.{name}'
    assign, give = ('', '') if returns == 'void' else ('ret = ', 'return ret;')
    if returns == 'cl_int':
        result, flags = 'ret', 'ret < 0 ? XS_CALL_FLAG_FAILED : 0'
    elif 'errcode_ret' in function.names:
        result = '!ret && errcode_ret ? *errcode_ret : 0'
        flags = '!ret ? XS_CALL_FLAG_FAILED : 0'
    else:
        result, flags = '0', '0'
    number = f'FN_{name}'
    lines = arguments.in_code(call, types, table['source']) + arguments.out_code(call, types, table['source'])
    if note:
        good = 'ret >= 0' if returns == 'cl_int' else 'ret'
        lines += [f'static {returns} noted_{name}({function.parameters})', '{', f'\t{returns} ret = {target}.{name}{function.call};', '',
                  f'\tif ({good})', f'\t\t{note};', '\treturn ret;', '}\n']
    lines += [f'static {returns} {table["call"]} wrap_{name}({function.parameters})' if work else
              f'static __attribute__((noinline)) {returns} record_{name}({function.parameters})', '{']
    lines.append(f'\tstruct {"xs_cl_work work" if work else "xs_call call"};')
    if assign:
        lines.append(f'\t{returns} ret;')
    straight = f'{real}{function.call};'
    # the event may be redirected: what the application gave is kept
    given = re.sub(r'\bevent\b', 'given', function.call[1:-1]) if work else function.call[1:-1]
    given = f', {given}' if given else ''
    if work:
        lines.append('\tcl_event *given = event;')
    lines.append('')
    if work:
        lines.append(f'\tif (!xs_cl_enter(&work, {queue}, {number}, XS_WORK_{work["class"]}, &event))')
    else:
        enter = f'xs_call_enter_unpaused(&call, {table["source"]}, {number})'
        wanted = 'xs_cl_kernel_calls' if name in table['kernels'] else 'xs_cl_calls' if hooked or note else None
        lines.append(f'\tif (!{wanted} || !{enter})' if wanted else f'\tif (!{enter})')
    lines.append(f'\t\treturn {straight}' if assign else f'\t{{\n\t\t{straight}\n\t\treturn;\n\t}}')
    of_call = '&work.call' if work else '&call'
    lines += ['\tif (xs_log_calls)', f'\t\tin_{name}({of_call}{given});']
    if work and 'setup' in work:
        lines.append(f'\t{work["setup"]};')
    blocking = [argument for argument in function.names if argument.startswith('blocking')] if work else []
    if blocking:
        lines.append(f'\twork.blocking = {blocking[0]};')
    if work:
        lines.append('\txs_cl_ready(&work);')
    lines.append(f'\t{assign}{real}{function.call};')
    if work:
        failed = 'ret < 0' if returns == 'cl_int' else '!ret'
        # what the application's pointers lead to is looked at when the runtime has accepted them, and not before
        if 'sizes' in work:
            lines += [f'\tif (!({failed}))', f'\t\t{work["sizes"]};']
        bytes_moved = f'{failed} ? 0 : {work["bytes"]}' if 'bytes' in work else '0'
        lines.append(f'\txs_cl_leave(&work, {result}, {failed}, {bytes_moved});')
    else:
        of_work = 'XS_CALL_FLAG_OF_WORK | ' if name in table['kernels'] else ''
        lines.append(f'\txs_call_end(xs_call_header({table["source"]}, {number}, {of_work}({flags})), {result}, &call);')
        if name in table['waits']:
            lines += ['\tif (xs_cl_waits && ret >= 0)', f'\t\t{table["waits"][name]};']
    if arguments.has_values(call, types):
        good = {'cl_int': ' && ret >= 0', 'void': ''}.get(returns, ' && ret')
        value = ', ret' if arguments.returns_value(call) else ''
        lines += [f'\tif (xs_log_calls{good})', f'\t\tout_{name}({of_call}{value}{given});']
    if give:
        lines.append(f'\t{give}')
    lines.append('}\n')
    if not work:
        # apart, so that a paused call saves no registers
        go = 'return ' if assign else ''
        lines += [f'static {returns} {table["call"]} wrap_{name}({function.parameters})', '{',
                  '\tif (__builtin_expect(xs_paused(), 0))', f'\t\t{go}{straight}', '\telse', f'\t\t{go}record_{name}{function.call};', '}\n']
    return '\n'.join(lines)


def shown(argument):
    """numEventsInWaitList: as the API's own tracing extension calls it."""
    words = argument.name.split('_')
    name = words[0] + ''.join(word[:1].upper() + word[1:] for word in words[1:])
    return name, name


def read_calls(table, text, functions, compiler):
    """What the arguments of each function mean, and the types of the header."""
    types = arguments.Types(text)
    flags = arguments.read_defines(arguments.header_files([table['header']], compiler, 'CL'), types, table['not_constants'])
    calls = {}
    for name, function in functions.items():
        call = calls[name] = arguments.Call(function)
        for argument in call.arguments:
            if argument.name in table['inputs']:
                argument.direction = 'in'
        arguments.apply_table(call, types, table)
        arguments.apply_defaults(call, types)
        if call['errcode_ret']:
            call['errcode_ret'].count = None  # the result says it
    return types, flags, calls


def write(table, api, out, compiler):
    """Writes opencl_wrap.c, and the numbers and names of its functions."""
    text = preprocess([table['header']], compiler)
    found, order = read_functions(table, text)
    for section in (table['work'], table['notes'], table['hooks']):
        for name in list(section):
            if name not in found and isinstance(section, dict):
                del section[name]  # an older header does not have it
    extensions = [f for f in sorted(found) if f not in order and f not in table['unsettled']]
    functions = order + extensions
    note = f'/* Made by interpose/generate.py from <{table["header"]}> and {api}.toml. */\n'

    write_numbers(out, api, note, functions)
    types, flags, calls = read_calls(table, text, found, compiler)
    tables = arguments.Tables(types, flags, False, table)
    for f in functions:
        tables.function(calls[f], shown)
    tables.write(out / f'{api}_arguments.c', note, [table['header']], api, functions, calls, 'cl_int')

    code = [note, f'#include "{api}_wrap.h"\n', 'static struct {']
    code += [f'\t{found[f].returns} ({table["call"]} *{f})({found[f].parameters});' for f in extensions]
    code += ['} extension;\n']
    code += [body(found[f], table, 'xs_cl_target', calls[f], types) for f in order]
    code += [body(found[f], table, 'extension', calls[f], types) for f in extensions]
    code += ['void xs_cl_wrap(cl_icd_dispatch *layer, bool all)', '{']
    for f in order:
        needed = f in table['work'] or f in table['hooks']
        wanted = '' if needed else 'if (xs_cl_kernel_calls) ' if f in table['kernels'] else 'if (all) '
        code.append(f'\t{wanted}layer->{f} = wrap_{f};')
    code += ['}\n', 'void *xs_cl_wrap_extension(const char *name, void *real, bool all)', '{']
    for f in extensions:
        condition = '' if any(f in table[section] for section in ('work', 'notes', 'hooks')) else 'all && '
        code += [f'\tif ({condition}!strcmp(name, "{f}")) {{',
                 f'\t\tif (!extension.{f})', f'\t\t\t*(void **)&extension.{f} = real;',
                 f'\t\treturn *(void **)&extension.{f} == real ? (void *)wrap_{f} : real;', '\t}']
    code += ['\treturn real;', '}', '']
    (out / f'{api}_wrap.c').write_text('\n'.join(code))

