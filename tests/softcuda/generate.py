"""The exported functions of the software CUDA, made from CUPTI's headers: generate.py INCLUDE driver|runtime|names OUTPUT SOURCE...

A function that CUPTI knows (a callback id, and a structure of its parameters) is exported with that signature. It calls
impl_NAME() where a SOURCE defines one, and is "not supported" otherwise. What a tool wants to know of a call, and calls
that are to fail, are seen to by sc_call_begin() and sc_call_end(), once something of the kind is asked for.
"""

import re
import sys
from pathlib import Path

DOMAINS = {
    "driver": ("CUresult", "CUDA_ERROR_NOT_SUPPORTED", "cupti_driver_cbid.h", "generated_cuda_meta.h"),
    "runtime": (
        "cudaError_t",
        "cudaErrorNotSupported",
        "cupti_runtime_cbid.h",
        "generated_cuda_runtime_api_meta.h",
    ),
}
# what returns something else than an error, and is written by hand
BY_HAND = {"cudaGetErrorString", "cudaGetErrorName", "cudaCreateChannelDesc"}


def callback_ids(text):
    return {
        name: int(number)
        for name, number in re.findall(r"_TRACE_CBID_(\w+) += (\d+)", text)
        if name not in ("INVALID", "SIZE") and not re.fullmatch(r"cuda?\d+", name)
    }


def parameters(text):
    """callback's name -> [(declaration, name)], from its structure"""
    found = {}
    for name, body in re.findall(r"typedef struct (\w+)_params_st \{(.*?)\} \1_params;", text, re.S):
        fields = [field.strip() for field in body.split(";") if field.strip()]
        found[name] = [(field, re.search(r"(\w+)(?:\[\d*\])?$", field)[1]) for field in fields]
    return found


def symbol_of(domain, name):
    """What a program calls: the runtime's callbacks carry the version in which the function came."""
    return re.sub(r"_v\d{4,}$", "", name) if domain == "runtime" else name


def version_of(name):
    found = re.search(r"_v(\d{4,})$", name)
    return int(found[1]) if found else 0


def wrapper(domain, name, symbol, fields, implemented):
    result, unsupported = DOMAINS[domain][:2]
    declared = ", ".join(declaration for declaration, _ in fields) or "void"
    passed = ", ".join(name for _, name in fields)
    base = re.sub(r"_pts[dz]$|_ptds$", "", symbol)
    call = f"impl_{base}({passed})" if base in implemented else unsupported
    if domain == "runtime" and base not in ("cudaGetLastError", "cudaPeekAtLastError"):
        call = f"sc_result({call})"
    params = f"\t{name}_params params = {{ {passed} }};\n" if fields else ""
    pointer = "&params" if fields else "NULL"
    return (
        f'{result} api_{symbol}({declared}) __asm__("{symbol}");\n'
        f"EXPORT {result} api_{symbol}({declared})\n{{\n"
        f"\t{result} ret;\n"
        f"\tsc_{domain}_start();\n"
        f"\tif (!sc_slow())\n\t\treturn {call};\n"
        f"{params}"
        f"\tstruct sc_call call = {{ .domain = SC_{domain.upper()}, .cbid = CBID({name}), .name = \"{name}\",\n"
        f"\t\t.symbol = \"{symbol}\", .params = {pointer}, .ret = (int *)&ret }};\n"
        f"\tif (sc_call_begin(&call))\n\t\tret = {call};\n"
        f"\tsc_call_end(&call);\n\treturn ret;\n}}\n"
    )


def callback_names(include, output):
    """What CUPTI calls the calls, for its cuptiGetCallbackName()."""
    lines = ['#include "profiler.h"']
    for domain, (_, _, cbids, _) in DOMAINS.items():
        ids = callback_ids((Path(include) / cbids).read_text())
        lines.append(f"const char *const su_{domain}_callbacks[SU_CBIDS] = {{")
        lines += [f'\t[{number}] = "{name}",' for name, number in ids.items()]
        lines.append("};")
    Path(output).write_text("\n".join(lines) + "\n")


def main():
    include, domain, output, *sources = sys.argv[1:]
    if domain == "names":
        callback_names(include, output)
        return
    result, _, cbids, meta = DOMAINS[domain]
    ids = callback_ids((Path(include) / cbids).read_text())
    known = parameters((Path(include) / meta).read_text())
    implemented = set()
    prototypes = []
    for source in sources:
        for name, arguments in re.findall(
            rf"^{result} impl_(\w+)\(([^{{}};]*)\)\n\{{", Path(source).read_text(), re.M
        ):
            implemented.add(name)
            prototypes.append(f"{result} impl_{name}({' '.join(arguments.split())});")

    newest = {}
    for name in ids:
        symbol = symbol_of(domain, name)
        if symbol in BY_HAND or (name in known and not known[name]):
            continue
        if name not in known and re.sub(r"_pts[dz]$|_ptds$", "", symbol) not in implemented:
            continue
        if symbol not in newest or version_of(name) > version_of(newest[symbol]):
            newest[symbol] = name
    missing = implemented - {re.sub(r"_pts[dz]$|_ptds$", "", symbol) for symbol in newest}
    if missing:
        sys.exit(f"generate.py: no callback id for {', '.join(sorted(missing))}")

    kind = "CUPTI_DRIVER_TRACE_CBID_" if domain == "driver" else "CUPTI_RUNTIME_TRACE_CBID_"
    lines = [
        f'#include "{domain}_api.h"',
        f"#define CBID(name) {kind}##name",
        '#define EXPORT __attribute__((visibility("default")))',
        *prototypes,
    ]
    for symbol, name in newest.items():
        lines.append(wrapper(domain, name, symbol, known.get(name, []), implemented))
    lines.append(f"const struct sc_name sc_{domain}_names[] = {{")
    lines += [f'\t{{ "{s}", (void *)api_{s} }},' for s in sorted(newest)]
    lines += ["\t{ NULL, NULL },\n};"]
    Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
