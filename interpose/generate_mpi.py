#!/usr/bin/env python3
"""Writes the MPI wrappers from mpi.toml, which lists every function and its arguments.

usage: generate_mpi.py mpi.toml OUT_DIR

Written are mpi_wrap.c, mpi_fortran.c and mpi_records.h (for libxstrace-mpi.so), mpi_functions.h (function numbers) and mpi_names.c (number to name, for the drain process).
Each function has a wrapper in C, one with large counts if there is one, and one for each of Fortran's dialects. What a wrapper records follows
from the names of the arguments.
"""
import re
import sys
import tomllib
from pathlib import Path

NOTE = "/* Made by interpose/generate_mpi.py from mpi.toml. */\n"
COMMUNICATORS = ("comm", "comm_old", "local_comm")
MADE = ("newcomm", "comm_cart", "comm_graph", "comm_dist_graph", "newintercomm", "newintracomm", "parent")
# how a value is read from an argument, by the argument's name
KINDS = {
    "count": "COUNT", "sendcount": "COUNT", "recvcount": "COUNT", "origin_count": "COUNT",
    "datatype": "TYPE", "sendtype": "TYPE", "recvtype": "TYPE", "origin_datatype": "TYPE",
    "dest": "INT", "source": "INT", "tag": "INT", "sendtag": "INT", "recvtag": "INT", "root": "INT", "rank": "INT",
    "target_rank": "INT", "partitions": "INT", "incount": "INT", "offset": "LONG",
    "comm": "COMM", "comm_old": "COMM", "local_comm": "COMM", "intercomm": "COMM", "win": "WIN", "fh": "FILE",
    "flag": "OUT_INT", "indx": "OUT_INT", "outcount": "OUT_INT",
    "request": "OUT_REQUEST", "message": "OUT_MESSAGE",
    **dict.fromkeys(MADE, "OUT_COMM"),
}
TYPES = {"COUNT": "int64_t", "LONG": "int64_t", "INT": "int32_t", "OUT_INT": "int32_t"}  # others are handles
BUFFERS = ("buf", "buffer", "sendbuf", "recvbuf", "origin_addr", "inbuf", "location", "base", "attribute_val", "buffer_addr")
# large counts are _c in the standard, and were _large in MPICH 4; _cptr: Open MPI's, where mpif.h has an address as TYPE(C_PTR)
FORTRAN = ("_", "_cptr_", "_f08_", "_f08ts_", "_f08_large_", "_f08ts_large_", "_c_f08_", "_c_f08ts_")
INSIDE = ("MPI_Internal::Idle", "MPI_Internal::operation")  # no functions: what Intel MPI tells of itself (mpi_idle.c)
FINDERS = {"win": "WIN", "fh": "FILE"}  # what else than a communicator a call is about


