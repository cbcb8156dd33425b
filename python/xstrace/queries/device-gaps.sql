-- The longest times in which a device had nothing to do between two commands, and what came before and after.
select trace_id, process_id, ts, name, ts + dur as ended, max(ts + dur) over before as idle_from,
  arg_max(name, ts + dur) over before as previous
from work
window before as (partition by process_id order by ts, dur desc, slice_id rows between unbounded preceding and 1 preceding)
-- then
select w.trace_id, coalesce(d.name, p.name) as device, w.ts - w.idle_from as gap_ns, w.idle_from as from_ts, w.previous as after, w.name as before
from mapped w join processes p using (process_id) left join devices d using (process_id)
where w.ts > w.idle_from order by gap_ns desc, from_ts limit 100
