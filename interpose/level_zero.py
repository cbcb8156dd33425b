"""The wrappers of Level Zero's functions, as a layer of its loader.

The loader gives a layer each of its tables of functions, filled; the layer keeps the entries and puts its own in their place.
"""
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import arguments
from prototypes import Function, preprocess, write_numbers


class Table:
    """A table of the loader: its name (zeCommandList), its type, and its entries as (member, function)."""

    def __init__(self, name, kind, entries):
        self.name, self.kind, self.entries = name, kind, entries


def read_tables(text):
    structs = dict((name, body) for body, name in
                   re.findall(r'typedef\s+struct\s+\w+\s*\{([^{}]*)\}\s*(\w+_dditable_t)\s*;', text))
    tables = []
    for api, name, kind in re.findall(r'\b(ze[a-z]?)Get(\w+)ProcAddrTable\s*\(\s*ze_api_version_t\s+version\s*,\s*(\w+)\s*\*',
                                      text):
        entries = [(member, prefix + function) for prefix, function, member in
                   re.findall(r'\b(ze[a-z]?)_pfn(\w+?)_t\s+(pfn\w+)\s*;', structs[kind])]
        tables.append(Table(api + name, kind, entries))
    return tables


def read_functions(text):
    return {name: Function(name, returns, arguments) for returns, name, arguments in
            re.findall(r'\b(\w+)\s+(ze[a-z]?[A-Z]\w*)\s*\(([^;{}]*)\)\s*;', text)
            if not name.endswith('ProcAddrTable')}


def of_kernels(name, table):
    """Does the call have to do with kernels: is it in the trace when nothing more than these is wanted?"""
    return any(re.fullmatch(pattern, name) for pattern in table['kernels'])


def wrapper(function, target, table, call, types):
    """The wrapper's C code: what is done before the call, the call, its record, what is done after it."""
    name, number = function.name, f'FN_{function.name}'
    work = table['work'].get(name)
    before, after = (f'\tif (xs_ze_device)\n\t\t{table[when][name]};' if name in table[when] else ''
                     for when in ('before', 'after'))
    waits = 'began' in after
    if work and not ('hCommandList' in function.names and 'hSignalEvent' in function.names):
        sys.exit(f'{name}: listed under [work], but has no hCommandList and hSignalEvent')
    real = (f'xs_hook_{name}' if name in table['hooks'] else target) + function.call
    # the event may be another one: what the application gave is shown
    given = re.sub(r'\bhSignalEvent\b', 'given', function.call[1:-1]) if work else function.call[1:-1]
    given = f', {given}' if given else ''
    show_in = f'if (xs_log_calls)\n\t\t\tin_{name}({"&work.call" if work else "&call"}{given});'
    show_out = (f'if (xs_log_calls && ret == ZE_RESULT_SUCCESS)\n\t\t\tout_{name}({"&work.call" if work else "&call"}{given});'
                if arguments.has_values(call, types) else '')
    lines = arguments.in_code(call, types, table['source']) + arguments.out_code(call, types, table['source'])
    lines += [f'static ze_result_t ZE_APICALL wrap_{name}({function.parameters})', '{',
              f'\tstruct {"xs_ze_work work" if work else "xs_call call"};', '\tze_result_t ret;',
              '\tze_event_handle_t given = hSignalEvent;' if work else '', '\tuint64_t began = 0;' if waits else '', '', before]
    enter = f'xs_call_enter(&call, {table["source"]}, {number})'
    if work:
        lines += ['\txs_ze_capture_spreads(hCommandList, hSignalEvent, numWaitEvents, phWaitEvents);',
                  f'\tif (!xs_ze_enter(&work, hCommandList, {number}, XS_WORK_{work["class"]}, &hSignalEvent))',
                  f'\t\treturn {real};', f'\t{show_in}',
                  f'\tif (work.node)\n\t\t{work["setup"]};' if 'setup' in work else '',
                  '\txs_ze_ready(&work);', f'\tret = {real};', '\tret = xs_ze_leave(&work, ret);',
                  '\txs_ze_capture_spread(hCommandList, ret);', f'\t{show_out}' if show_out else '', '\treturn ret;']
    else:
        wanted = ('xs_ze_kernel_calls && ' if of_kernels(name, table) else
                  'xs_ze_calls && ' if name in table['hooks'] or before or after else '')
        flags = 'XS_CALL_FLAG_OF_WORK | xs_ze_failed(ret)' if of_kernels(name, table) else 'xs_ze_failed(ret)'
        if waits:  # a question that was answered with no has to do with nothing
            flags = flags.replace('XS_CALL_FLAG_OF_WORK', '(ret == ZE_RESULT_NOT_READY ? 0 : XS_CALL_FLAG_OF_WORK)')
        end = f'xs_call_end(xs_call_header({table["source"]}, {number}, {flags}), ret, &call);'
        if waits:
            end = f'if (!xs_ze_calls && ret == ZE_RESULT_NOT_READY)\n\t\t\t(void)xs_call_leave(&call);\n\t\telse\n\t\t\t{end}'
        lines += [f'\tif ({wanted}{enter}) {{', f'\t\t{show_in}', f'\t\tret = {real};',
                  f'\t\t{end}', '\t\tbegan = xs_ze_waits ? call.tick : 0;' if waits else '',
                  f'\t\t{show_out}' if show_out else '', '\t} else {', f'\t\tret = {real};', '\t}', after, '\treturn ret;']
    return '\n'.join(line for line in lines if line) + '\n}\n'


