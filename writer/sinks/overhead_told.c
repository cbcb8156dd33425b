#include "overhead_told.h"

#include <stdio.h>
#include <string.h>

#include "json.h"
#include "put.h"

typedef unsigned long long ull;

char *xs_overhead_put_json(char *o, const struct xs_overhead *overhead)
{
	o = xs_put(o, "{\"events\":{");
	for (uint32_t i = 0; i < overhead->row_count; i++) {
		const struct xs_overhead_row *row = &overhead->rows[i];

		o = xs_put(xs_put(xs_put(o, i ? ",\"" : "\""), row->kind), "\":{");
		o = xs_put_count(o, "\"count\":", row->count);
		if (row->measured)
			o += sprintf(o, ",\"ns\":%.2f", row->cost.ns);
		if (row->cost.inside_ns > 0)
			o += sprintf(o, ",\"inside_ns\":%.2f", row->cost.inside_ns);
		o = xs_put(o, "}");
	}
	o = xs_put_count(o, "},\"events_ns\":", overhead->events_ns);
	o = xs_put_count(o, ",\"start_ns\":", overhead->start_ns);
	o = xs_put_count(o, ",\"waits\":", overhead->waits);
	o = xs_put_count(o, ",\"waited_ns\":", overhead->waited_ns);
	if (overhead->commands_ns)
		o = xs_put_count(o, ",\"commands_ns\":", overhead->commands_ns);
	o = xs_put_count(o, ",\"drain_cpu_ns\":", overhead->drain_ns);
	return xs_put(xs_put_count(o, ",\"drain_peak_bytes\":", overhead->drain_peak), "}");
}

/* Three digits, with the unit that leaves one in front. */
static char *put_time(char *o, double ns)
{
	static const struct {
		double size;
		const char *unit;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	size_t i = 0;

	while (i < 3 && ns < units[i].size)
		i++;
	return o + sprintf(o, ns >= 100 * units[i].size ? "%.0f %s" : "%.3g %s", ns / units[i].size,
			   units[i].unit);
}

/* How a row is told: with the cost of one, with that of all, or without any. */
enum told { BY_ONE, TOGETHER, WITHOUT };

static enum told told_as(const struct xs_overhead *overhead, const struct xs_overhead_row *row)
{
	if (row->measured)
		return BY_ONE;
	return overhead->commands_ns && !strcmp(row->kind, "command") ? TOGETHER : WITHOUT;
}

/* `lead` goes in front of the first. */
static char *put_rows(char *o, const struct xs_overhead *overhead, enum told told, const char *lead)
{
	for (uint32_t i = 0; i < overhead->row_count; i++) {
		const struct xs_overhead_row *row = &overhead->rows[i];

		if (told_as(overhead, row) != told)
			continue;
		o += sprintf(o, "%s%llu of kind %s", lead, (ull)row->count, row->kind);
		if (told == BY_ONE)
			o = put_time(xs_put(o, " at "), row->cost.ns);
		else if (told == TOGETHER)
			o = put_time(xs_put(o, ", measured where it happens, "),
				     (double)overhead->commands_ns);
		lead = ", ";
	}
	return o;
}

char *xs_overhead_put_text(char *o, const struct xs_overhead *overhead)
{
	o = put_time(xs_put(o, "(Cost of tracing: "), (double)overhead->events_ns);
	o = xs_put(o, " of the process's own time, estimated");
	o = put_rows(o, overhead, BY_ONE, ": events ");
	o = put_rows(o, overhead, TOGETHER, "; ");
	o = put_rows(o, overhead, WITHOUT, "; without ");
	o = put_time(xs_put(o, "; waits for a full ring "), (double)overhead->waited_ns);
	o = put_time(xs_put(o, "; start "), (double)overhead->start_ns);
	o = put_time(xs_put(o, "; drain process "), (double)overhead->drain_ns);
	return o + sprintf(o, " of CPU time, %.1f MiB)", (double)overhead->drain_peak / 1048576);
}
