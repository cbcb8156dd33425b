-- Tasks, ranges, operators and functions by the time of their own (self), without what lies in them.
select name, count(*) as tasks, sum(dur) as total, sum(self) as own, max(dur) as longest
from tasks group by name
-- reduce
select name, sum(tasks)::bigint as tasks, sum(total)::bigint as total_ns, sum(own)::bigint as self_ns,
  (sum(total) / sum(tasks))::bigint as mean_ns, max(longest) as max_ns,
  round(100.0 * sum(own) / sum(sum(own)) over (), 2) as percent
from mapped group by name order by self_ns desc, name
