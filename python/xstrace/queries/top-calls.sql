-- Calls of the host by the time in them, without what they call themselves (self).
select name, count(*) as calls, sum(dur) as total, sum(self) as own, max(dur) as longest
from calls group by name
-- reduce
select name, sum(calls)::bigint as calls, sum(total)::bigint as total_ns, sum(own)::bigint as self_ns,
  (sum(total) / sum(calls))::bigint as mean_ns, max(longest) as max_ns,
  round(100.0 * sum(own) / sum(sum(own)) over (), 2) as percent
from mapped group by name order by self_ns desc, name
