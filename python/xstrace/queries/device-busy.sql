-- Each device: how long it worked at all (overlapping work counts once), and its share of the trace's time.
select trace_id, process_id, ts, dur, greatest(0, ts + dur - greatest(ts, coalesce(max(ts + dur) over before, ts))) as fresh
from work
window before as (partition by process_id order by ts, dur desc, slice_id rows between unbounded preceding and 1 preceding)
-- then
select w.trace_id, coalesce(d.name, p.name) as device, count(*) as commands, sum(w.dur)::bigint as work_ns, sum(w.fresh)::bigint as busy_ns,
  any_value(t.end_ns - t.begin_ns) as trace_ns, round(100.0 * sum(w.fresh) / nullif(any_value(t.end_ns - t.begin_ns), 0), 2) as percent
from mapped w join traces t using (trace_id) join processes p using (process_id) left join devices d using (process_id)
group by w.trace_id, w.process_id, device order by w.trace_id, w.process_id
