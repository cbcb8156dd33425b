"""The wrappers of an API whose loader hands over a table of its functions, to be changed before the application calls them.

<api>.toml: header; prefix of the functions' names; table, the type of the table, whose members have these names; result, the type of
what most functions return, and good, its value for success; hooks, which gpu/<api>/ has a function of its own for.
"""
import re

import arguments
from prototypes import Function, preprocess, write_numbers


def read_functions(table, text):
    """All functions of the header, in its order."""
    pattern = rf'(?:extern\s+)?([A-Za-z_][\w\s\*]*?)\b({table["prefix"]}[A-Z]\w*)\s*\(([^;{{}}]*)\)\s*;'
    return [Function(name, returns, arguments) for returns, name, arguments in re.findall(pattern, text) if 'typedef' not in returns]


def body(function, table, api, call, types):
    """The wrapper's C code."""
    name, returns = function.name, function.returns
    real = f'xs_hook_{name}' if name in table['hooks'] else f'xs_{api}_target.{name}'
    straight = f'{"" if returns == "void" else "return "}{real}{function.call};'
    status = returns == table['result']
    flags = f'ret != {table["good"]} ? XS_CALL_FLAG_FAILED : 0' if status else '0'
    given = f', {function.call[1:-1]}' if function.names else ''
    lines = arguments.in_code(call, types, table['source']) + arguments.out_code(call, types, table['source'])
    lines += [f'static __attribute__((noinline)) {returns} record_{name}({function.parameters})', '{', '\tstruct xs_call call;']
    lines += [] if returns == 'void' else [f'\t{returns} ret;']
    lines += ['', f'\tif (!xs_call_enter_unpaused(&call, {table["source"]}, FN_{name})) {{', f'\t\t{straight}']
    lines += ['\t\treturn;', '\t}'] if returns == 'void' else ['\t}']
    lines += ['\tif (xs_log_calls)', f'\t\tin_{name}(&call{given});', f'\t{"" if returns == "void" else "ret = "}{real}{function.call};']
    lines.append(f'\txs_call_end(xs_call_header({table["source"]}, FN_{name}, {flags}), {"ret" if status else "0"}, &call);')
    if arguments.has_values(call, types):
        value = ', ret' if arguments.returns_value(call) else ''
        good = f' && ret == {table["good"]}' if status else ''
        lines += [f'\tif (xs_log_calls{good})', f'\t\tout_{name}(&call{value}{given});']
    lines += ['}', ''] if returns == 'void' else ['\treturn ret;', '}', '']
    # apart, so that a paused call saves no registers
    again = f'{"" if returns == "void" else "return "}record_{name}{function.call};'
    lines += [f'static {returns} wrap_{name}({function.parameters})', '{', '\tif (__builtin_expect(xs_paused(), 0))', f'\t\t{straight}',
              '\telse', f'\t\t{again}', '}', '']
    return '\n'.join(lines)


def shown(argument):
    return argument.name, argument.name


def write(table, api, out, compiler):
    """Writes <api>_wrap.c, and the numbers, names and arguments of its functions."""
    text = preprocess([table['header']], compiler)
    functions = read_functions(table, text)
    names = [f.name for f in functions]
    note = f'/* Made by interpose/generate.py from <{table["header"]}> and {api}.toml. */\n'

    arguments.RESULTS = (*arguments.RESULTS, table['result'])
    types = arguments.Types(text)
    calls = {f.name: arguments.Call(f) for f in functions}
    for call in calls.values():
        arguments.apply_table(call, types, table)
        arguments.apply_defaults(call, types)
    write_numbers(out, api, note, names)
    tables = arguments.Tables(types, {}, False, {'named': [], 'names': {}, **table})
    for call in calls.values():
        tables.function(call, shown)
    tables.write(out / f'{api}_arguments.c', note, [table['header']], api, names, calls, table['result'])

    code = [note, f'#include "xs_{api}.h"', f'#include "{api}_functions.h"', '#include "call_values.h"\n', f'{table["table"]} xs_{api}_target;\n']
    code += [body(f, table, api, calls[f.name], types) for f in functions]
    code += [f'void xs_{api}_wrap({table["table"]} *functions, bool all)', '{', f'\txs_{api}_target = *functions;']
    code += [f'\t{"" if name in table["hooks"] else "if (all) "}functions->{name} = wrap_{name};' for name in names] + ['}', '']
    (out / f'{api}_wrap.c').write_text('\n'.join(code))