class Function:
    """One function and its arguments, by the names that the standard gives them; in the form with large counts or without."""

    facts = {}  # of all functions: [facts] of the table

    def __init__(self, section, name, text, wide=False):
        marks, words = [], text.split()
        while words and words[0] in "+?":
            marks.append(words.pop(0))
        self.section, self.name, self.text, self.wide = section, name, text, wide
        self.large, self.optional = "+" in marks, "?" in marks
        if not wide:
            words = [w for w in words if not w.startswith("@")]
        self.longs = [w[1:] for w in words if w.startswith("#")]
        self.texts = [w[1:] for w in words if w.startswith("$")]  # each has a hidden length in Fortran
        self.arguments = [w.lstrip("$#@") for w in words]

    def in_form(self, wide):
        return self if wide == self.wide else Function(self.section, self.name, self.text, wide)

    def kind(self, name):
        """How the value of an argument is read; None: it is not."""
        kind = KINDS.get(name)
        if kind == "COUNT":
            return "LONG" if self.wide or name in self.longs else "INT"
        return kind

    def in_fortran(self):
        """Its names there, without the first underscore: suffix, language, in the form with large counts?"""
        for suffix in FORTRAN:
            wide = "large" in suffix or "_c_" in suffix
            # choice buffers are descriptors in the ts ones, and passed on like anything else
            if wide and not self.large or "ts" in suffix and not self.first(*BUFFERS) or "cptr" in suffix and not self.has("baseptr"):
                continue
            yield suffix, "f08" if "f08" in suffix else "f", wide

    def fact(self, name):
        """Is it one of the functions of which the table says so?"""
        return any(re.fullmatch(pattern, self.name) for pattern in self.facts[name])

    def has(self, *names):
        return all(name in self.arguments for name in names)

    def first(self, *names):
        return next((name for name in names if name in self.arguments), None)

    @property
    def comm(self):
        """The argument that names the communicator (window, file) of the call; its handle is passed by value."""
        if self.frees:
            return None
        if self.name in self.facts["about"]:
            return self.facts["about"][self.name]
        if self.section == "window" and not self.has("comm"):
            return self.first("win")
        if self.section == "file" and not self.has("comm"):
            return self.first("fh")
        return self.first(*COMMUNICATORS)

    @property
    def collective(self):
        """Has the call a number among those of its communicator?"""
        return bool(self.comm in COMMUNICATORS and (self.section == "collective" or (self.made and not self.fact("uncounted"))))

    @property
    def made(self):
        """The argument where the call puts a new communicator."""
        return self.facts["makes"].get(self.name) or self.first(*MADE)

    @property
    def frees(self):
        """The argument whose object is no more after the call."""
        return self.facts["frees"].get(self.name)

    @property
    def waits(self):
        """Does the call complete requests: the argument that has them."""
        return self.section == "completion" and not self.fact("asks") and self.first("request", "array_of_requests")

    @property
    def request(self):
        """Does the call make a request?"""
        return self.has("request") and self.fact("requests")

    @property
    def status(self):
        """Blocking receives and probes, and transfers of files: the status says what came."""
        return self.has("status") and self.section in ("message", "file") and not self.fact("ends")


def read_table(path):
    table = tomllib.loads(path.read_text())
    Function.facts = table.pop("facts")
    return [Function(s, n, text) for s, functions in table.items() for n, text in functions.items()]


def amount(f):
    """The C expression of what a call moves: struct xs_mpi_amount."""
    if f.section == "collective":
        return collective_amount(f)
    if f.fact("partitioned"):
        return "xs_mpi_amount(call, partitions * count, datatype)"
    for count, kind in (("count", "datatype"), ("sendcount", "sendtype"), ("origin_count", "origin_datatype")):
        if f.section in ("message", "file", "window") and f.has(count, kind):
            return f"xs_mpi_amount(call, {count}, {kind})"
    return None


def collective_amount(f):
    """Of the arguments that MPI_IN_PLACE and roots make meaningless none is looked at."""
    neighbor = f.fact("neighborhood")
    if f.has("count", "datatype"):
        return "xs_mpi_amount_but(call, comm, root, count, datatype)" if f.has("root") else "xs_mpi_amount(call, count, datatype)"
    if f.has("recvcounts", "datatype"):
        return "xs_mpi_amount_sum(call, xs_mpi_local(comm), recvcounts, wide, datatype)"
    if f.has("recvcount", "datatype"):
        return "xs_mpi_amount(call, recvcount, datatype)"
    if f.has("root"):
        at_root, other = ("recv", "send") if f.fact("gathers") else ("send", "recv") if f.fact("scatters") else (None, None)
        if at_root:
            vector = f.has(at_root + "counts")
            mine = f"{at_root}counts, wide" if vector else at_root + "count"
            return f"xs_mpi_amount_{'own_' if vector else ''}root(call, comm, root, {mine}, {at_root}type, {other}count, {other}type)"
    if neighbor and f.has("sendcount"):
        return "xs_mpi_amount(call, sendcount, sendtype)"
    number = "xs_mpi_neighbors(comm)" if neighbor else "xs_mpi_ranks(comm)"
    side = "send" if neighbor else "recv"
    if f.has("recvtypes"):
        return f"xs_mpi_amount_types(call, {number}, {side}counts, wide, {side}types, fortran)"
    if f.fact("gathers_from_each"):
        return "xs_mpi_amount_given(call, comm, recvcounts, wide, recvtype, sendcount, sendtype)"
    if f.has("recvcounts"):
        return f"xs_mpi_amount_sum(call, {number}, {side}counts, wide, {side}type)"
    if f.has("recvcount"):
        return "xs_mpi_amount(call, recvcount, recvtype)"
    return None


