"""Prototypes of C functions, read from preprocessed headers."""
import re
import subprocess


def preprocess(headers, compiler):
    """The headers' text without comments, macros and attributes."""
    source = ''.join(f'#include <{header}>\n' for header in headers)
    text = subprocess.run([*compiler, '-E', '-P', '-x', 'c', '-'], input=source, text=True, check=True,
                          capture_output=True).stdout
    return re.sub(r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)', '', text)


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
        self.names, self.declarations = [], []
        for i, argument in enumerate(split_arguments(arguments)):
            name = name_of(argument)
            if not name:
                name = f'argument_{i}'
                pointer = re.search(r'\(\s*\*\s*\)', argument)
                argument = (argument[:pointer.start()] + f'(*{name})' + argument[pointer.end():]
                            if pointer else f'{argument} {name}')
            self.declarations.append(' '.join(argument.split()))
            self.names.append(name)
        self.parameters = ', '.join(self.declarations) or 'void'
        self.call = '(' + ', '.join(self.names) + ')'


def write_numbers(out, api, note, functions):
    """<api>_functions.h: function numbers; <api>_names.c: number to name, for the drain process."""
    header = [note, 'enum {'] + [f'\tFN_{f},' for f in functions] + [f'\tFN_{api}_count', '};', '']
    (out / f'{api}_functions.h').write_text('\n'.join(header))
    names = [note, '#include <stdint.h>', f'extern const char *const xs_{api}_names[];',
             f'extern const uint32_t xs_{api}_count;', f'const char *const xs_{api}_names[] = {{']
    names += [f'\t"{f}",' for f in functions] + ['};', f'const uint32_t xs_{api}_count = {len(functions)};', '']
    (out / f'{api}_names.c').write_text('\n'.join(names))
