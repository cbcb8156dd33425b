"""What the installed mpi.h say: prototypes, and a library made from them that checks what arrives.

    for name, header in headers():        # "MPICH 4": Header
        header.functions["MPI_Send"]      # [Argument]
        run = FakeLibrary(header, directory).build()

The library and the program that calls it know the header alone; what is between them must change nothing.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from conftest import ROOT

HANDLES = {f"MPI_{kind}" for kind in "Comm Datatype Group Request Op Info Errhandler Win File Message Session".split()}
LONGS = {"MPI_Aint", "MPI_Count", "MPI_Offset"}
NESTED = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
DEBIAN = Path("/usr/lib/x86_64-linux-gnu")
MPICH = Path("/usr/include/x86_64-linux-gnu/mpich")


@dataclass
class Argument:
    """One argument of a prototype: its text, its type without const and arrays as pointers, and whether what it points to is const."""

    text: str
    type: str
    name: str
    const: bool

    @property
    def kind(self):
        """"int", "long", a handle's type, or "pointer" (to a function, too)."""
        if self.type.endswith("*") or self.type.endswith(("_fn", "_function")):
            return "pointer"
        if self.type in HANDLES:
            return self.type
        return {"int": "int", **dict.fromkeys(LONGS, "long")}[self.type]


def argument_of(text):
    text = " ".join(text.split())
    arrays = len(re.findall(r"\[[^\]]*\]", text))
    words = re.findall(r"\w+|\*", re.sub(r"\[[^\]]*\]|\b(const|struct)\b", "", text))
    name = words.pop()
    assert words and name != "*", f"no name: {text}"
    return Argument(text, " ".join(words + ["*"] * arrays), name, "const" in text.split())


@dataclass
class Header:
    name: str
    path: Path
    soname: str

    @cached_property
    def text(self):
        command = ["cc", "-E", "-P", "-I", self.path.parent, "-include", self.path, "-x", "c", "/dev/null"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return re.sub(rf"__attribute__\s*\({NESTED}\)", "", text)

    @cached_property
    def functions(self):
        """{name: [Argument]} of all functions that return an int, but the tools interface."""
        found = {}
        for name, text in re.findall(rf"\bint\s+(MPI_[A-Z][a-z]\w*)\s*\(({NESTED})\)\s*;", self.text):
            parts = [part.strip() for part in text.split(",")]
            if not name.startswith("MPI_T_") and parts[-1] != "...":
                found[name] = [] if parts in (["void"], [""]) else [argument_of(part) for part in parts]
        return found

    @property
    def int_handles(self):
        return bool(re.search(r"typedef\s+int\s+MPI_Comm\s*;", self.text))


@cache
def headers():
    """Every mpi.h there is; only MPICH's is in the default set of scripts/setup."""
    places = {
        "MPICH 4": (MPICH / "mpi.h", "libmpi.so.12"),
        "Open MPI 4": (DEBIAN / "openmpi/include/mpi.h", "libmpi.so.40"),
        "Open MPI 5": (ROOT / ".venv-openmpi/include/mpi.h", "libmpi.so.40"),
        "MPICH 5": (ROOT / ".venv-mpich/include/mpi.h", "libmpi.so.12"),
        "MPICH 5 by the ABI of MPI 5": (ROOT / ".venv-mpich/include/mpi_abi.h", "libmpi_abi.so.1"),
        "Intel MPI": (ROOT / ".venv-ccl/include/mpi.h", "libmpi.so.12"),
        "Intel MPI by the ABI of MPI 5": (ROOT / ".venv-ccl/include/mpi_abi.h", "libmpi_abi.so.1"),
    }
    return {name: Header(name, path, soname) for name, (path, soname) in places.items()}


def fortran_names():
    """{library: its names of MPI functions as Fortran calls them} of every installed library that has any."""
    found = {}
    for folder in (DEBIAN, *ROOT.glob(".venv-*/lib")):
        files = sorted(path for path in folder.glob("libmpi*.so.*") if re.search("fort|mpifh|usempif08", path.name))
        for path in files:
            if path.is_symlink():
                continue
            text = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True).stdout
            names = {line.split()[-1] for line in text.splitlines()}
            names = {name for name in names if re.fullmatch(r"mpi_[a-z]\w*[a-z0-9]_", name)}
            if names:
                found[path] = names
    return found


# ---- a library that checks what arrives ----

