"""What the arguments of calls mean, for -c: which values a traced process copies, and how the drain process prints them.

Types come from the preprocessed headers, names of OpenCL's constants from the comments above their #defines, and what Level Zero's
pointers point to from the comments of its prototypes. What the headers do not say stands in <api>.toml, [values] and [arguments].
"""
import re
import subprocess
from pathlib import Path

BASE = {'void': None, 'char': 'INT', 'signed char': 'INT', 'unsigned char': 'UINT', 'short': 'INT', 'unsigned short': 'UINT', 'int': 'INT',
        'unsigned int': 'UINT', 'unsigned': 'UINT', 'long': 'INT', 'unsigned long': 'UINT', 'long long': 'INT', 'unsigned long long': 'UINT',
        'float': 'REAL', 'double': 'REAL', 'size_t': 'UINT', 'intptr_t': 'HEX', 'uintptr_t': 'HEX', '_Bool': 'UINT',
        **{f'{sign}int{bits}_t': 'UINT' if sign else 'INT' for sign in ('', 'u') for bits in (8, 16, 32, 64)}}

RESULTS = ('cl_int', 'ze_result_t', 'cudaError_t', 'CUresult')  # what returns them returns an error code


def split(text, mark):
    """The parts between marks that are not inside brackets of any kind."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in '({[') - (c in ')}]')
        if c == mark and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


class Types:
    """The types of a header: aliases, enums, structs and handles by name; `constants` by the type that they are values of."""

    def __init__(self, text):
        self.aliases, self.enums, self.structs, self.handles, self.constants = {}, {}, {}, set(), {}
        declaration = re.compile(r'\btypedef\s+')
        at = 0
        while match := declaration.search(text, at):
            at = match.end()
            self._typedef(split(text[at:self._end(text, at)], ';')[0])

    @staticmethod
    def _end(text, at):
        depth = 0
        for i in range(at, len(text)):
            depth += (text[i] == '{') - (text[i] == '}')
            if text[i] == ';' and depth == 0:
                return i
        return len(text)

    def _typedef(self, text):
        if '(' in re.sub(r'\{.*\}', '', text, flags=re.S):
            return  # a function's
        if match := re.fullmatch(r'(enum|struct|union)\s*(\w*)\s*\{(.*)\}\s*(\w+)', text, re.S):
            kind, tag, body, name = match.groups()
            if kind == 'enum':
                self.enums[name] = [part.split('=')[0].strip() for part in split(body, ',')]
                self.constants[name] = [n for n in self.enums[name] if not re.search(r'FORCE_UINT32|_CURRENT(_M)?$', n)]
            elif kind == 'struct':
                self.structs[name] = split(body, ';')
        elif match := re.fullmatch(r'(?:struct|enum|union)\s+\w+\s*\*\s*(\w+)', text):
            self.handles.add(match[1])
        elif match := re.fullmatch(r'([\w\s]+?)\s+(\w+)', text):
            self.aliases[match[2]] = ' '.join(match[1].split())

    def struct(self, name):
        """The members of a struct, also by another of its names."""
        while name not in self.structs:
            name = self.aliases[name]
        return self.structs[name]

    def bitfield(self, name):
        while name in self.aliases and name != 'cl_bitfield':
            name = self.aliases[name]
        return name == 'cl_bitfield'

    def base(self, name):
        """The kind of a type in BASE, or 'HANDLE', 'ENUM', 'STRUCT', None: not known."""
        name = ' '.join(word for word in name.split() if word not in ('const', 'volatile', 'signed') or name == 'signed char')
        for _ in range(10):
            if name in BASE:
                return BASE[name]
            if name in self.handles:
                return 'HANDLE'
            if name in self.enums:
                return 'ENUM'
            if name in self.structs:
                return 'STRUCT'
            name = self.aliases.get(name, '')
            name = ' '.join(word for word in name.split() if word != 'signed') if name else ''
        return None


def header_files(headers, compiler, folder):
    """Paths of the files in `folder` that the headers consist of."""
    source = ''.join(f'#include <{header}>\n' for header in headers)
    text = subprocess.run([*compiler, '-M', '-x', 'c', '-'], input=source, text=True, check=True, capture_output=True).stdout
    return [Path(word) for word in text.replace('\\\n', ' ').split() if Path(word).parent.name == folder]


def read_defines(paths, types, not_constants):
    """OpenCL's constants, by the type that the comment above them names; error codes as those of 'result'."""
    flags = set()
    results = types.constants.setdefault('result', ['CL_SUCCESS'])
    for path in paths:
        names = []
        for line in path.read_text(errors='replace').splitlines():
            if match := re.match(r'/\*\s*(cl_\w+)(.*?)\*/', line):
                names = [n for n in re.findall(r'\bcl_\w+', match[1] + match[2]) if n not in not_constants]
                if 'bitfield' in match[2]:
                    flags.update(names)
            elif line.startswith(('/*', ' *', '//')) or (line.startswith('typedef') and names):
                names = []
            elif match := re.match(r'#define\s+(CL_\w+)\s+[-(0-9]', line):
                for name in names:
                    types.constants.setdefault(name, []).append(match[1])
                if re.search(r'\s-\d+$', line.strip()) and match[1] not in results:
                    results.append(match[1])
    return flags | {name for name in types.aliases if types.bitfield(name)}


