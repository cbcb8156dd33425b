#!/usr/bin/env python3
"""Writes the wrappers of one API from the API's own header and a small table (<api>.toml).

usage: generate.py TABLE.toml OUT_DIR COMPILER [ARG...]

The installed header is preprocessed and its prototypes are read, so the wrappers fit the API that is there. Written are
<api>_wrap.c (for the collector), <api>_functions.h (function numbers) and <api>_names.c (number to name, for the drain process).
"""
import re
import subprocess
import sys
import tomllib
from pathlib import Path


def split_arguments(text):
    """The arguments of a prototype, split at the commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == '(') - (c == ')')
        if c == ',' and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [] if parts in ([''], ['void']) else parts


def name_of(argument):
    """The name of an argument, or None when the prototype gives only its type."""
    inner = re.search(r'\(\s*\*\s*(\w*)\s*\)', argument)
    if inner:
        return inner.group(1) or None
    plain = re.sub(r'\[.*?\]', '', argument).strip()
    words = re.findall(r'\w+|\*', plain)
    types = [w for w in words if w not in ('const', 'struct', 'unsigned', 'signed')]
    if words[-1] == '*' or len(types) < 2 or re.fullmatch(r'(size_t|cl_\w+|int|char|long|void)', words[-1]):
        return None
    return words[-1]


class Function:
    """One prototype: name, return type, and arguments as declarations and as names."""

    def __init__(self, name, returns, arguments):
        self.name, self.returns = name, ' '.join(returns.split())
        self.names, declarations = [], []
        for i, argument in enumerate(split_arguments(arguments)):
            name = name_of(argument)
            if not name:
                name = f'argument_{i}'
                pointer = re.search(r'\(\s*\*\s*\)', argument)
                argument = (argument[:pointer.start()] + f'(*{name})' + argument[pointer.end():]
                            if pointer else f'{argument} {name}')
            declarations.append(argument)
            self.names.append(name)
        self.parameters = ', '.join(declarations) or 'void'
        self.call = '(' + ', '.join(self.names) + ')'


def read_functions(table, compiler):
    """All functions of the header by name, and the names in the order of the loader's table."""
    source = f'#include <{table["header"]}>\n'
    text = subprocess.run([*compiler, '-E', '-P', '-x', 'c', '-'], input=source, text=True, check=True,
                          capture_output=True).stdout
    text = re.sub(r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)', '', text)
    prefix = table['prefix']
    name = rf'({prefix}[A-Z]\w*)'
    found = {}
    # typedefs first: prototypes, which name their arguments, take their place
    for pattern in (rf'typedef\s+([\w\s\*]+?)\(\s*\*\s*{table["typedef_prefix"]}{name}\s*\)\s*\(([^;]*)\)\s*;',
                    rf'typedef\s+([\w\s\*]+?)\(\s*\*\s*{name}_fn\s*\)\s*\(([^;]*)\)\s*;',
                    rf'extern\s+([\w\s\*]+?)\b{name}\s*\(([^;]*)\)\s*;'):
        for returns, function, arguments in re.findall(pattern, text):
            found[function] = Function(function, returns, arguments)
    struct = re.search(rf'struct\s+{table["dispatch"]}\s*\{{(.*?)\}}', text, re.S).group(1)
    order = re.findall(rf'{table["typedef_prefix"]}{name}\s+\1\s*;', struct)
    return found, [f for f in order if f in found]