def whose(f):
    """The C expression of whose data a collective gets, where that does not follow from what it moves (XS_MPI_FROM)."""
    if f.section != "collective":
        return None
    if f.fact("neighborhood"):
        if f.has("recvtypes"):
            return "xs_mpi_from_near_types(call, comm, recvcounts, wide, recvtypes, fortran)"
        if f.has("recvcounts"):
            return "xs_mpi_from_near_counts(call, comm, recvcounts, wide, recvtype)"
        return "xs_mpi_from_near(call, comm, recvcount, recvtype)"
    if f.has("recvcounts", "datatype"):
        return "xs_mpi_from_own(call, comm, recvcounts, wide, datatype)"
    if f.has("sendcounts", "recvcounts"):
        return ("xs_mpi_from_types(call, comm, recvcounts, wide, recvtypes, fortran)" if f.has("recvtypes")
                else "xs_mpi_from_counts(call, comm, recvcounts, wide, recvtype)")
    return None


def pieces(f):
    """({word: C expression}, statements before): what is recorded of a call, in the order of enum xs_mpi_word."""
    found, before = {}, []
    moved = amount(f)
    tag = f.first("tag", "sendtag") or "-1"
    if f.comm:
        word = FINDERS.get(f.comm, "COMM")
        first = {"COMM": "comm->id"} if word == "COMM" else {}
    else:
        word, first = None, {}
    both = f.has("dest", "source")
    if f.status and f.section == "message":
        before.append("const struct xs_mpi_came came = xs_mpi_came(call, status, flag);" if f.has("flag")
                      else "const struct xs_mpi_came came = xs_mpi_came(call, status, 1);")
    found.update(first)
    if f.has("dest"):
        found["PEER"] = f"xs_mpi_peer(comm, dest, {tag})"
    elif f.has("source", "comm"):
        found["PEER"] = (f"came.known ? xs_mpi_peer(comm, came.source, came.tag) : xs_mpi_peer(comm, source, {tag})" if f.status
                         else f"xs_mpi_peer(comm, source, {tag})")
    elif f.fact("matched"):
        found["COMM"] = "comm->id"
        found["PEER"] = "xs_mpi_peer(comm, came.source, came.tag)" if f.status else None
    elif f.section == "window" and f.first("target_rank", "rank"):
        found["PEER"] = f"xs_mpi_peer(comm, {f.first('target_rank', 'rank')}, -1)"
    found = {k: v for k, v in found.items() if v}
    if moved:
        before.append(f"const struct xs_mpi_amount moved = {moved};")
        if f.status and f.section == "message" and not both and f.has("datatype"):
            found["COUNT"] = "came.known ? xs_mpi_elements(came.bytes, moved) : (uint64_t)moved.count"
            found["BYTES"] = "came.known ? (uint64_t)came.bytes : (uint64_t)moved.bytes"
        elif f.status and f.section == "file":
            found["COUNT"] = "(uint64_t)moved.count"
            found["BYTES"] = "xs_mpi_transferred(call, status, moved)"
        else:
            found["COUNT"], found["BYTES"] = "(uint64_t)moved.count", "(uint64_t)moved.bytes"
    elif f.status and f.section == "message":
        found["BYTES"] = "came.known ? (uint64_t)came.bytes : (uint64_t)INT64_MIN"
    if f.collective:
        found["ROOT"] = ("xs_mpi_root(comm, root, number)" if f.has("root") else "xs_mpi_pair(XS_MPI_NOTHING, (int32_t)number)")
    if both:
        posted = "xs_mpi_peer(comm, source, recvtag)"
        found["RECV_PEER"] = f"came.known ? xs_mpi_peer(comm, came.source, came.tag) : {posted}" if f.status else posted
        if f.status:
            found["RECV_BYTES"] = "came.known ? (uint64_t)came.bytes : (uint64_t)INT64_MIN"
    if f.request or (f.has("request") and f.section == "message") or f.fact("request_before"):
        found["REQUEST"] = "request"
    if f.made and not f.fact("promises"):
        found["NEW_COMM"] = "made"
    if word in ("WIN", "FILE"):
        found[word] = "comm->id"
    if f.section == "file" and f.has("offset") and moved:
        found["OFFSET"] = "(uint64_t)offset"
    if whose(f):
        found["FROM"] = whose(f)
    return found, before