WORDS = 24  # more than any function has
COMMON = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef int64_t W;
extern W fake_words[], fake_result;
extern int fake_function, fake_count, fake_arrived;
void fake_fail(const char *what, W value);
#define BAD(handle) (((W)(intptr_t)(handle) >> 16 & 0xffff) == 0xbad)
/* what the library stores where a pointer leads */
#define STORED_HANDLE(i) (0x5a000010 + (i))
"""

LIBRARY = r"""
W fake_words[32], fake_result;
int fake_function, fake_count, fake_arrived;
extern const char *const fake_names[];

void fake_fail(const char *what, W value)
{
	printf("%s: %s %#llx\n", fake_names[fake_function], what, (long long)value);
	exit(1);
}

static int arrive(int function, int count, const W *words)
{
	if (function != fake_function)
		fake_fail("another function came", function);
	if (count != fake_count)
		fake_fail("another number of arguments", count);
	for (int i = 0; i < count; i++)
		if (words[i] != fake_words[i])
			fake_fail("another value came", words[i]);
	fake_arrived++;
	return (int)fake_result;
}

/* what xstrace asks; a handle of a call that failed is none */
#define ASKED(handle) do { if (BAD(handle)) fake_fail("asked about an invalid handle", (intptr_t)(handle)); } while (0)
int PMPI_Init(int *argc, char ***argv) { return 0; }
int PMPI_Initialized(int *flag) { *flag = 1; return 0; }
int PMPI_Finalized(int *flag) { *flag = 0; return 0; }
int PMPI_Comm_rank(MPI_Comm comm, int *rank) { ASKED(comm); *rank = 0; return 0; }
int PMPI_Comm_size(MPI_Comm comm, int *size) { ASKED(comm); *size = 2; return 0; }
int PMPI_Comm_test_inter(MPI_Comm comm, int *flag) { ASKED(comm); *flag = 0; return 0; }
int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group) { ASKED(comm); *group = (MPI_Group)(intptr_t)0x5a000001; return 0; }
int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group) { return PMPI_Comm_group(comm, group); }
int PMPI_Win_get_group(MPI_Win win, MPI_Group *group) { ASKED(win); return PMPI_Comm_group((MPI_Comm)0, group); }
int PMPI_File_get_group(MPI_File file, MPI_Group *group) { ASKED(file); return PMPI_Comm_group((MPI_Comm)0, group); }
int PMPI_Group_size(MPI_Group group, int *size) { *size = 2; return 0; }
int PMPI_Group_rank(MPI_Group group, int *rank) { *rank = 0; return 0; }
int PMPI_Group_free(MPI_Group *group) { return 0; }
int PMPI_Group_translate_ranks(MPI_Group group, int n, const int ranks[], MPI_Group to, int found[])
{
	memcpy(found, ranks, (size_t)n * sizeof(int));
	return 0;
}
int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *size) { ASKED(type); *size = 8; return 0; }
int PMPI_Get_elements_x(const MPI_Status *status, MPI_Datatype type, MPI_Count *count) { *count = 0; return 0; }
int PMPI_Topo_test(MPI_Comm comm, int *kind) { ASKED(comm); *kind = MPI_UNDEFINED; return 0; }
int PMPI_Cartdim_get(MPI_Comm comm, int *n) { *n = 0; return 0; }
int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int *in, int *out, int *weighted) { *in = *out = *weighted = 0; return 0; }
int PMPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *n) { *n = 0; return 0; }
"""

PROGRAM = r"""
extern const char *const fake_names[];
static _Alignas(64) char memory[24][4096];
static int calls;

enum { GOOD, NEGATIVE, NOWHERE, ROUNDS };
#define INT(i) (round == NEGATIVE ? -(3 + (i)) : 3 + (i))
#define LONG(i) (round == NEGATIVE ? -(1LL << 33) - (i) : (1LL << 33) + 3 + (i))
#define POINTER(i) (round == GOOD ? (W)(intptr_t)memory[i] : 0)
#define HANDLE(i, good) (round == GOOD ? (W)(intptr_t)(good) : 0x0bad0000 + (i))

static void begin(int function, int round, int count, const W *words)
{
	fake_function = function;
	fake_result = round == GOOD ? 0 : 100 + function;
	fake_count = count;
	memcpy(fake_words, words, (size_t)count * sizeof(W));
	calls++;
}

static void end(W result)
{
	if (fake_arrived != calls)
		fake_fail("arrived so often", fake_arrived);
	if (result != fake_result)
		fake_fail("another result came back", result);
}