class Argument:
    """One argument of a function: its name, the name of its type, how many stars, and what is known about what it points to."""

    def __init__(self, declaration, name):
        self.name = name
        text = re.sub(r'\b(const|struct|enum)\b', ' ', declaration)
        self.const = bool(re.match(r'\s*const\b', declaration))
        self.function = '(' in declaration
        text, arrays = re.subn(r'\[.*?\]', ' ', text)
        self.stars = text.count('*') + arrays
        self.type = ' '.join(re.sub(r'\*', ' ', re.sub(rf'\b{name}\b\s*$', '', text)).split())
        self.direction = 'in' if self.const else 'out'
        self.count = None  # C expression: how many values there are; None: they are not looked at
        self.member = None  # C expression: text that a member of the struct points to


class Call:
    """A function's arguments and results."""

    def __init__(self, function):
        self.name, self.returns, self.parameters = function.name, function.returns, function.parameters
        self.names = function.names
        self.arguments = [Argument(d, n) for d, n in zip(split(function.parameters, ','), function.names)]

    def __getitem__(self, name):
        return next((a for a in self.arguments if a.name == name), None)

    @property
    def pointer(self):
        return '*' in self.returns

    def known(self, expression):
        """Are all names in a C expression arguments?"""
        return expression == 'list' or all(word in self.names for word in re.findall(r'\b[a-z_]\w*\b', re.sub(r'\bsizeof\(\w+\)', '', expression)))


def of_pointer(argument, types):
    """The kind of what it points to."""
    if argument.function or argument.stars == 0:
        return None
    if argument.stars == 2:
        return 'HANDLE' if argument.type == 'void' else None
    if argument.stars > 2:
        return None
    if argument.type == 'char':
        return 'TEXT'
    return types.base(argument.type)


def apply_table(call, types, table):
    """[values]: how many values an argument of a name points to; [arguments.<function>]: the same for one function."""
    for argument in call.arguments:
        for where in (table.get('arguments', {}).get(call.name, {}), table.get('values', {})):
            counts = where.get(argument.name)
            for count in [counts] if isinstance(counts, str) else counts or []:
                if call.known(count):
                    argument.count = count
                    break
            if argument.count is not None:
                break


def apply_members(call, table):
    for name, text in table.get('members', {}).get(call.name, {}).items():
        if call[name]:
            call[name].member = text


def is_struct(argument, types):
    """Is it a struct itself, and no pointer to one?"""
    return not argument.stars and not argument.function and types.base(argument.type) == 'STRUCT'


def apply_defaults(call, types):
    """Where nothing else is said: text is read, and one struct, or one value that is to be stored."""
    for argument in call.arguments:
        kind = of_pointer(argument, types)
        if is_struct(argument, types):
            argument.count, argument.direction = '1', 'in'
        if argument.count is not None or kind is None:
            continue
        if kind == 'TEXT':
            argument.count = 'text' if argument.direction == 'in' else None
        elif kind == 'STRUCT' or argument.direction != 'in':
            argument.count = '1'