class Shapes:
    """The functions that write records: one for all wrappers that record the same."""

    def __init__(self):
        self.code, self.declarations, self.known = [], [], {}

    def of(self, f):
        found, before = pieces(f)
        text = " ".join([*found.values(), *before])
        words = set(re.findall(r"(?<![.>])\b\w+", text))
        needed = [a for a in f.arguments if a in words and a not in (f.comm, "status", "flag", "request", *MADE)]
        special = [v for v in ("flag", "status", "request", "made", "number", "wide", "fortran") if v in words]
        comm = "comm" in words
        key = (tuple(found.items()), tuple(before), tuple(needed), bool(f.request))
        if key not in self.known:
            name = f"record_{len(self.known)}"
            parameters = ["const struct xs_mpi_call *call"]
            if comm:
                parameters.append("struct xs_mpi_comm *comm")
            for a in needed:
                kind = KINDS.get(a)
                parameters.append(f"const void *{a}" if not kind else f"{TYPES.get(kind, 'uint64_t')} {a}")
            types = {"flag": "int32_t", "status": "const void *", "request": "uint64_t", "made": "uint64_t", "number": "uint32_t",
                     "wide": "bool", "fortran": "bool"}
            parameters += [f"{types[v]} {v}" for v in special]
            lines = [f"/* {' '.join(found) or 'no more than the call'} */",
                     f"void {name}({', '.join(parameters)})", "{"]
            self.declarations.append(lines[1] + ";")
            lines += [f"\t{line}" for line in before]
            if found:
                lines += ["\tconst uint64_t word[] = {"] + [f"\t\t{e}," for e in found.values()] + ["\t};\n"]
                order = " | ".join([f"1u << XS_MPI_{w}" for w in found] + (["XS_MPI_MAKES"] if f.request else []))
                lines += [f"\txs_mpi_write(call, {order}, word, {len(found)});"]
            else:
                lines += ["\txs_mpi_write(call, 0, NULL, 0);"]
            self.code += lines + ["}\n"]
            self.known[key] = name
        return self.known[key], comm, needed, special


class Language:
    """How a wrapper of a language looks and reads its arguments."""

    def __init__(self, fortran):
        self.fortran = fortran

    def read(self, f, name):
        kind = f.kind(name)
        if not kind:
            return f"(const void *){name}"
        return f"{'F_' if self.fortran else 'C_'}{kind}({name})"


def wrapper(f, number, symbol, shapes, language):
    """The wrapper of one function for one language."""
    fortran = language.fortran
    words = list(f.arguments)
    if fortran:
        words = [w for w in words if not (f.fact("main_arguments") and w in ("argc", "argv"))]
        words += ["ierror"] + [f"length_{i}" for i in range(sum(w in f.texts for w in words))]
    parameters = ", ".join(f"xs_word {a}" for a in words) or "void"
    types = ", ".join("xs_word" for a in words) or "void"
    record, comm, needed, special = shapes.of(f)
    returns = "void" if fortran else "int"
    lines = [f"XS_EXPORT {returns} {symbol}({parameters})", "{", f"\tstatic {returns} (*real)({types});", "\tstruct xs_mpi_call call;"]
    if comm:
        lines.append("\tstruct xs_mpi_comm *found;")
    if f.collective:
        lines.append("\tuint32_t number;")
    passed = list(words)
    if f.status:
        lines.append("\tuint64_t own[XS_MPI_STATUS_MAX / 8];")
    if f.frees:
        lines.append("\tuint64_t gone;")
    if f.waits:
        lines.append("\tstruct xs_mpi_wait wait;")
    if f.fact("request_before"):
        lines.append("\tuint64_t before = 0;")
    lines += ["", "\tif (__builtin_expect(!real, 0))",
              f'\t\t*(void **)&real = xs_mpi_find("{symbol}", __builtin_return_address(0));']

    def call(arguments):
        text = f"real({', '.join(arguments)})"
        return text

    def result(arguments):
        if not fortran:
            return [f"\txs_mpi_leave(&call, {call(arguments)});"]
        return [f"\t{call(arguments)};", "\txs_mpi_leave(&call, ierror ? *(const int32_t *)ierror : 0);"]

    straight = ["{"] if f.collective else [""]
    if f.collective:
        straight += ["\t\tif (xs_mpi_inside)", f"\t\t\treturn {call(words)};", f"\t\tcall.result = {call(words)};",
                     *late(f, language, "\t\t", "call.result"), "\t\treturn call.result;", "\t}"]
    else:
        straight.append(f"\t\treturn {call(words)};")
    if f.collective:
        # an invalid handle is an error that MPI tells: it is not asked about one that no call has succeeded with
        lines += [f"\tfound = xs_mpi_object(XS_MPI_KIND_COMM, {language.read(f, f.comm)}, false);",
                  "\tnumber = xs_mpi_is_inside(XS_FRAME_MARK()) ? 0 : xs_mpi_collective(found);"]
    hook = hooks(f, language)
    if fortran or hook:
        # whatever is recorded, communicators must be known; and what the library calls by itself is no call of the application's
        lines += always(f, language, words, passed, hook, record, comm, needed, special, result, number)
        return "\n".join(lines)
    lines += [f"\tif (!xs_mpi_enter(&call, {number}, XS_FRAME_MARK())) {straight[0]}".rstrip(), *straight[1:]]
    lines += recorded(f, language, words, passed, record, comm, needed, special, result)
    lines += ["\treturn call.result;", "}\n"]
    return "\n".join(lines)