def body(function, table, target):
    """The wrapper's C code."""
    name, returns = function.name, function.returns
    work = table['work'].get(name)
    hooked = name in table['hooks']
    if work and not ('event' in function.names and 'command_queue' in function.names):
        sys.exit(f'{name}: listed under [work], but has no command_queue and event')
    real = f'{table["hook_prefix"]}{name}' if hooked else f'{target}.{name}'
    assign, give = ('', '') if returns == 'void' else ('ret = ', 'return ret;')
    if returns == 'cl_int':
        result, flags = 'ret', 'ret < 0 ? XS_FLAG_FAILED : 0'
    elif 'errcode_ret' in function.names:
        result = '!ret && errcode_ret ? *errcode_ret : 0'
        flags = '!ret ? XS_FLAG_FAILED : 0'
    else:
        result, flags = '0', '0'
    number = f'FN_{name}'
    lines = [f'static {returns} {table["call"]} wrap_{name}({function.parameters})', '{']
    lines.append(f'\tstruct {"xs_cl_work work" if work else "xs_call call"};')
    if assign:
        lines.append(f'\t{returns} ret;')
    straight = f'{real}{function.call};'
    lines.append('')
    if work:
        lines.append(f'\tif (!xs_cl_enter(&work, command_queue, {number}, XS_WORK_{work["class"]}, &event))')
    else:
        enter = f'xs_call_enter(&call, {table["source"]}, {number})'
        lines.append(f'\tif (!xs_cl_calls || !{enter})' if hooked else f'\tif (!{enter})')
    lines.append(f'\t\treturn {straight}' if assign else f'\t{{\n\t\t{straight}\n\t\treturn;\n\t}}')
    if work and 'setup' in work:
        lines.append(f'\t{work["setup"]};')
    lines.append(f'\t{assign}{real}{function.call};')
    if work:
        failed = 'ret < 0' if returns == 'cl_int' else '!ret'
        lines.append(f'\txs_cl_leave(&work, {result}, {failed}, {work.get("bytes", "0")});')
    else:
        lines.append(f'\txs_call_end(&call, xs_call_header({table["source"]}, {number}, {flags}), {result});')
    if give:
        lines.append(f'\t{give}')
    lines.append('}\n')
    return '\n'.join(lines)


def main():
    table_path, out, compiler = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    table = tomllib.loads(table_path.read_text())
    api = table_path.stem
    found, order = read_functions(table, compiler)
    for section in (table['work'], table['hooks']):
        for name in list(section):
            if name not in found and isinstance(section, dict):
                del section[name]  # an older header does not have it
    extensions = [f for f in sorted(found) if f not in order]
    functions = order + extensions
    note = f'/* Made by interpose/generate.py from <{table["header"]}> and {table_path.name}. */\n'

    header = [note, 'enum {'] + [f'\tFN_{f},' for f in functions] + [f'\tFN_{api}_count', '};', '']
    (out / f'{api}_functions.h').write_text('\n'.join(header))

    names = [note, '#include <stdint.h>', f'extern const char *const xs_{api}_names[];',
             f'extern const uint32_t xs_{api}_count;', f'const char *const xs_{api}_names[] = {{']
    names += [f'\t"{f}",' for f in functions] + ['};', f'const uint32_t xs_{api}_count = {len(functions)};', '']
    (out / f'{api}_names.c').write_text('\n'.join(names))

    code = [note, f'#include "{api}_wrap.h"\n', 'static struct {']
    code += [f'\t{found[f].returns} ({table["call"]} *{f})({found[f].parameters});' for f in extensions]
    code += ['} extension;\n']
    code += [body(found[f], table, 'xs_cl_target') for f in order]
    code += [body(found[f], table, 'extension') for f in extensions]
    code += ['void xs_cl_wrap(cl_icd_dispatch *layer, bool all)', '{']
    for f in order:
        needed = f in table['work'] or f in table['hooks']
        code.append(f'\t{"" if needed else "if (all) "}layer->{f} = wrap_{f};')
    code += ['}\n', 'void *xs_cl_wrap_extension(const char *name, void *real, bool all)', '{']
    for f in extensions:
        condition = '' if f in table['work'] or f in table['hooks'] else 'all && '
        code += [f'\tif ({condition}!strcmp(name, "{f}")) {{',
                 f'\t\tif (!extension.{f})', f'\t\t\t*(void **)&extension.{f} = real;',
                 f'\t\treturn *(void **)&extension.{f} == real ? (void *)wrap_{f} : real;', '\t}']
    code += ['\treturn real;', '}', '']
    (out / f'{api}_wrap.c').write_text('\n'.join(code))


if __name__ == '__main__':
    main()
