-- Each thread and queue: how many slices, and how long it was in any.
select track_id, count(*) as slices, sum(fresh) as busy, min(ts) as first, max(ts + dur) as last
from (
  select track_id, ts, dur, greatest(0, ts + dur - greatest(ts, coalesce(max(ts + dur) over before, ts))) as fresh
  from slices
  window before as (partition by track_id order by ts, dur desc, slice_id rows between unbounded preceding and 1 preceding)
)
group by track_id
-- then
select p.pid, th.tid, th.name as thread, p.name as process, w.slices, w.busy::bigint as busy_ns, w.first as first_ts, w.last as last_ts
from mapped w join threads th using (track_id) join processes p using (process_id) order by busy_ns desc, track_id
