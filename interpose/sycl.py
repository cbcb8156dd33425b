"""What -c shows of the Unified Runtime's calls.

There are no wrappers: the runtime tells a subscriber of each call, with the address of each argument. So there are two functions for each
function of gpu/sycl/ur_abi.h, which take the arguments from there and write what it was given, and what it gave.
"""
import arguments
from prototypes import preprocess, write_numbers
from table import read_functions, shown


def from_addresses(call, types):
    """The names of the two functions, or NULL, and their C code."""
    lines = arguments.in_code(call, types, 'XS_SOURCE_UR') + arguments.out_code(call, types, 'XS_SOURCE_UR')
    values = ', '.join(f'*({argument_type(declaration, name)}*)args[{i}]'
                       for i, (declaration, name) in enumerate(zip(arguments.split(call.parameters, ','), call.names)))
    has_values = arguments.has_values(call, types)
    for way, constant, is_there in (('in', '', True), ('out', 'const ', has_values)):
        if is_there:
            lines += [f'static void {way}_at_{call.name}({constant}struct xs_call *call, void *const *args)', '{',
                      f'\t{way}_{call.name}(call, {values});', '}', '']
    return lines, f'in_at_{call.name}', f'out_at_{call.name}' if has_values else 'NULL'


def argument_type(declaration, name):
    """The declaration without the name at its end."""
    return declaration[:-len(name)].strip() + ' '


def write(table, api, out, compiler):
    """Writes sycl_wrap.c, and the numbers, names and arguments of the functions."""
    text = preprocess([table['header']], compiler)
    functions = read_functions(table, text)
    names = [f.name for f in functions]
    note = f'/* Made by interpose/generate.py from {table["header"]} and {api}.toml. */\n'

    arguments.RESULTS = (*arguments.RESULTS, table['result'])
    types = arguments.Types(text)
    calls = {f.name: arguments.Call(f) for f in functions}
    for call in calls.values():
        arguments.apply_table(call, types, table)
        arguments.apply_defaults(call, types)
    write_numbers(out, api, note, names)
    tables = arguments.Tables(types, {}, False, table)
    for call in calls.values():
        tables.function(call, shown)
    tables.write(out / f'{api}_arguments.c', note, [table['header']], api, names, calls, table['result'])

    code = [note, '#include "call_values.h"', '#include "sycl.h"', '#include "sycl_functions.h"', '#include "ur_abi.h"', '']
    rows = []
    for name in names:
        lines, given, gave = from_addresses(calls[name], types)
        code += lines
        rows.append(f'\t{{ "{name}", {len(calls[name].arguments)}, {given}, {gave} }},')
    code += ['const struct sycl_function sycl_functions[] = {', *rows, '};', '']
    (out / f'{api}_wrap.c').write_text('\n'.join(code))
