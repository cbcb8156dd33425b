-- Each thread and queue: how many slices, and how long it was in any.
select track_id, count(*) as slices, sum(case when depth = 0 then dur end) as busy, min(ts) as first, max(ts + dur) as last
from slices group by track_id
-- then
select p.pid, th.tid, th.name as thread, p.name as process, w.slices, w.busy::bigint as busy_ns, w.first as first_ts, w.last as last_ts
from mapped w join threads th using (track_id) join processes p using (process_id) order by busy_ns desc, track_id
