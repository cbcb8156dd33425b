-- Copies and fills by their size (powers of two): how many, how long, and at what rate.
select regexp_replace(name, '\[.*', '') as name, case when bytes > 0 then floor(log2(bytes))::int end as power,
  count(*) as copies, sum(bytes) as bytes, sum(dur) as total
from copies group by all
-- reduce
select name, (2 ** power)::bigint as from_bytes, sum(copies)::bigint as copies, sum(bytes)::bigint as bytes, sum(total)::bigint as total_ns,
  round(sum(bytes) / nullif(sum(total), 0), 3) as gb_per_s
from mapped group by name, power order by total_ns desc, name, power
