-- What had begun and not ended when the trace did: where each thread was.
select s.trace_id, p.pid, th.tid, s.kind, s.name, s.ts, s.dur as dur_ns, s.depth
from slices s join processes p using (process_id) join threads th using (track_id)
where s.unfinished order by s.trace_id, p.pid, th.tid, s.depth
