-- Calls that waited for the device: how long, and for how many commands.
select c.name, count(*) as calls, sum(c.dur)::bigint as total_ns, max(c.dur) as max_ns, sum(f.commands)::bigint as commands
from (select to_slice, count(*) as commands from flows where name = 'wait' and to_slice is not null group by to_slice) f
join slices c on c.slice_id = f.to_slice
group by c.name order by total_ns desc, c.name
