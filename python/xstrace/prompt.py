"""The prompt of xstrace-query: SQL line by line, and commands that begin with a dot."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from . import answers, library
from .cli import printable
from .query import Failed, ask, explain
from .tables import TABLES, VIEWS

FIRST, MORE = "xstrace> ", "    ...> "
LINES = 10_000  # of history
WORDS = (
    "select from where group by order limit having distinct count sum min max avg median quantile_disc join left using on as "
    "and or not in like between is null case when then else end with desc over partition lead lag"
).split()
HELP = """\
SQL ends with ; and may have several lines. The name of a query of the library is enough for it.
.tables           the tables and views
.schema [TABLE]   columns and their types
.list             the queries of the library
.show NAME        the SQL of a query of the library
.format FORMAT    table, csv or json
.quit             as Ctrl-D"""


class Prompt:
    """Reads and answers until the end of the input."""

    def __init__(self, tables, form):
        self.tables = tables
        self.form = form if form not in answers.BINARY else "table"
        self.commands = {
            ".tables": self._tables,
            ".schema": self._schema,
            ".list": lambda _: print("\n".join(f"{one.name}: {one.doc}" for one in library.queries())),
            ".show": lambda name: print(library.find(name).sql),
            ".format": self._format,
            ".help": lambda _: print(HELP),
        }

    def run(self):
        """The exit status."""
        signal.signal(signal.SIGINT, signal.default_int_handler)  # of the line, or of the query: it ends nothing else
        print(f"{len(self.tables.paths)} trace{'s' * (len(self.tables.paths) != 1)}; .help says what can be asked")
        with _history(self._complete):
            is_new_line_due = False
            while True:
                try:  # also around what follows an interruption: another may come at once
                    if is_new_line_due:
                        is_new_line_due = False
                        print()
                    query = self._read()
                    if query is None or query in (".quit", ".exit"):
                        return 0
                    self._answer(query)
                except KeyboardInterrupt:
                    is_new_line_due = True

    def _read(self):
        """A statement or a command; None at the end of the input."""
        lines = []
        while True:
            try:
                line = input(MORE if lines else FIRST)
            except EOFError:
                print()
                return None
            if not lines and (not line.strip() or line.startswith(".") or line.strip().rstrip(";") in library.names()):
                return line.strip().rstrip(";")
            lines.append(line)
            if line.rstrip().endswith(";"):
                return "\n".join(lines)

    def _answer(self, query):
        if not query:
            return
        try:
            if query.startswith("."):
                word, _, rest = query.partition(" ")
                if word not in self.commands:
                    raise Failed(f"no command {word}; .help shows them")
                self.commands[word](rest.strip())
                return
            relation = ask(self.tables, query)
            if relation is not None:
                sys.stdout.flush()
                answers.write(relation, self.form, sys.stdout.buffer)
        except (Failed, library.NoQuery, answers.CannotWrite) as error:
            print(printable(str(error)))
        except BrokenPipeError:
            raise
        except Exception as error:
            print(explain(error))

    def _tables(self, _):
        print("tables  " + " ".join(TABLES) + "\nviews   " + " ".join(VIEWS))

    def _schema(self, name):
        if name and name not in TABLES and name not in VIEWS:
            raise Failed(f"no table {name}; .tables shows them")
        for table in [name] if name else [*TABLES, *VIEWS]:
            relation = getattr(self.tables, table)
            columns = ", ".join(f"{column} {kind}" for column, kind in zip(relation.columns, relation.types))
            print(f"{table}({columns})")

    def _format(self, form):
        if form not in answers.FORMATS or form in answers.BINARY:
            raise Failed("formats are table, csv, json")
        self.form = form

    def _complete(self, text):
        words = [*TABLES, *VIEWS, *library.names(), *self.commands, *WORDS]
        columns = {column for table in TABLES for column in getattr(self.tables, table).columns}
        return sorted(word for word in {*words, *columns} if word.startswith(text))


@contextlib.contextmanager
def _history(complete):
    """Lines that can be edited, completed and had again, in this session and later ones; where there is readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    path = os.path.join(state, "xstrace", "query-history")
    found = []

    def completer(text, number):
        if not number:
            found[:] = complete(text)
        return found[number] if number < len(found) else None

    readline.set_completer(completer)
    readline.set_completer_delims(" \t\n,()=<>*+/;'\"")
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(LINES)
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            readline.write_history_file(path)
