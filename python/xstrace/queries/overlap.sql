-- Each device: for how long so many of its commands ran at the same time.
select trace_id, process_id, moment, sum(change) over (partition by process_id order by moment, change rows unbounded preceding) as running,
  lead(moment) over (partition by process_id order by moment, change) as until
from (select trace_id, process_id, ts as moment, 1 as change from work union all select trace_id, process_id, ts + dur, -1 from work)
-- then
select w.trace_id, coalesce(d.name, p.name) as device, w.running, sum(w.until - w.moment)::bigint as time_ns
from mapped w join processes p using (process_id) left join devices d using (process_id)
where w.until > w.moment group by w.trace_id, w.process_id, device, w.running order by w.trace_id, w.process_id, w.running
