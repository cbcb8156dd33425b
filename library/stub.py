"""Writes xstrace/stub.h from xstrace/xstrace.h: the same types, and functions that do nothing.

stub.py XSTRACE_H OUTPUT
"""

import re
import sys

SAME = {  # what needs no collector: the stub answers as the library does where nothing is traced
    "xstrace_result_text": 'return "xstrace was left out when this program was built"',
    "xstrace_why": 'return "xstrace was left out when this program was built"',
    "xstrace_version": 'return "stub"',
    "xstrace_type_name": "return NULL",
    "xstrace_type_of": "return -1",
}


def body(returned, name):
    if name in SAME:
        return SAME[name]
    if returned == "void":
        return ""
    if returned == "int":
        return "return XSTRACE_OFF" if name != "xstrace_device_type_of" else "return XSTRACE_DEVICE_CPU"
    if returned == "bool":
        return "return false"
    if returned.endswith("*"):
        return "return NULL"
    if returned.startswith("struct"):
        return f"{returned} none = {{ 0, 0 }}; return none"
    return f"return ({returned})0"


def stub(found):
    prototype = " ".join(found[1].split())
    returned, name, arguments = re.fullmatch(r"(.*?[ *])(\w+)\((.*)\)", prototype).groups()
    names = [re.search(r"(\w+)$", word)[1] for word in arguments.split(",") if arguments != "void"]
    given = [f"(void){word};" for word in names]
    # the place for a result is always filled
    given += [f"if ({word}) *{word} = NULL;" for word in names if word == "ret" and "**ret" in arguments]
    said = body(returned.strip(), name)
    return f"static inline {prototype}\n{{\n\t{' '.join(given)}\n\t{said};\n}}"


def main():
    text = open(sys.argv[1]).read()
    _, _, rest = text.partition("*/\n")
    rest = re.sub(r"/\* [^*]* \*/\n#define XSTRACE_NOPLT\n.*?#define XSTRACE_API .*?\n", "", rest, flags=re.S)
    rest = re.sub(r"XSTRACE_API ([^;]+);", stub, rest)
    with open(sys.argv[2], "w") as out:
        out.write("/* Made from xstrace.h: for programs that are built without xstrace. */\n" + rest)


main()