def late(f, language, indent, failed):
    """Statements after a collective call: on a communicator that was not known before, and where it failed."""
    return [f"{indent}if (__builtin_expect(!found->id, 0))",
            f"{indent}\tnumber = xs_mpi_collective_late(&found, {language.read(f, f.comm)}, {failed});",
            f"{indent}if (__builtin_expect({failed}, 0))",
            f"{indent}\tnumber = xs_mpi_collective_failed(found, number, {failed});"]


def hooks(f, language):
    """Statements after the call that keep our knowledge right, while recording or not: text with `call.result`."""
    prefix, length = ("F_", "length_0") if language.fortran else ("C_", "-1")
    if f.fact("begins"):
        return ["xs_mpi_begin();"]
    if f.fact("begins_session"):
        return [f"xs_mpi_begin_session({prefix}SESSION(session));"]
    if f.made and not f.fact("finds"):
        how, parent = "0", f"xs_mpi_comm({language.read(f, f.comm)})->id" if f.comm and not f.fact("two_sided") else "0"
        if f.fact("tagged"):
            how = f"1000u + (uint32_t){language.read(f, 'tag')}"
        if f.has("stringtag"):
            how = f"xs_mpi_text((const char *)stringtag, {length})"
        if f.fact("promises"):
            return [f"xs_mpi_comm_promised({language.read(f, f.comm)}, {parent}, (const void *)newcomm, {'true' if language.fortran else 'false'});"]
        return [f"xs_mpi_comm_made({prefix}OUT_COMM({f.made}), {parent}, {how});"]
    if f.fact("children"):
        out = "fh" if f.section == "file" else "win"
        kind = FINDERS[out]
        return [f"xs_mpi_child_made({prefix}OUT_{kind}({out}), xs_mpi_comm({language.read(f, 'comm')}), XS_MPI_{kind});"]
    if f.fact("names"):
        return [f"xs_mpi_comm_named(xs_mpi_comm({language.read(f, 'comm')}), (const char *)comm_name, {length});"]
    return ["GONE"] if f.frees else []


