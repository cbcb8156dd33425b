"""Numbers and names of CUDA's functions, and what a call of each means, from the headers of CUPTI.

CUPTI calls us for a function by its number (its callback id), of which the runtime and the driver have a range each. A function is
numbered from 0 here: first what has no function (cuda.toml, works), then the runtime's, then the driver's.
"""
import re

import arguments
from prototypes import Function, preprocess

HEADERS = ['cuda_runtime_api.h', 'cuda.h']
PARAMETERS = {'runtime': 'generated_cuda_runtime_api_meta.h', 'driver': 'generated_cuda_meta.h'}
RETURNS = {'runtime': 'cudaError_t', 'driver': 'CUresult'}
PARTS = {'runtime': ('cupti_runtime_cbid.h', 'CUPTI_RUNTIME_TRACE_CBID_'), 'driver': ('cupti_driver_cbid.h', 'CUPTI_DRIVER_TRACE_CBID_')}


def read_part(header, prefix, compiler):
    """The functions of a part, by number; None: no function has it."""
    found = {int(number): name for name, number in re.findall(rf'{prefix}(\w+)\s*=\s*(\d+)', preprocess([header], compiler))
             if name not in ('INVALID', 'SIZE', 'FORCE_INT')}
    return [found.get(i) for i in range(max(found) + 1)]


def plain(name):
    """As the application calls it: without the version of the runtime's functions."""
    return re.sub(r'_v\d{4,}$', '', name)


def meaning(name, table):
    """A function without the ends of its name that tell its variants apart."""
    bare = re.sub(r'(_v\d+)?(_pt[sd][sz])?$', '', plain(name))

    def among(patterns):
        return any(re.fullmatch(pattern, bare) for pattern in patterns)

    if among(table['launches']):
        return 'XS_CUDA_ENQUEUES | XS_CUDA_LAUNCHES'
    if among(table['capture_begins']):
        return 'XS_CUDA_KERNELS | XS_CUDA_CAPTURE_BEGINS'
    if among(table['capture_ends']):
        return 'XS_CUDA_KERNELS | XS_CUDA_CAPTURE_ENDS'
    if among(table['waits']):
        return 'XS_CUDA_KERNELS | XS_CUDA_WAITS'
    if among(table['graphs']):
        return 'XS_CUDA_ENQUEUES | XS_CUDA_GRAPHS'
    if among(table['sized']):
        return 'XS_CUDA_ENQUEUES | XS_CUDA_SIZED'
    return 'XS_CUDA_ENQUEUES' if among(table['enqueues']) else 'XS_CUDA_KERNELS' if among(table['kernels']) else '0'


def write_numbers(path, note, parts, works):
    lines = [note, f'#define XS_CUDA_runtime_FIRST {works}u', f'#define XS_CUDA_runtime_COUNT {len(parts["runtime"])}u',
             f'#define XS_CUDA_driver_FIRST {works + len(parts["runtime"])}u', f'#define XS_CUDA_driver_COUNT {len(parts["driver"])}u', '']
    path.write_text('\n'.join(lines))


def write_names(path, note, parts, works):
    names = works + [plain(name or '(unknown)') for part in parts.values() for name in part]
    lines = [note, '#include <stdint.h>', 'extern const char *const xs_cuda_names[];', 'extern const uint32_t xs_cuda_count;',
             'const char *const xs_cuda_names[] = {', *[f'\t"{name}",' for name in names], '};',
             f'const uint32_t xs_cuda_count = {len(names)};', '']
    path.write_text('\n'.join(lines))


def write_uses(path, note, parts, table):
    lines = [note, '#include "xs_cuda.h"', '']
    for part, functions in parts.items():
        lines += [f'const uint8_t xs_cuda_{part}_uses[XS_CUDA_{part}_COUNT] = {{']
        lines += [f'\t[{i}] = {use},' for i, name in enumerate(functions) if name and (use := meaning(name, table)) != '0']
        lines += ['};', '']
    failures = ' || '.join(f'result == {number}' for number in table['not_failures'])
    lines += ['bool xs_cuda_failed(int result)', '{', f'\treturn result && !({failures});', '}', '']
    path.write_text('\n'.join(lines))


# ---- -c ----

def read_types(compiler):
    """The types of both APIs, and those of the runtime that have a tag alone: what calls them by it in C, too."""
    text = preprocess(HEADERS, compiler)
    text = re.sub(r'\bunsigned int x, y, z;', 'unsigned int x; unsigned int y; unsigned int z;', text)
    tags = sorted(set(re.findall(r'(?<!typedef )\b(enum|struct)\s+(\w+)\s*\{[^{}]*\}\s*;', text)))
    text = re.sub(r'(?<!typedef )\b(enum|struct)\s+(\w+)\s*(\{[^{}]*\})\s*;', r'typedef \1 \2 \3 \2;', text)
    return arguments.Types(text), [f'typedef {kind} {tag} {tag};' for kind, tag in tags] + ['']


