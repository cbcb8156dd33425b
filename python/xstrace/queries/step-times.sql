-- Steps: the outermost tasks that come again and again on a thread. The time from one to the next, and how much it varies.
select name, track_id, dur, lead(ts) over (partition by track_id, name order by ts) - ts as period
from tasks
where (track_id, depth) in (
  select track_id, min(depth) from (select track_id, depth, name from tasks where depth < 8 group by all having count(*) >= 3) group by track_id)
-- then
select name, track_id, count(*) as steps, min(period) as min_ns, quantile_disc(period, 0.5) as median_ns, quantile_disc(period, 0.9) as p90_ns,
  max(period) as max_ns, round(100.0 * stddev_pop(period) / nullif(avg(period), 0), 2) as variation_percent, avg(dur)::bigint as mean_dur_ns
from mapped group by name, track_id having count(*) >= 3 order by count(*) * median_ns desc, name, track_id limit 100