def recorded(f, language, words, passed, record, comm, needed, special, result):
    """From the call on, when it is recorded."""
    prefix = "F_" if language.fortran else "C_"
    lines, passed = [], list(passed)
    wait = f.waits
    fortran = "true" if language.fortran else "false"
    if f.status:
        kind = "F08" if language.fortran == "f08" else "F" if language.fortran else "C"
        lines.append(f"\tstatus = xs_mpi_status(status, own, XS_MPI_IGNORE_{kind});")
    if wait:
        number = language.read(f, f.first("count", "incount")) if f.first("count", "incount") else "1"
        if f.first("count", "incount"):
            number = f"{prefix}INT({f.first('count', 'incount')})"
        requests, statuses = f.first("request", "array_of_requests"), f.first("status", "array_of_statuses")
        many = "true" if statuses == "array_of_statuses" else "false"
        kind = "F08" if language.fortran == "f08" else "F" if language.fortran else "C"
        lines.append(f"\t{statuses} = xs_mpi_wait_begin(&wait, {number}, {requests}, {statuses}, {many}, XS_MPI_IGNORE_{kind}, {fortran});")
    if f.fact("request_before"):
        lines.append(f"\tbefore = {prefix}OUT_REQUEST(request);")
    if f.fact("matched") and comm:
        lines.append(f"\tfound = xs_mpi_message({prefix}OUT_MESSAGE(message));")
    lines += result(passed)
    if f.collective:
        lines += late(f, language, "\t", "call.result")
    elif f.comm and comm:
        lines.append(f"\tfound = xs_mpi_object(XS_MPI_KIND_{FINDERS.get(f.comm, 'COMM')}, {language.read(f, f.comm)}, !call.result);")
    give = ["&call"] + (["found"] if comm else []) + [language.read(f, a) for a in needed]
    for v in special:
        give.append({
            "flag": f"!call.result && {prefix}OUT_INT(flag)" if f.has("flag") else "1",
            "status": "(const void *)status",
            "request": "before" if f.fact("request_before") else
                       "C_REQUEST(request)" if not language.fortran and f.section == "message" and not f.request else
                       f"{prefix}OUT_REQUEST(request)",
            "made": f"call.result ? 0 : xs_mpi_comm({prefix}OUT_COMM({f.made}))->id" if f.made else "0",
            "number": "number", "wide": "true" if f.wide else "false", "fortran": fortran,
        }[v])
    if wait:
        # of a call that failed nothing is looked at: any of its arguments may have been what is wrong
        flag = f"!call.result && {prefix}OUT_INT(flag)" if f.has("flag") else "1"
        if f.has("outcount"):
            lines.append(f"\txs_mpi_wait_end(&call, &wait, call.result ? 0 : {prefix}OUT_INT(outcount), (const int32_t *)array_of_indices);")
        elif f.has("indx"):
            lines.append(f"\txs_mpi_wait_one(&call, &wait, {flag}, call.result ? 0 : {prefix}OUT_INT(indx));")
        else:
            lines.append(f"\txs_mpi_wait_end(&call, &wait, {flag} ? {'wait.count' if f.first('count') else '1'} : 0, NULL);")
        return lines
    if f.fact("starts") and f.has("request"):
        lines.append("\txs_mpi_started(&call, before);")
    if f.fact("starts") and f.has("array_of_requests"):
        lines.append(f"\txs_mpi_started_all(&call, {prefix}INT(count), (const void *)array_of_requests, {fortran});")
    # before the call's own record, whose reader names it
    if comm and f.comm in (*COMMUNICATORS, "intercomm"):
        lines.append("\tif (__builtin_expect(!atomic_load_explicit(&found->is_told, memory_order_relaxed), 0))\n\t\txs_mpi_comm_tell(found);")
    lines.append(f"\t{record}({', '.join(give)});")
    if f.request and f.has("source", "comm") or f.fact("matches"):
        handle = "REQUEST(request)" if f.request else "MESSAGE(message)"
        condition = "!call.result && found != &xs_mpi_world_comm" + ("" if not f.request else f" && {language.read(f, 'source')} == xs_mpi_abi.any_source")
        lines.append(f"\tif ({condition})\n\t\txs_mpi_note({prefix}OUT_{handle}, found);")
    if f.fact("matched") and f.request:
        lines.append(f"\tif (!call.result && found != &xs_mpi_world_comm)\n\t\txs_mpi_note({prefix}OUT_REQUEST(request), found);")
    return lines