def needed(name, table):
    """Is the wrapper in its place when only device work is wanted?"""
    return any(name in table[section] for section in ('hooks', 'work', 'before', 'after')) or of_kernels(name, table)


class Entry:
    """An entry of a table: its number, the function, and since which version of the API every loader has it there ((1, 4); None: the headers')."""

    def __init__(self, number, function, since):
        self.number, self.function, self.since = number, function, since


def all_entries(tables, table):
    """What may be touched, by table; a table's place here is its number. The places that we list count before the headers', which may have another order."""
    places, in_1_4 = table['newer']['places'], table['tables']['entries']
    found = {t.name: [Entry(i, f, (1, 4) if i < in_1_4.get(t.name, 0) else None)
                      for i, (_, f) in enumerate(t.entries) if f not in places] for t in tables}
    for f, (name, number, *since) in places.items():
        found.setdefault(name, []).append(Entry(number, f, tuple(since)))
    for entries in found.values():
        entries.sort(key=lambda entry: entry.number)
    return found


def write_tables(out, note, tables, functions, table):
    """level_zero_tables.h: the functions below us, and the prototypes of hooks."""
    lines = [note, '#ifndef XS_LEVEL_ZERO_TABLES_H', '#define XS_LEVEL_ZERO_TABLES_H', '']
    lines += [f'#include <{header}>' for header in table['headers']]
    lines += ['', 'struct xs_ze_tables {'] + [f'\t{t.kind} {t.name};' for t in tables]
    lines += ['\tstruct {'] + [f'\t\tze_result_t (ZE_APICALL *{f})({functions[f].parameters});' for f in functions
                              if f not in {name for t in tables for _, name in t.entries}] + ['\t} extension;', '};']
    lines += [f'#define XS_ZE_TABLES {len(all_entries(tables, table))}u', '']
    target = {f: f'xs_ze.{t.name}.{member}' for t in tables for member, f in t.entries}
    for name in filter(functions.get, table['hooks']):
        if name not in table['inline']:
            lines.append(f'ze_result_t xs_hook_{name}({functions[name].parameters});')
        lines.append(f'#define XS_REAL_{name} {target.get(name, "xs_ze.extension." + name)}')
    lines += ['', '#endif', '']
    (out / 'level_zero_tables.h').write_text('\n'.join(lines))


def write_layer(out, note, tables, functions, table):
    """level_zero_layer.c: what the loader looks for in a layer, each one line that calls libxstrace.so."""
    names = list(all_entries(tables, table))
    lines = [note, '#include <stdint.h>', '',
             'int xs_ze_table(uint32_t number, const char *name, uint32_t version, void *entries);', '',
             '#define TABLE(name, number) \\',
             '\t__attribute__((visibility("default"))) int name(uint32_t version, void *entries); \\',
             '\tint name(uint32_t version, void *entries) { return xs_ze_table(number, #name, version, entries); }']
    for name in names + [n for n in table['tables']['later'] if n not in names]:
        get = re.sub(r'^(ze[a-z]?)', r'\1Get', name) + 'ProcAddrTable'
        lines.append(f'TABLE({get}, {names.index(name) if name in names else "UINT32_MAX"})')
    (out / 'level_zero_layer.c').write_text('\n'.join(lines + ['']))


