#!/usr/bin/env python3
"""Makes manual pages and shells' completions of what the programs' --help prints.

usage: help_pages.py TOOL VERSION MAN BASH ZSH FISH -- COMMAND...

The four are the files to write. COMMAND is the program; it is asked for --help (xstrace also for the examples of each
topic). Meson runs this at build time.
"""

import os
import re
import subprocess
import sys
from typing import NamedTuple

NAME = re.compile(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*")
FILES, FOLDERS = ("FILE", "SCRIPT", "PATH"), ("DIR", "RESULT_DIR")
TITLES = {
    "xstrace": "trace programs that use GPUs and accelerator libraries",
    "xstrace-merge": "make one trace of many, on one timeline",
    "xstrace-check": "prove that no viewer can misread a trace",
    "xstrace-summary": "say in ten lines what a trace holds",
    "mergetrace.py": "merge traces, with the options of unitrace's script",
    "analyzeperfmetrics.py": "charts and reports of hardware metrics",
    "roofline.py": "how near kernels come to what a device can do",
    "xstrace-tables": "write a trace as tables in Parquet",
    "xstrace-query": "ask traces by SQL",
    "xstrace-report": "write a page that tells why a program is slow",
    "xstrace-diff": "tell what became slower between two runs",
    "xstrace-path": "find the longest chain of what had to wait for what",
    "xstrace-open": "show a trace in Perfetto's viewer",
    "categorize.py": "make of a schema the JSON that summary.py takes",
    "summary.py": "sum up the times of kernels by category",
    "uniview.py": "show a trace with the metrics of its kernels",
}
SEE = ("xstrace", "xstrace-merge", "xstrace-check", "xstrace-summary", "xstrace-query", "xstrace-report", "xstrace-open")


class Option(NamedTuple):
    """names: with dashes; argument: "" for none; maybe: it is given by "=" or not at all."""

    names: list
    argument: str
    maybe: bool
    text: str

    @property
    def choices(self):
        return self.argument.split("|") if "|" in self.argument else []


def parse_row(line):
    """A line of a help that shows an option; None: it shows none."""
    if not re.match(r" {0,8}-{1,2}[A-Za-z]", line):
        return None
    head, _, text = line.strip().partition("  ")
    if not text:  # xstrace's: a head too long for its column has one blank behind it
        found = re.match(r"(--\S+(?: \[-\w\])?(?: (?:[A-Z]{2,}|[a-z-]+\|\S+))?)(?: (.*))?$", head)
        head, text = (found[1], found[2] or "") if found else (head, "")
    names = list(dict.fromkeys(NAME.findall(re.sub(r"\[=.*", "", head))))
    maybe = re.search(r"\[=([^\]]*)\]", head)
    rest = re.sub(r"\[-\w\]|\[=[^\]]*\]", "", head).split(", ")[-1].split(maxsplit=1)
    return Option(names, maybe[1] if maybe else rest[1].strip() if len(rest) > 1 else "", bool(maybe), text.strip())


class Help:
    """What a program's --help says: about (lines), groups of [title, options], end (lines)."""

    def __init__(self, text):
        self.usage, self.about, self.groups, self.end = [], [], [], []
        option = None
        for line in text.splitlines():
            row = parse_row(line)
            if row:
                if not self.groups:
                    self.groups.append(["Options", []])
                self.groups[-1][1].append(row)
                option = True
            elif line.lower().startswith("usage:"):
                self.usage.append(line.split(":", 1)[1].strip())
            elif re.match(r"[A-Z][\w ,]*:$|options:$", line):
                self.groups.append([line[:-1].capitalize() if line[0].islower() else line[:-1], []])
                option = None
            elif option and line.startswith("      ") and line.strip():  # the text goes on
                rows = self.groups[-1][1]
                rows[-1] = rows[-1]._replace(text=f"{rows[-1].text} {line.strip()}".strip())
            elif not any(rows for _, rows in self.groups):
                self.about.append(line)
            else:
                self.end.append(line)
        self.groups = [group for group in self.groups if group[1]]

    def options(self):
        return [option for _, rows in self.groups for option in rows]


def ask(command, *arguments):
    env = {**os.environ, "COLUMNS": "2000", "LC_ALL": "C.UTF-8"}
    return subprocess.run([*command, *arguments], check=True, capture_output=True, text=True, env=env, timeout=60).stdout


# ---- manual pages ----


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def paragraphs(lines):
    """Lines as they stand where they are indented, else filled."""
    made = []
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        rows = [roff(line) for line in block.splitlines() if line.strip()]
        fixed = any(line.startswith(" ") for line in block.splitlines())
        made += [".PP"] * bool(made) + ([".nf", *rows, ".fi"] if fixed else rows)
    return made


def examples(command):
    """The examples of each topic of xstrace's."""
    words = re.findall(r"^  (\w+) ", ask(command, "--help", "topics"), re.M)
    return [line[2:] for word in words for line in ask(command, "--help", word).split("Examples:\n")[1].splitlines()]


def man(tool, version, command):
    parsed = Help(ask(command, "--help"))
    out = [f'.TH "{tool.upper()}" "1" "" "xstrace {version}" "User Commands"', ".SH NAME", f"{tool} \\- {roff(TITLES[tool])}"]
    out += [".SH SYNOPSIS", *(roff(line) for line in parsed.usage)]
    if [line for line in parsed.about if line.strip()]:
        out += [".SH DESCRIPTION", *paragraphs(parsed.about)]
    out.append(".SH OPTIONS")
    for heading, rows in parsed.groups:
        out += [f".SS {roff(heading)}"] if len(parsed.groups) > 1 else []
        for option in rows:
            argument = (
                f"[=\\fI{roff(option.argument)}\\fR]" if option.maybe else f" \\fI{roff(option.argument)}\\fR" if option.argument else ""
            )
            out += [".TP", ", ".join(f"\\fB{roff(name)}\\fR" for name in option.names) + argument, roff(option.text) or "\\&"]
    if tool == "xstrace":
        out += [".SH EXAMPLES", ".nf", *map(roff, examples(command)), ".fi"]
    notes = [line for line in parsed.end if line.strip()]
    if notes:
        out += [".SH NOTES", *paragraphs(parsed.end)]
    return "\n".join([*out, ".SH SEE ALSO", roff(", ".join(f"{name}(1)" for name in SEE if name != tool)), ""])


# ---- completion; behind xstrace's options comes a command with completions of its own ----


def kind(option):
    """What completes an option's argument: a list of words, "file", "dir" or None."""
    if option.choices:
        return option.choices
    first = option.argument.split(" ")[0]
    return "file" if first in FILES else "dir" if first in FOLDERS else None


def bash_case(options):
    """One line for each way in which arguments are completed."""
    replies, cases = {}, []
    for option in options:
        how = kind(option)
        reply = {"file": "_xstrace_paths -f", "dir": "_xstrace_paths -d", None: ""}.get(how if isinstance(how, str) else None)
        if isinstance(how, list):
            reply = f"COMPREPLY=($(compgen -W '{' '.join(how)}' -- \"$cur\"))"
        replies.setdefault(reply, []).extend(option.names)
    for reply, names in replies.items():
        cases.append(f"\t{' | '.join(names)})\n\t\t{reply + chr(10) + chr(9) * 2 if reply else ''}return\n\t\t;;")
    return "\n".join(cases)


BEHIND = """\tlocal i=1
	while ((i < COMP_CWORD)); do
		case ${COMP_WORDS[i]} in
		%s)
			((i++))
			[[ ${COMP_WORDS[i]} == "=" ]] && ((i++))
			;;
		-* | =) ;;
		*)
			if [[ ${COMP_WORDS[i - 1]} == --help ]]; then
				return
			elif declare -F _command_offset >/dev/null; then
				_command_offset "$i"
			else
				_xstrace_paths -f
			fi
			return
			;;
		esac
		((i++))
	done
"""


def bash(tool, version, command):
    options = Help(ask(command, "--help")).options()
    takes = [o for o in options if o.argument and not o.maybe]
    long = [n + "=" * (o.maybe and n != "--help") for o in options for n in o.names if n.startswith("--")]
    function = "_" + re.sub(r"\W", "_", tool)
    words = topics_of(tool, command)
    topics = f"\t--help)\n\t\tCOMPREPLY=($(compgen -W '{' '.join(words)}' -- \"$cur\"))\n\t\treturn\n\t\t;;\n" if words else ""
    behind = BEHIND % " | ".join(n for o in takes for n in o.names) if tool == "xstrace" else ""
    commands = '\n\t\tCOMPREPLY+=($(compgen -c -- "$cur"))' if tool == "xstrace" else ""
    return f"""# completion of {tool} {version} for bash
_xstrace_paths() {{
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}}
{function}() {{
	local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}
	COMPREPLY=()
	[[ $cur == "=" ]] && cur=
	[[ $prev == "=" && COMP_CWORD -gt 1 ]] && prev=${{COMP_WORDS[COMP_CWORD - 2]}}
{behind}	case $prev in
{topics}{bash_case(takes)}
	esac
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "{" ".join(long)}" -- "$cur"))
		[[ ${{COMPREPLY[0]-}} == *= ]] && compopt -o nospace 2>/dev/null
	else
		_xstrace_paths -f{commands}
	fi
	return 0
}}
complete -F {function} {tool}
"""


def topics_of(tool, command):
    return re.findall(r"^  (\w+) ", ask(command, "--help", "topics"), re.M) + ["topics"] if tool == "xstrace" else []


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(tool, version, command):
    specs = []
    for option in Help(ask(command, "--help")).options():
        how = kind(option)
        action = f"({' '.join(how)})" if isinstance(how, list) else {"file": "_files", "dir": "_files -/"}.get(how, " ")
        text = re.sub(r"([\[\]:\\])", r"\\\1", option.text)
        argument = option.argument.replace(":", "\\:")
        for name in option.names:
            if not option.argument:
                value = ""
            elif name == "--help":
                value = f"::topic:({' '.join(topics_of(tool, command))})"
            else:
                value = f"{'::' if option.maybe else ':'}{argument}:{action}"
            equals = "" if not option.argument or not name.startswith("--") or name == "--help" else "=-" if option.maybe else "="
            specs.append(quoted(f"*{name}{equals}[{text}]{value}"))
    rest = "'(-)1:command:_command_names -e' '*::arguments:_normal'" if tool == "xstrace" else "'*:trace:_files'"
    lines = " \\\n\t".join(specs)
    return f"#compdef {tool}\n# completion of {tool} {version} for zsh\n_arguments -S \\\n\t{lines} \\\n\t{rest}\n"


def fish(tool, version, command):
    words = topics_of(tool, command)
    lines = [f"# completion of {tool} {version} for fish"]
    if tool == "xstrace":
        lines += [f"complete -c {tool} -x -a '(__fish_complete_subcommand)'"]
    for option in Help(ask(command, "--help")).options():
        names = " ".join((f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" if len(n) == 2 else f"-o {n[1:]}") for n in option.names)
        how = kind(option)
        if option.names[0] == "--help" and words:
            value = f" -x -a '{' '.join(words)}'"
        elif not option.argument or option.maybe:
            value = ""
        elif isinstance(how, list):
            value = f" -x -a '{' '.join(how)}'"
        else:
            value = {"file": " -r -F", "dir": " -x -a '(__fish_complete_directories)'"}.get(how, " -x")
        text = option.text.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c {tool} {names}{value} -d '{text}'")
    return "\n".join([*lines, ""])


def main():
    split = sys.argv.index("--")
    tool, version, *outs = sys.argv[1:split]
    for write, out in zip((man, bash, zsh, fish), outs, strict=True):
        with open(out, "w", encoding="utf-8") as file:
            file.write(write(tool, version, sys.argv[split + 1 :]))


if __name__ == "__main__":
    main()
