"""Numbers and names of CUDA's functions, and what a call of each means, from the headers of CUPTI.

CUPTI calls us for a function by its number (its callback id), of which the runtime and the driver have a range each. A function is
numbered from 0 here: first what has no function (cuda.toml, works), then the runtime's, then the driver's.
"""
import re

from prototypes import preprocess

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


def write(table, api, out, compiler):
    """Writes cuda_wrap.c (what calls mean), and the numbers and names of the functions."""
    note = f'/* Made by interpose/generate.py from the headers of CUPTI and {api}.toml. */\n'
    parts = {part: read_part(header, prefix, compiler) for part, (header, prefix) in PARTS.items()}
    write_numbers(out / f'{api}_functions.h', note, parts, len(table['works']))
    write_names(out / f'{api}_names.c', note, parts, table['works'])
    write_uses(out / f'{api}_wrap.c', note, parts, table)
    (out / f'{api}_arguments.c').write_text('\n'.join([
        note, '#include "functions.h"', f'extern const struct xs_api xs_{api}_arguments;',
        f'const struct xs_api xs_{api}_arguments = {{ .count = 0 }};', '']))
