-- For how long so many commands had been enqueued and were not finished, of each device.
select trace_id, process_id, moment, sum(change) over (partition by process_id order by moment, change rows unbounded preceding) as depth,
  lead(moment) over (partition by process_id order by moment, change) as until
from (select trace_id, process_id, least(call_ts, ts) as moment, 1 as change from launches
      union all select trace_id, process_id, ts + dur as moment, -1 as change from launches)
-- then
select w.trace_id, coalesce(d.name, p.name) as device, w.depth, sum(w.until - w.moment)::bigint as time_ns,
  round(100.0 * sum(w.until - w.moment) / nullif(sum(sum(w.until - w.moment)) over (partition by w.trace_id, w.process_id), 0), 2) as percent
from mapped w join processes p using (process_id) left join devices d using (process_id)
where w.until > w.moment group by w.trace_id, w.process_id, device, w.depth order by w.trace_id, w.process_id, w.depth