def read_notes(paths):
    """{function: {argument: (direction, range)}} of Level Zero's headers."""
    notes = {}
    for path in paths:
        for name, body in re.findall(r'ZE_APICALL\s+(ze\w+)\(\s*\n(.*?)\n\s*\);', path.read_text(), re.S):
            body = re.sub(r'\n\s*///<', ' ', body)
            for argument, note in re.findall(r'(\w+)\s*(?:\[\d*\])?\s*,?\s*///<\s*(\[.*)', body):
                direction = re.search(r'\[(in|out|in,\s*out)\]', note)
                count = re.search(r'\[range\(0,\s*([*\w]+)\)\]', note)
                notes.setdefault(name, {})[argument] = (direction and direction[1].replace(' ', ''), count and count[1])
    return notes


def apply_notes(call, notes, types):
    for argument in call.arguments:
        direction, count = notes.get(call.name, {}).get(argument.name, (None, None))
        if direction:
            argument.direction = direction
        if argument.stars != 1 or not count or argument.count is not None:
            continue
        pointer = count.lstrip('*')
        if count.startswith('*') and pointer in call.names:
            argument.count = f'({pointer} ? *{pointer} : 0)'
        elif count in call.names:
            argument.count = count


# ---- the collector's side ----

def checked(expression):
    """The C expression with each *POINTER and POINTER->MEMBER of it read only where that is there."""
    expression = re.sub(r'\b(\w+)->(\w+)\b', r'XS_VALUE_AT(&\1->\2)', expression)
    return re.sub(r'\*([A-Za-z]\w*)', r'XS_VALUE_AT(\1)', expression)


def copying(call, types):
    """Lines of C that copy what the call's pointers point to, after it has succeeded."""
    lines = []
    for i, argument in enumerate(call.arguments):
        kind, count = of_pointer(argument, types), argument.count
        if is_struct(argument, types):
            lines.append(f'\txs_values_one(&values, {i}, &{argument.name}, sizeof({argument.name}));')
            continue
        if count is None or (kind is None and argument.type != 'void'):
            continue
        if count == 'text':
            lines.append(f'\txs_values_text(&values, {i}, {argument.name});')
        elif count == 'list':
            lines.append(f'\txs_values_list(&values, {i}, {argument.name}, sizeof(*{argument.name}));')
        elif argument.type == 'void' and argument.stars == 1:
            lines.append(f'\txs_values_copy(&values, {i}, {argument.name}, 1, {checked(count)});')
        elif count == '1':
            lines.append(f'\txs_values_one(&values, {i}, {argument.name}, sizeof(*{argument.name}));')
        else:
            lines.append(f'\txs_values_copy(&values, {i}, {argument.name}, sizeof(*{argument.name}), {checked(count)});')
        if argument.member:
            lines.append(f'\txs_values_member(&values, {i}, {checked(argument.member)});')
    return lines


def has_values(call, types):
    return bool(copying(call, types)) or returns_value(call)


def returns_value(call):
    """Is what it returns something else than an error code?"""
    return call.returns not in ('void', *RESULTS)


def word(argument, types):
    if argument.function or argument.stars:
        return f'(uint64_t)(uintptr_t){argument.name}'
    kind = types.base(argument.type)
    if kind == 'HANDLE':
        return f'(uint64_t)(uintptr_t){argument.name}'
    if kind == 'REAL':
        return f'xs_word_of_real((double){argument.name})'
    if kind in ('STRUCT', None):
        return '0'
    return f'(uint64_t){argument.name}'


def changed(call, types):
    """Arguments that point to one number that is read and then written: their values before the call follow its arguments."""
    return [a for a in call.arguments if a.direction == 'in,out' and a.count == '1' and a.stars == 1 and of_pointer(a, types) in ('UINT', 'INT')]


