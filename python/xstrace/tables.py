"""Tables of traces, for SQL (DuckDB), Polars, pandas and Arrow. docs/QUERY.md has the columns.

with xstrace.open("app.4711.json") as trace:
    trace.slices.df()                                      # all slices, as pandas' DataFrame
    trace.sql("select name, sum(dur) from kernels group by name").pl()
"""

from __future__ import annotations

import contextlib
import glob
import os

from .convert import NoTables, convert_all, find_traces
from .running import is_lack_of_memory, loading
from .source import ZSTD_WINDOW
from .temporary import Directory

# table: {column: the number by whose count it is moved where several traces become one database}
TABLES = {
    "traces": {},
    "processes": {"process_id": "processes"},
    "threads": {"track_id": "threads", "process_id": "processes"},
    "devices": {"process_id": "processes"},
    "slices": {"slice_id": "slices", "track_id": "threads", "process_id": "processes", "parent_id": "slices"},
    "args": {"slice_id": "slices"},
    "flows": {"flow_id": "flows", "from_slice": "slices", "to_slice": "slices"},
    "counters": {"counter_id": "series", "track_id": "threads", "process_id": "processes"},
    "marks": {"track_id": "threads", "process_id": "processes"},
    "metadata": {},
}
VIEWS = {
    "tasks": "select * from slices where kind = 'task'",
    "calls": "select * from slices where kind = 'call'",
    "kernels": "select * from slices where kind = 'kernel'",
    "copies": "select * from slices where kind = 'copy'",
    "work": "select * from slices where kind in ('kernel', 'copy', 'device')",
    "mpi": """select s.*, p.rank from slices s join processes p using (process_id)
              where s.kind = 'call' and (s.name like 'MPI%' or s.name like 'PMPI%')""",
    "launches": """select w.slice_id, w.track_id, w.process_id, w.trace_id, w.name, w.kind, w.ts, w.dur, w.queued, w.submitted,
                     c.slice_id as call_id, c.track_id as call_track_id, c.process_id as call_process_id, c.name as call,
                     c.ts as call_ts, c.dur as call_dur
                   from (select to_slice, min(from_slice) as from_slice from flows
                         where from_slice is not null and (name is null or name not in ('submit', 'wait', 'order')) group by to_slice) f
                   join slices w on w.slice_id = f.to_slice and w.kind in ('kernel', 'copy', 'device')
                   join slices c on c.slice_id = f.from_slice and c.kind in ('call', 'task')""",
}
# what is counted of a trace, for the numbers of the ones behind it: in which table, how
COUNTED = {
    "processes": ("processes", "count(*)"),
    "threads": ("threads", "count(*)"),
    "slices": ("slices", "count(*)"),
    "flows": ("flows", "count(*)"),
    "series": ("counters", "coalesce(max(counter_id) + 1, 0)"),
}
MEMORY = 1 << 30  # bytes


def open(paths, *, cache=True, memory_limit=MEMORY, zstd_window=ZSTD_WINDOW, threads=None):  # noqa: A001 (xstrace.open)
    """The tables of one trace or of many, as one database: a Tables, which is a context manager.

    paths: a file, a directory, a pattern, or several of them. cache: keep the tables beside each trace, and use those
    that are there. memory_limit: bytes, about, for converting and for DuckDB. zstd_window: bytes that a .zst may ask for.
    threads: of DuckDB; None: as many as there are processors.
    Raises NoTables (a TraceError), with one line, where there is nothing to read, or no duckdb.
    """
    return Tables(paths, cache, memory_limit, zstd_window, threads)


