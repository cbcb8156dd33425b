-- From the beginning of the call that enqueued a kernel or copy to its beginning on the device.
select kind, regexp_replace(name, '\[.*', '') as name, ts - call_ts as latency from launches
-- reduce
select kind, name, count(*) as runs, min(latency) as min_ns, quantile_disc(latency, 0.5) as median_ns,
  quantile_disc(latency, 0.9) as p90_ns, max(latency) as max_ns, sum(latency)::bigint as total_ns
from mapped group by kind, name order by total_ns desc, name