def read_calls(part, functions, types, table, compiler):
    """What the arguments of each function mean, by its name: from the structures in which CUPTI hands them over."""
    text = preprocess([PARAMETERS[part]], compiler)
    calls = {}
    for body, name in re.findall(r'typedef\s+struct\s+\w+\s*\{([^{}]*)\}\s*(\w+)_params\s*;', text):
        if name not in functions:
            continue
        fields = [re.sub(r'^unsigned (\w+)$', r'unsigned int \1', ' '.join(field.split())) for field in arguments.split(body, ';')]
        if any('(' in field for field in fields):
            continue
        call = calls[name] = arguments.Call(Function(name, RETURNS[part], ', '.join(fields)))
        several = any(not a.stars and re.fullmatch(table['counts'], a.name) for a in call.arguments)
        arguments.apply_table(call, types, table)
        arguments.apply_defaults(call, types)
        for argument in call.arguments:
            # nobody knows how many there are, or whether it is memory of the host
            if argument.stars and argument.count != 'text' and (several or argument.name in table['unread']):
                argument.count = None
    return calls


def shown(argument):
    return argument.name, argument.name


def dispatch(kind, part, functions, calls, types, parameters, given):
    """A function that finds the structure of a call's arguments by its number."""
    lines = [f'static void {kind}_{part}({parameters})', '{', '\tswitch (id) {']
    for i, name in enumerate(functions):
        if name not in calls or (kind == 'out' and not arguments.has_values(calls[name], types)):
            continue
        names = ''.join(f', p->{a.name}' for a in calls[name].arguments)
        lines.append(f'\tcase {i}: {{')
        if names:
            lines.append(f'\t\tconst {name}_params *p = parameters;\n')
        lines += [f'\t\t{kind}_{name}({given}{names});', '\t\tbreak;', '\t}']
    return lines + ['\tdefault:', '\t\tbreak;', '\t}', '}', '']


def write_calls(path, note, parts, calls, types, tags, table):
    """cuda_calls.c: copies arguments, for -c."""
    lines = [note, '#include "call_values.h"', '#include "xs_cuda.h"', '', *tags]
    for part, functions in parts.items():
        lines += [f'#define FN_{name} (XS_CUDA_{part}_FIRST + {i}u)' for i, name in enumerate(functions) if name in calls[part]]
        for name in calls[part]:
            lines += arguments.in_code(calls[part][name], types, table['source'])
            lines += arguments.out_code(calls[part][name], types, table['source'])
        lines += dispatch('in', part, functions, calls[part], types, 'struct xs_call *call, uint32_t id, const void *parameters', 'call')
        lines += dispatch('out', part, functions, calls[part], types, 'const struct xs_call *call, uint32_t id, const void *parameters', 'call')
    for kind, const in (('in', ''), ('out', 'const ')):
        lines += [f'void xs_cuda_{kind}({const}struct xs_call *call, bool runtime, uint32_t id, const void *parameters)', '{',
                  '\tif (!parameters)', '\t\treturn;', '\tif (runtime)', f'\t\t{kind}_runtime(call, id, parameters);', '\telse',
                  f'\t\t{kind}_driver(call, id, parameters);', '}', '']
    path.write_text('\n'.join(lines))


def write_arguments(path, note, api, parts, calls, types, tags, table):
    """cuda_arguments.c: what they mean, for the drain process."""
    tables = arguments.Tables(types, set(), False, table)
    tables.lines += tags
    functions, known = [], {}
    empty = Function('none', 'cudaError_t', '')
    for n, name in enumerate(table['works'] + [name for part in parts.values() for name in part]):
        unique = name if n >= len(table['works']) and name else f'none_{n}'
        call = next((c[name] for c in calls.values() if n >= len(table['works']) and name in c), None)
        functions.append(unique)
        known[unique] = call or arguments.Call(empty)
        if call:
            tables.function(call, shown)
    tables.write(path, note, ['cupti.h'], api, functions, known, 'cudaError', 'CUresult', len(table['works']) + len(parts['runtime']))


def write(table, api, out, compiler):
    """Writes cuda_wrap.c (what calls mean), cuda_calls.c (their arguments), and the numbers and names of the functions."""
    note = f'/* Made by interpose/generate.py from the headers of CUPTI and {api}.toml. */\n'
    parts = {part: read_part(header, prefix, compiler) for part, (header, prefix) in PARTS.items()}
    types, tags = read_types(compiler)
    calls = {part: read_calls(part, functions, types, table, compiler) for part, functions in parts.items()}
    write_numbers(out / f'{api}_functions.h', note, parts, len(table['works']))
    write_names(out / f'{api}_names.c', note, parts, table['works'])
    write_uses(out / f'{api}_wrap.c', note, parts, table)
    write_calls(out / f'{api}_calls.c', note, parts, calls, types, tags, table)
    write_arguments(out / f'{api}_arguments.c', note, api, parts, calls, types, tags, table)