class Tables:
    """The database. Its tables and views (TABLES, VIEWS) are attributes: DuckDB's relations, with df(), pl(), arrow().

    connection: DuckDB's. paths: the traces, by trace_id. said: list of str, what was amiss when they were converted, now or
    before. missing: those of them of which something is in no table. left_out: list of str, the files of directories and
    patterns that are no traces.
    """

    def __init__(self, paths, cache, memory_limit, zstd_window, threads):
        self._stack = contextlib.ExitStack()
        self._first = 0
        self.said = []
        self.left_out = []
        self._parts = []
        try:
            found = find_traces(paths)
            named = dict(found)
            for path, part, error in convert_all(found, cache, memory_limit, zstd_window):
                if part:
                    self._stack.callback(part.close)
                    self._parts.append(part)
                    self.said += part.said
                elif named[path]:
                    raise error
                else:
                    self.left_out.append(str(error))
            if not self._parts:
                raise NoTables(self.left_out[0])
            self.paths = [part.path for part in self._parts]
            self.missing = [part.path for part in self._parts if part.status]
            load_duckdb()  # takes time in which a process may be killed: nothing is to be left then
            spill = self._stack.enter_context(Directory("xstrace-query."))
            self.connection = database(memory_limit, spill, threads)
            self._stack.callback(self.connection.close)
            if len(self._parts) > 1:
                self._create_parts()
            self._create_views()
        except BaseException:
            self._stack.close()
            raise

    def sql(self, query, params=None):
        """DuckDB's relation of the query. params: values of ? or $name in it."""
        return self.connection.sql(query, params=params)

    def is_lossy(self):
        """Was something of a trace left out? What was cut off its file was never there."""
        return bool(self.connection.execute("select 1 from traces where left_out > 0 limit 1").fetchall())

    def faults(self):
        """Lines (list of str) that say what of the traces is in no table, and which files are no traces."""
        return [*self.said, *(f"{line}; left out" for line in self.left_out)]

    def close(self):
        """Lets go of the tables; relations can no longer be read."""
        self._stack.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def __getattr__(self, name):
        if name in TABLES or name in VIEWS:
            return self.connection.sql(f"select * from {name}")
        raise AttributeError(f"Tables has no {name!r}: tables are {', '.join([*TABLES, *VIEWS])}")

    def __dir__(self):
        return sorted({*super().__dir__(), *TABLES, *VIEWS})

    def number(self, first):
        """Gives the traces other numbers: trace_id counts from `first` on."""
        self._first = first
        for view in (*VIEWS, *TABLES):
            self.connection.execute(f"drop view {view}")
        self._create_views()

    # ---- views ----

    def _files(self, table):
        """The table's files, with the name of each as the column `filename`."""
        paths = [glob.escape(os.path.join(part.directory, table + ".parquet")) for part in self._parts]
        quoted = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
        return f"read_parquet([{quoted}], filename = true)"

    def _create_views(self):
        for table, columns in TABLES.items():
            if len(self._parts) == 1:
                query = f"select * exclude (filename), {self._first}::bigint as trace_id from {self._files(table)}"
            else:
                moved = ", ".join(f"t.{column} + p.{of} as {column}" for column, of in columns.items())
                replace = f" replace ({moved})" if moved else ""
                query = f"""select t.* exclude (filename){replace}, p.trace_id from {self._files(table)} t
                            join parts p on t.filename = p.directory || '/{table}.parquet'"""
            self.connection.execute(f"create view {table} as {query}")
        for view, query in VIEWS.items():
            self.connection.execute(f"create view {view} as {query}")

    def _create_parts(self):
        """The table `parts`: of each trace, by how much its numbers are moved so that they are different in all."""
        counts = {part.directory: dict.fromkeys(COUNTED, 0) for part in self._parts}
        for what, (table, count) in COUNTED.items():
            query = f"select filename, {count} from {self._files(table)} group by filename"
            for file, number in self.connection.execute(query).fetchall():
                counts[os.path.dirname(file)][what] = number
        moved = dict.fromkeys(COUNTED, 0)
        rows = []
        for number, part in enumerate(self._parts):
            rows.append((part.directory, self._first + number, *moved.values()))
            moved = {what: moved[what] + counts[part.directory][what] for what in COUNTED}
        columns = ", ".join(f"{what} bigint" for what in COUNTED)
        self.connection.execute(f"create table parts(directory varchar, trace_id bigint, {columns})")
        self.connection.executemany(f"insert into parts values ({', '.join('?' * (2 + len(COUNTED)))})", rows)


@contextlib.contextmanager
def explained():
    """Within it an error of DuckDB's becomes NoTables, with one line."""
    with loading():
        import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise NoTables("its tables need more memory: raise --memory-limit, or make room in $TMPDIR") from None
    except duckdb.Error as error:
        raise NoTables(f"its tables cannot be read: {str(error).splitlines()[0]}") from None


def load_duckdb():
    """The module. Raises NoTables where there is none."""
    try:
        with loading():
            import duckdb
    except ImportError as error:
        if is_lack_of_memory(error):
            raise MemoryError from None
        raise NoTables("SQL needs DuckDB: pip install duckdb") from None
    return duckdb


def database(memory_limit, spill=None, threads=None):
    """DuckDB's connection to a database in memory, of about so many bytes. spill: a directory for what has no room.

    Raises NoTables where there is no duckdb.
    """
    duckdb = load_duckdb()
    config = {
        "memory_limit": f"{max(memory_limit, 64 << 20)}B",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "false",
    }
    if spill:
        config["temp_directory"] = spill
    if threads:
        config["threads"] = str(threads)
    connection = duckdb.connect(":memory:", config=config)
    # its bars of what takes longer than two seconds go to stdout, whatever that is
    connection.execute("set enable_progress_bar = false")
    return connection