def write_wrap(out, note, tables, functions, table, calls, types):
    """level_zero_wrap.c: the wrappers, and what puts them into a table."""
    code = [note, '#include "level_zero_wrap.h"', '']
    target = {f: f'xs_ze.{t.name}.{member}' for t in tables for member, f in t.entries}
    target.update((f, f'xs_ze.extension.{f}') for f in functions if f not in target)
    code += [wrapper(functions[f], target[f], table, calls[f], types) for f in functions]
    code += ['#ifdef ZE_API_VERSION_CURRENT_M', '#define HEADER_VERSION ZE_API_VERSION_CURRENT_M', '#else',
             '#define HEADER_VERSION ZE_API_VERSION_CURRENT', '#endif', '']
    for name, entries in all_entries(tables, table).items():
        code += [f'static void put_{name}(uint32_t version, void **entries, bool all, struct xs_ze_place *place)', '{']
        for version in table['tables']['reordered'].get(name, []):
            code += [f'\tif (version == (uint32_t)ZE_MAKE_VERSION({version[0]}, {version[1]}))', '\t\treturn;']
        for entry in entries:
            f = entry.function
            if f not in functions:
                continue
            since = 'ZE_MAKE_VERSION({}, {})'.format(*entry.since) if entry.since else 'HEADER_VERSION'
            ours = f'(void *)wrap_{f}' if needed(f, table) else f'all ? (void *)wrap_{f} : NULL'
            code += [f'\tif (version >= (uint32_t){since})',
                     f'\t\txs_ze_put(place, entries + {entry.number}, (void **)&{target[f]}, {ours});']
        code += ['\t(void)all;', '}', '']
    code += ['void xs_ze_wrap(uint32_t number, uint32_t version, void *entries, bool all, struct xs_ze_place *place)', '{',
             '\tswitch (number) {']
    for i, name in enumerate(all_entries(tables, table)):
        code += [f'\tcase {i}:', f'\t\tput_{name}(version, entries, all, place);', '\t\tbreak;']
    code += ['\tdefault:', '\t\tbreak;', '\t}', '}', '',
             'void *xs_ze_wrap_extension(const char *name, void *real, bool all)', '{']
    newer = [prototype.split('(')[0] for prototype in table['newer']['functions']]
    for f in functions:
        if re.search(r'(Ext|Exp)\d*$', f) or f in newer:
            always = '' if needed(f, table) else 'all && '
            code += [f'\tif ({always}!strcmp(name, "{f}"))',
                     f'\t\treturn xs_ze_take((void **)&{target[f]}, real) ? (void *)wrap_{f} : real;']
    code += ['\treturn real;', '}', '']
    (out / 'level_zero_wrap.c').write_text('\n'.join(code))


def shown(argument):
    """pCount points to Count, phDevices to hDevices: as unitrace calls them."""
    match = re.fullmatch(r'pp?((?:[A-Z]|h[A-Z])\w*)', argument.name)
    return argument.name, match[1] if match else argument.name


def read_calls(table, text, functions, compiler):
    """What the arguments of each function mean, and the types of the headers."""
    types = arguments.Types(text)
    notes = arguments.read_notes(arguments.header_files(table['headers'], compiler, 'level_zero'))
    calls = {}
    for name, function in functions.items():
        call = calls[name] = arguments.Call(function)
        arguments.apply_table(call, types, table)
        arguments.apply_notes(call, notes, types)
        arguments.apply_defaults(call, types)
        arguments.apply_members(call, table)
        for argument in call.arguments:
            if any(re.fullmatch(pattern, f'{name}.{argument.name}') for pattern in table['unread']):
                argument.count = None
    return types, calls


def add_newer(table):
    """Functions of newer headers, with their place in the loader's tables if they have one."""
    for name, (*place, parameters) in tomllib.loads(Path(__file__).with_name('level_zero_newer.toml').read_text()).items():
        table['newer']['functions'].append(f'{name}({parameters})')
        if place:
            table['newer']['places'][name] = place


def has_header(name, compiler):
    source = f'#if __has_include(<{name}>)\nyes\n#endif\n'
    return 'yes' in subprocess.run([*compiler, '-E', '-P', '-x', 'c', '-'], input=source, text=True, check=True, capture_output=True).stdout


def write(table, api, out, compiler):
    """All that is generated for Level Zero."""
    table['headers'] += [name for name in table['later_headers'] if has_header(name, compiler)]
    add_newer(table)
    text = preprocess(table['headers'], compiler)
    tables, functions = read_tables(text), read_functions(text)
    for prototype in table['newer']['functions']:
        functions = read_functions(f'ze_result_t {prototype};') | functions
    missing = [f for t in tables for _, f in t.entries if f not in functions]
    if missing:
        sys.exit(f'no prototype of {", ".join(missing)}')
    # the few that return no result (zeDriverGetDefaultContext) stay as they are
    functions = {name: function for name, function in functions.items() if function.returns == 'ze_result_t'}
    note = f'/* Made by interpose/generate.py from {", ".join(table["headers"])} and {api}.toml. */\n'
    write_numbers(out, api, note, list(functions))
    write_tables(out, note, tables, functions, table)
    types, calls = read_calls(table, text, functions, compiler)
    made = arguments.Tables(types, set(), True, table)
    for f in functions:
        made.function(calls[f], shown)
    made.write(out / f'{api}_arguments.c', note, table['headers'], api, list(functions), calls, 'ze_result_t')
    write_wrap(out, note, tables, functions, table, calls, types)
    write_layer(out, note, tables, functions, table)
