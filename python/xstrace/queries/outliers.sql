-- Slices that took at least three times as long as is usual (the median) for their name.
select name, quantile_disc(dur, 0.5) as usual, count(*) as runs, max(dur) as longest from slices group by name
having count(*) >= 10 and max(dur) >= 3 * quantile_disc(dur, 0.5)
-- then
select s.slice_id, s.kind, s.name, s.ts, s.dur as dur_ns, m.usual as median_ns, round(s.dur / nullif(m.usual, 0), 1) as times
from slices s join mapped m on s.name = m.name
where s.dur >= 3 * m.usual order by s.dur - m.usual desc, s.slice_id limit 100