def in_code(call, types, source):
    """Writes what the call was given, before it is made."""
    n = len(call.arguments) + len(changed(call, types))
    parameters = ''.join(f', {p}' for p in ([call.parameters] if n else []))
    lines = [f'static void in_{call.name}(struct xs_call *call{parameters})', '{',
             f'\tuint64_t *words = xs_args_begin(XS_FRAME_MARK(), call, {source}, FN_{call.name}, {n});', '',
             '\tif (!words)', '\t\treturn;']
    lines += [f'\twords[{i}] = {word(a, types)};' for i, a in enumerate(call.arguments)]
    lines += [f'\twords[{i}] = xs_word_at(XS_FRAME_MARK(), {a.name}, sizeof(*{a.name}));' for i, a in enumerate(changed(call, types), len(call.arguments))]
    lines += [f'\t(void){a.name};' for a in call.arguments if word(a, types) == '0']
    lines += [f'\txs_args_end(call, {n});', '}', '']
    return lines


def out_code(call, types, source):
    """Writes what it returned and what its pointers point to, after it has succeeded."""
    if not has_values(call, types):
        return []
    parameters = ''.join(f', {p}' for p in ([call.parameters] if call.arguments else []))
    value = f', {call.returns} ret' if returns_value(call) else ''
    lines = [f'static void out_{call.name}(const struct xs_call *call{value}{parameters})', '{',
             '\tstruct xs_values values;', '',
             f'\tif (!xs_values_begin(XS_FRAME_MARK(), &values, call, {source}, FN_{call.name}, {"(uint64_t)(uintptr_t)ret" if value else "0"}))',
             '\t\treturn;']
    body = copying(call, types)
    lines += body
    used = ' '.join(body)
    lines += [f'\t(void){a.name};' for a in call.arguments if not re.search(rf'\b{a.name}\b', used)]
    lines += ['\txs_values_end(&values);', '}', '']
    return lines


# ---- the drain process's side ----

