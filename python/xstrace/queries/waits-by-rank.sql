-- Each rank: how long it was in MPI, and in which calls most of that.
select trace_id, process_id, rank, name, count(*) as calls, sum(self) as total from mpi group by all
-- then
select any_value(w.rank) as rank, any_value(p.host) as host, any_value(p.pid) as pid, sum(w.calls)::bigint as calls, sum(w.total)::bigint as mpi_ns,
  round(100.0 * sum(w.total) / nullif(any_value(t.end_ns - t.begin_ns), 0), 2) as percent,
  arg_max(w.name, w.total) as most_in, max(w.total)::bigint as most_ns
from mapped w join processes p using (process_id) join traces t on t.trace_id = w.trace_id
group by w.process_id order by rank, host, pid
