-- Kernels by the device time that they took: how often, how long, and their share of all kernels' time.
select name, count(*) as runs, sum(dur) as total, min(dur) as shortest, max(dur) as longest
from kernels group by name
-- reduce
select name, sum(runs)::bigint as runs, sum(total)::bigint as total_ns, (sum(total) / sum(runs))::bigint as mean_ns,
  min(shortest) as min_ns, max(longest) as max_ns, round(100.0 * sum(total) / sum(sum(total)) over (), 2) as percent
from mapped group by name order by total_ns desc, name