class Tables:
    """<api>_arguments.c: for each function what its arguments are, and their types."""

    def __init__(self, types, flags, hexadecimal, table):
        self.types, self.flags, self.hexadecimal = types, flags, hexadecimal
        self.named, self.names = table['named'], table['names']
        self.lines, self.made, self.number = [], {}, 0

    def constants(self, name):
        rows = []
        for n in self.types.constants[name]:
            row = f'\t{{ (int64_t){n}, "{n}" }},'
            rows += [f'#ifdef {n}', row, '#endif'] if n.startswith('CL_') else [row]
        self.number += 1
        self.lines.append('\n'.join([f'static const struct xs_constant constants_{self.number}[] = {{', *rows, '};']))
        return f'constants_{self.number}, sizeof(constants_{self.number}) / sizeof(constants_{self.number}[0])'

    def flag_enum(self, name):
        """Level Zero: the enum whose values ze_…_flags_t is made of."""
        enum = re.sub(r'flags_t$', 'flag_t', name)
        return enum if enum != name and enum in self.types.constants else None

    def add(self, name, kind, rest='NULL, 0, NULL, 0'):
        self.number += 1
        size = f'sizeof({name})' if name else '0'
        self.lines.append(f'static const struct xs_type type_{self.number} = {{ XS_SHOW_{kind}, {size}, {rest} }};')
        return f'&type_{self.number}'

    def of(self, name, depth=0):
        """A C expression: pointer to the struct xs_type of a type, by value."""
        if (name, depth) in self.made:
            return self.made[name, depth]
        kind = self.types.base(name)
        enum = self.flag_enum(name)
        if enum:
            made = self.add(name, 'FLAGS', self.constants(enum) + ', NULL, 0')
        elif self.types.constants.get(name) and kind in ('ENUM', 'UINT', 'INT', 'HEX'):
            made = self.add(name, 'FLAGS' if name in self.flags else 'ENUM', self.constants(name) + ', NULL, 0')
        elif kind == 'STRUCT' and depth == 0:
            fields = self.fields(name)
            made = self.add(name, 'STRUCT', f'NULL, 0, {fields}') if fields else self.add(name, 'BYTES')
        elif kind == 'STRUCT':
            made = self.add(name, 'BYTES')
        elif kind in ('UINT', 'INT', 'REAL'):
            made = self.add(name, kind)
        elif kind in ('HANDLE', 'HEX', 'ENUM'):
            made = self.add(name, 'HEX')
        else:
            made = 'NULL'
        self.made[name, depth] = made
        return made

    def plain(self, kind):
        if kind not in self.made:
            self.made[kind] = self.add('uint64_t' if kind == 'HEX' else 'char', kind)
        return self.made[kind]

    def fields(self, name):
        """The members of a struct, one level deep; what cannot be read here (a union) is left out."""
        rows = []
        for declaration in self.types.struct(name):
            declaration = declaration.strip()
            match = re.fullmatch(r'(?:const\s+)?(?:struct\s+)?([\w\s]+?)\s*(\**)\s*(?:const\s+)?(\w+)\s*((?:\[[^]]*\])?)', declaration)
            if '{' in declaration or '(' in declaration or not match:
                continue
            kind, stars, member, array = match.groups()
            if stars:
                row = self.plain('HEX')
            elif array and kind.strip() == 'char':
                row = self.plain('TEXT')
            else:
                row = self.of(kind.strip(), 1)
            if row != 'NULL':
                place = f'offsetof({name}, {member})'
                count = f'sizeof((({name} *)0)->{member}) / {"sizeof(char)" if "TEXT" in row else f"sizeof({kind} {stars})"}' if array else '1'
                rows.append(f'\t{{ "{member}", {place}, {count}, {row} }},')
        if not rows:
            return None
        self.number += 1
        self.lines.append(f'static const struct xs_field fields_{self.number}[] = {{\n' + '\n'.join(rows) + '\n};')
        return f'fields_{self.number}, sizeof(fields_{self.number}) / sizeof(fields_{self.number}[0])'

    def argument(self, call, argument, shown):
        kind = of_pointer(argument, self.types)
        direct = self.plain('HEX') if argument.stars or argument.function else self.of(argument.type)
        pointee = 'NULL'
        if argument.count is not None:
            if kind == 'TEXT':
                pointee = self.plain('TEXT')
            elif argument.type == 'void' and argument.stars == 1:
                pointee = self.plain('BYTES')
            elif argument.stars == 2:
                pointee = self.plain('HEX')
            else:
                pointee = self.of(argument.type)
        short, long = shown(argument)
        array = int(argument.count not in (None, '1', 'text'))
        named = int(argument.type in self.named and argument.stars == 0)
        before = changed(call, self.types)
        place = len(call.arguments) + before.index(argument) if argument in before else 0
        return (f'\t{{ "{short}", "{long}", {direct}, {pointee}, {int(argument.direction != "in")}, {array}, {named}, {place} }},')

    def function(self, call, shown):
        rows = [self.argument(call, a, shown) for a in call.arguments]
        if rows:
            self.lines.append(f'static const struct xs_argument arguments_{call.name}[] = {{\n' + '\n'.join(rows) + '\n};')

    def write(self, path, note, includes, api, functions, calls, result, later=None, later_from=0):
        rows = []
        for f in functions:
            call = calls[f]
            arguments = f'arguments_{f}' if call.arguments else 'NULL'
            returns = ('XS_RETURNS_NOTHING' if call.returns == 'void' else 'XS_RETURNS_RESULT' if call.returns in RESULTS
                       else 'XS_RETURNS_POINTER_AND_RESULT' if 'errcode_ret' in call.names else 'XS_RETURNS_POINTER')
            text, handle = (call.names.index(n) + 1 if n in call.names else 0 for n in self.names.get(f, ('', '')))
            words = len(call.arguments) + len(changed(call, self.types))
            rows.append(f'\t{{ {arguments}, {len(call.arguments)}, {words}, {returns}, {int(has_values(call, self.types))}, {text}, {handle} }},')
        head = [note, '#include <stddef.h>', ''] + [f'#include <{name}>' for name in includes] + ['', '#include "functions.h"', '']
        head += ['extern const struct xs_api xs_' + api + '_arguments;', '']
        result_type = self.add(result, 'ENUM', self.constants(self.types.constants.get('result') and 'result' or result) + ', NULL, 0')
        later_type = self.add(later, 'ENUM', self.constants(later) + ', NULL, 0') if later else 'NULL'
        tail = ['static const struct xs_function functions[] = {', *rows, '};', '',
                f'const struct xs_api xs_{api}_arguments = {{ functions, {len(rows)}, {result_type}, {int(self.hexadecimal)}, {later_type}, {later_from} }};', '']
        path.write_text('\n'.join(head + self.lines + tail))
