-- Counters: how many values, the least, the mean and the greatest.
select name, key, count(*) as n, min(value) as least, max(value) as most, sum(value) as total from counters group by name, key
-- reduce
select name, key, sum(n)::bigint as values, min(least) as min, sum(total) / sum(n) as mean, max(most) as max
from mapped group by name, key order by name, key