def always(f, language, words, passed, hook, record, comm, needed, special, result, number):
    """A wrapper whose work is to be done whether it records or not."""
    fortran = language.fortran
    prefix = "F_" if fortran else "C_"
    gone = hook == ["GONE"]
    name = f.frees
    kind = FINDERS.get(name, "COMM")
    after = [] if gone else [f"\t\t{line}" for line in hook]
    lines = ["\tif (xs_mpi_is_inside(XS_FRAME_MARK())) {"]
    lines += [f"\t\treal({', '.join(words)});", "\t\treturn;", "\t}"] if fortran else [f"\t\treturn real({', '.join(words)});", "\t}"]
    if gone:
        lines.append(f"\tgone = {prefix}OUT_{kind}({name});")
    lines.append(f"\tif (!xs_mpi_enter(&call, {number}, XS_FRAME_MARK())) {{")
    if gone:
        lines.append("\t\txs_mpi_comm_gone(gone);")
    lines.append("\t\txs_mpi_inside = XS_FRAME_MARK();")
    if fortran:
        lines += [f"\t\treal({', '.join(words)});", "\t\txs_mpi_inside = 0;"]
        failed = "(ierror ? *(const int32_t *)ierror : 0)"
    else:
        lines += [f"\t\tcall.result = real({', '.join(words)});", "\t\txs_mpi_inside = 0;"]
        failed = "call.result"
    if f.collective:
        lines += late(f, language, "\t\t", failed)
    if after:
        lines += [f"\t\tif (!({failed})) {{"] + [f"\t{line}" for line in after] + ["\t\t}"]
    lines += ["\t\treturn;" if fortran else "\t\treturn call.result;", "\t}"]

    def inside(arguments):
        middle = result(arguments)
        extra = ["\txs_mpi_inside = XS_FRAME_MARK();", middle[0]] + (["\txs_mpi_inside = 0;"] + middle[1:] if fortran else ["\txs_mpi_inside = 0;"])
        if after:
            extra += ["\tif (!call.result) {"] + after + ["\t}"]
        return extra

    if gone:
        lines.append("\txs_mpi_comm_gone(gone);")
    lines += recorded(f, language, words, passed, record, comm, needed, special, inside)
    lines += ["}\n"] if fortran else ["\treturn call.result;", "}\n"]
    return lines


def main():
    functions, out = read_table(Path(sys.argv[1])), Path(sys.argv[2])
    names = sorted([f"MPI_{f.name}" for f in functions] + [f"MPI_{f.name}_c" for f in functions if f.large]) + [*INSIDE]
    header = [NOTE, "enum {"] + [f"\tFN_{n.replace('::', '_')}," for n in names] + ["\tFN_mpi_count", "};", ""]
    (out / "mpi_functions.h").write_text("\n".join(header))
    code = [NOTE, "#include <stdint.h>", "extern const char *const xs_mpi_names[];", "extern const uint32_t xs_mpi_count;",
            "const char *const xs_mpi_names[] = {"]
    code += [f'\t"{n}",' for n in names] + ["};", f"const uint32_t xs_mpi_count = {len(names)};", ""]
    (out / "mpi_names.c").write_text("\n".join(code))
    shapes, wrappers, fortran, optional = Shapes(), [], [], []
    for f in functions:
        name = f"MPI_{f.name}"
        wrappers.append(wrapper(f, f"FN_{name}", name, shapes, Language(None)))
        if f.optional:
            optional.append(name)
        if f.large:
            wrappers.append(wrapper(f.in_form(True), f"FN_{name}_c", f"{name}_c", shapes, Language(None)))
            optional.append(f"{name}_c")
        for suffix, language, wide in f.in_fortran():
            number = f"FN_{name}_c" if wide else f"FN_{name}"
            fortran.append(wrapper(f.in_form(wide), number, name.lower() + suffix, shapes, Language(language)))
    top = [NOTE, '#include "mpi_wrap.h"', '#include "mpi_records.h"\n', '#pragma GCC diagnostic ignored "-Wmissing-prototypes"\n']
    (out / "mpi_records.h").write_text("\n".join([NOTE, *shapes.declarations, ""]))
    (out / "mpi_fortran.c").write_text("\n".join(top + fortran))
    code = top + shapes.code + wrappers + ["/* what need not be in every library: see mpi_probe.c */"]
    code += [f'static void *probe_{n}(void)\n{{\n\treturn xs_mpi_probe("{n}", (void *){n});\n}}\n' for n in optional]
    code += ["const struct xs_mpi_optional xs_mpi_optional[] = {"] + [f'\t{{ "{n}", probe_{n} }},' for n in optional]
    code += ["};", f"const uint32_t xs_mpi_optional_count = {len(optional)};", ""]
    (out / "mpi_wrap.c").write_text("\n".join(code))


if __name__ == "__main__":
    main()