static void fill(const char *as)
{
	memset(memory, 0, sizeof(memory));
	for (int i = 0; as[i]; i++)
		for (int k = 0; k < 512; k++)
			((int *)memory[i])[k] = 1;
	for (int i = 0; as[i]; i++)
		if (as[i] == 't')
			strcpy(memory[i], "text");
		else if (as[i] == 's')
			memset(memory[i], 0, sizeof(memory[i]));
}
"""


class FakeLibrary:
    """A library and a program for one header: every C function in three rounds, every form in Fortran in two."""

    def __init__(self, header, directory, fortran):
        self.header, self.directory = header, directory
        self.c = sorted(header.functions)
        self.fortran = fortran  # [(symbol, C function)]
        self.names = self.c + [symbol for symbol, _ in fortran]

    def arguments(self, name):
        return self.header.functions[name]

    def _value(self, i, argument):
        kind = argument.kind
        if argument.type == "MPI_Status *":
            return f"(W)(intptr_t)memory[{i}]"  # NULL may stand for none
        if kind in ("int", "long", "pointer"):
            return f"{kind.upper()}({i})"
        good = {"MPI_Comm": "MPI_COMM_WORLD", "MPI_Datatype": "0x4c000807"}.get(kind, f"{0x5A000020 + i:#x}")
        return f"HANDLE({i}, {good})"

    def _stored(self, i, argument):
        """What the library stores through a pointer, as a C expression; None: nothing."""
        target = argument.type.removesuffix("*").strip()
        if argument.kind != "pointer" or argument.const:
            return None
        if target in HANDLES:
            return target, f"({target})(intptr_t)STORED_HANDLE({i})"
        return (target, "1") if target in ("int", *LONGS) else None

    @staticmethod
    def _fills(arguments):
        kinds = {"char *": "t", "MPI_Status *": "s"}
        return "".join(kinds.get(argument.type, "1") for argument in arguments)

    def _c_library(self, number, name):
        arguments = self.arguments(name)
        parameters = ", ".join(a.text for a in arguments) or "void"
        words = ", ".join(f"(W)(intptr_t){a.name}" for a in arguments) or "0"
        stores = [(i, self._stored(i, a)) for i, a in enumerate(arguments)]
        lines = [f"int {name}({parameters})", "{", f"\tint fake_back = arrive({number}, {len(arguments)}, (W[]){{ {words} }});"]
        lines += [f"\tif (!fake_back)\n\t\t*({s[0]} *)(intptr_t){arguments[i].name} = {s[1]};" for i, s in stores if s]
        return "\n".join([*lines, "\treturn fake_back;", "}"])

    def _c_call(self, number, name):
        arguments = self.arguments(name)
        values = ", ".join(self._value(i, a) for i, a in enumerate(arguments)) or "0"
        given = ", ".join(
            f"(void *)v[{i}]" if a.kind == "pointer" else f"({a.type})(intptr_t)v[{i}]" for i, a in enumerate(arguments)
        )
        lines = [f"\tfor (int round = 0; round < ROUNDS; round++) {{ /* {name} */", f"\t\tconst W v[] = {{ {values} }};"]
        lines += [f'\t\tfill("{self._fills(arguments)}");', f"\t\tbegin({number}, round, {len(arguments)}, v);"]
        lines.append(f"\t\tend({name}({given}));")
        for i, argument in enumerate(arguments):
            if stored := self._stored(i, argument):
                check = f"*({stored[0]} *)memory[{i}] != {stored[1]}"
                lines.append(f'\t\tif (round == GOOD && {check})\n\t\t\tfake_fail("not what was stored", {i});')
        return "\n".join([*lines, "\t}"])

    def fortran_arguments(self, name):
        """All are addresses; then the lengths of texts."""
        plain = self.arguments(name)
        if plain[:2] and [a.name for a in plain[:2]] == ["argc", "argv"]:
            plain = plain[2:]
        return plain, sum("char" in a.type.split() for a in plain)

    def _fortran_library(self, number, symbol, name):
        plain, texts = self.fortran_arguments(name)
        count = len(plain) + 1 + texts
        parameters = ", ".join(f"W a{i}" for i in range(count))
        words = ", ".join(f"a{i}" for i in range(count))
        return (
            f"void {symbol}({parameters})\n{{\n\tint result = arrive({number}, {count}, (W[]){{ {words} }});\n\n"
            f"\tif (a{len(plain)})\n\t\t*(int *)a{len(plain)} = result;\n}}"
        )

    def _fortran_call(self, number, symbol, name):
        plain, texts = self.fortran_arguments(name)
        count = len(plain) + 1 + texts
        values = [f"(W)memory[{i}]" for i in range(len(plain) + 1)] + [str(4 - k) for k in range(texts)]
        types = ", ".join(["W"] * count)
        lines = [f"\tfor (int round = 0; round < NOWHERE; round++) {{ /* {symbol} */", f"\t\tvoid {symbol}({types});"]
        lines += [f"\t\tconst W v[] = {{ {', '.join(values)} }};", f'\t\tfill("{self._fills(plain)}");']
        for i, argument in enumerate(plain):
            if argument.kind == "int":
                lines.append(f"\t\t*(int *)memory[{i}] = INT({i});")
            elif argument.kind == "long":
                lines.append(f"\t\t*(W *)memory[{i}] = LONG({i});")
            elif argument.kind != "pointer":
                good = "WORLD_IN_FORTRAN" if argument.kind == "MPI_Comm" else "0x4c000807" if argument.kind == "MPI_Datatype" else hex(0x5A000020 + i)
                lines.append(f"\t\t*(int *)memory[{i}] = (int)HANDLE({i}, {good});")
        lines += [f"\t\tbegin({number}, round, {count}, v);"]
        lines.append(f"\t\t{symbol}({', '.join(f'v[{i}]' for i in range(count))});")
        return "\n".join([*lines, f"\t\tend(*(int *)memory[{len(plain)}]);", "\t}"])

    def _conversions(self):
        """Fortran's handles: those of MPICH are the same ints; elsewhere 0 is MPI_COMM_WORLD here."""
        found = []
        for kind in sorted(HANDLES):
            name = rf"PMPI_{kind.removeprefix('MPI_').replace('Datatype', 'Type')}"
            for name in set(re.findall(rf"\b({name}_(?:f2c|fromint))\s*\(\s*(?:MPI_Fint|int)\b", self.header.text)):
                good = "handle == 0 ? MPI_COMM_WORLD : " if kind == "MPI_Comm" else ""
                found.append(f"#undef {name}\n{kind} {name}(int handle) {{ return {good}({kind})(intptr_t)handle; }}")
        return found

    def build(self):
        """The program; its library lies beside it."""
        numbers = {name: i for i, name in enumerate(self.names)}
        include = f'#include "{self.header.path}"\n{COMMON}'
        names = ",\n".join(f'\t"{name}"' for name in self.names)
        library = [include, LIBRARY, *self._conversions(), f"const char *const fake_names[] = {{\n{names}\n}};"]
        library += [self._c_library(numbers[name], name) for name in self.c]
        library += [self._fortran_library(numbers[symbol], symbol, name) for symbol, name in self.fortran]
        program = [include, "#define WORLD_IN_FORTRAN (sizeof(MPI_Comm) == 4 ? (int)(intptr_t)MPI_COMM_WORLD : 0)", PROGRAM]
        program += ["static void call_c(void)\n{", *(self._c_call(numbers[name], name) for name in self.c), "}"]
        program += ["static void call_fortran(void)\n{"]
        program += [*(self._fortran_call(numbers[symbol], symbol, name) for symbol, name in self.fortran), "}"]
        program.append('int main(void)\n{\n\tcall_c();\n\tcall_fortran();\n\tprintf("%d calls\\n", calls);\n\treturn 0;\n}')
        place = self.directory
        objects = "ompi_mpi_comm_world ompi_mpi_comm_self ompi_mpi_comm_null ompi_request_null ompi_mpi_byte".split()
        data = "".join(f"char {name}[512];\n" for name in objects) if self.header.soname.endswith(".40") else ""
        for name, text in ("library", "\n".join(library)), ("program", "\n".join(program)), ("data", data):
            (place / f"{name}.c").write_text(text + "\n")
        flags = ["cc", "-w", "-O0", "-I", self.header.path.parent]
        shared = ["-shared", "-fPIC", f"-Wl,-soname,{self.header.soname}", "-o", place / self.header.soname]
        subprocess.run([*flags, *shared, place / "library.c", place / "data.c"], check=True)
        app = place / "fake_calls"
        rest = [place / self.header.soname, f"-Wl,-rpath,{place}"]
        subprocess.run([*flags, "-o", app, place / "program.c", *rest], check=True)
        return app


def lacks(header):
    if not header.path.exists() or not shutil.which("cc"):
        return f"no {header.path.relative_to(ROOT) if header.path.is_relative_to(ROOT) else header.path}; scripts/setup --clients"
    return None
