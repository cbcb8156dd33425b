/*
 * The small tables: processes, threads, devices, and what the trace says of itself.
 */
#include <stdio.h>
#include <stdlib.h>

#include "annotations.h"
#include "sweep.h"

static void put_string(struct xt_table *table, unsigned column, const char *string)
{
	if (string)
		xt_put_string(table, column, (struct xf_text){ string, strlen(string) });
}

static void put_text(struct xt_table *table, unsigned column, const char *text)
{
	if (text && text[0])
		xt_put_text(table, column, text, strlen(text));
}

/* A file's name may be any bytes, a table's texts are UTF-8. */
static void put_path(struct xt_table *table, const char *path)
{
	struct xf_proto made = { 0 };
	char *text, *repaired;

	xt_json_string(&made, path, strlen(path));
	text = xf_keep((struct xf_text){ made.data, made.length });
	repaired = text ? malloc(xf_repaired_length(text, made.length)) : NULL;
	if (repaired)
		xt_put_string(table, XT_TRACE_PATH,
			      (struct xf_text){ repaired,
						(size_t)(xf_repair(repaired, text, made.length) -
							 repaired) });
	free(repaired);
	free(text);
	free(made.data);
}

static void put_known(struct xt_table *table, unsigned column, int64_t value)
{
	if (value >= 0)
		xt_put_int(table, column, value);
}

static void tell_processes(struct xt_trace *trace, struct xt_table *table)
{
	for (uint32_t i = 0; i < trace->pids.count; i++) {
		const struct xt_process *process = &trace->processes[i];
		struct xf_text pid;
		int64_t number;

		pid.p = xf_map_key(&trace->pids, i, &pid.n);
		xt_put_int(table, XT_PROCESS_ID, i);
		if (xf_integer(pid, &number))
			xt_put_int(table, XT_PROCESS_PID, number);
		if (process->name)
			put_string(table, XT_PROCESS_NAME, process->name);
		else if (xf_is_string(pid))
			xt_put_string(table, XT_PROCESS_NAME, pid);
		put_string(table, XT_PROCESS_LABELS, process->labels);
		put_known(table, XT_PROCESS_RANK, process->rank >= 0 ? process->rank : trace->rank);
		put_text(table, XT_PROCESS_HOST, process->host ? process->host : trace->host);
		xt_put_flag(table, XT_PROCESS_IS_DEVICE, process->is_device);
		xt_table_row(table);
	}
}

static void tell_threads(struct xt_trace *trace, struct xt_table *table)
{
	for (uint32_t i = 0; i < trace->tids.count; i++) {
		const struct xt_track *track = &trace->tracks[i];
		struct xf_text tid;
		int64_t number;

		if (track->number < 0)
			continue;
		tid.p = xf_map_key(&trace->tids, i, &tid.n);
		tid.p += 5; /* the process and what it is */
		tid.n -= 5;
		xt_put_int(table, XT_THREAD_TRACK, track->number);
		xt_put_int(table, XT_THREAD_PROCESS, track->process);
		if (xf_integer(tid, &number))
			xt_put_int(table, XT_THREAD_TID, number);
		if (track->name)
			put_string(table, XT_THREAD_NAME, track->name);
		else if (!xf_integer(tid, &number) && tid.n)
			xt_put_string(table, XT_THREAD_NAME, tid);
		xt_table_row(table);
	}
}

/* "…DEVICE<host>[name] 0:3a:0:0 #0": what is in the brackets and behind them. */
static void tell_device(struct xt_table *table, const char *string)
{
	char name[4096], *from, *to;

	(void)xf_unescape((struct xf_text){ string, strlen(string) }, name, sizeof(name));
	from = strstr(name, "DEVICE<");
	from = from ? strstr(from, ">[") : NULL;
	to = from ? strrchr(from, ']') : NULL;
	if (!to) {
		put_text(table, XT_DEVICE_NAME, name);
		return;
	}
	*to++ = '\0';
	put_text(table, XT_DEVICE_NAME, from + 2);
	to += strspn(to, " ");
	to[strcspn(to, " #")] = '\0';
	put_text(table, XT_DEVICE_PCI, to);
}

/* Kineto's deviceProperties: those of the device whose pid is their id. */
static struct xf_text properties_of(const struct xt_trace *trace, struct xf_text pid)
{
	const struct xt_said *said = trace->said;
	struct xf_text all, one;
	const char *p;

	while (said && strcmp(said->key, "deviceProperties"))
		said = said->next;
	if (!said || said->value[0] != '[')
		return (struct xf_text){ 0 };
	all = (struct xf_text){ said->value, strlen(said->value) };
	for (p = xf_first(all); xf_element(&p, all.p + all.n, &one);) {
		struct xf_text id = xf_find(one, "id");

		if (id.n && id.n == pid.n && !memcmp(id.p, pid.p, pid.n))
			return one;
	}
	return (struct xf_text){ 0 };
}

static void tell_devices(struct xt_trace *trace, struct xt_table *table)
{
	for (uint32_t i = 0; i < trace->pids.count; i++) {
		const struct xt_process *process = &trace->processes[i];
		struct xf_text pid, properties;

		if (!process->is_device)
			continue;
		pid.p = xf_map_key(&trace->pids, i, &pid.n);
		properties = properties_of(trace, pid);
		xt_put_int(table, XT_DEVICE_PROCESS, i);
		if (properties.n)
			xt_put_text(table, XT_DEVICE_PROPERTIES, properties.p, properties.n);
		if (xf_is_string(xf_find(properties, "name")))
			xt_put_string(table, XT_DEVICE_NAME, xf_find(properties, "name"));
		else if (process->name)
			tell_device(table, process->name);
		xt_table_row(table);
	}
}

static void tell_said(struct xt_trace *trace, struct xt_table *table)
{
	for (const struct xt_said *said = trace->said; said; said = said->next) {
		xt_put_text(table, XT_META_KEY, said->key, strlen(said->key));
		put_string(table, XT_META_VALUE, said->value);
		xt_table_row(table);
	}
}

static void tell_trace(struct xt_trace *trace, struct xt_table *table)
{
	const struct xm_reader *r = &trace->reader;
	bool complete = !r->cut && !r->left_out && !r->error && !r->source.error &&
			trace->lost <= 0 && !trace->recovered && (!trace->is_own || trace->has_end);

	put_path(table, trace->path);
	put_text(table, XT_TRACE_TOOL, trace->tool);
	put_text(table, XT_TRACE_VERSION, trace->version);
	put_text(table, XT_TRACE_HOST, trace->host);
	put_known(table, XT_TRACE_PID, trace->pid);
	put_known(table, XT_TRACE_RANK, trace->rank);
	put_known(table, XT_TRACE_WORLD, trace->world_size);
	put_text(table, XT_TRACE_RUN, trace->run);
	xt_put_int(table, XT_TRACE_BASE, trace->base);
	if (trace->first <= trace->last) {
		xt_put_int(table, XT_TRACE_BEGIN, trace->base + trace->first);
		xt_put_int(table, XT_TRACE_END, trace->base + trace->last);
	}
	put_text(table, XT_TRACE_ENDED, trace->ended);
	put_known(table, XT_TRACE_STATUS, trace->status);
	put_known(table, XT_TRACE_LOST, trace->lost);
	xt_put_flag(table, XT_TRACE_COMPLETE, complete);
	xt_put_int(table, XT_TRACE_EVENTS, (int64_t)trace->events);
	/* what is behind damage of the file itself is one place, as is a base that is no time */
	xt_put_int(table, XT_TRACE_LEFT_OUT,
		   (int64_t)(trace->unfit + r->left_out) + (r->error || r->source.error) +
			   trace->has_odd_base);
	xt_table_row(table);
}

void xt_tell(struct xt_trace *trace, struct xt_out *out)
{
	tell_processes(trace, out->processes);
	tell_threads(trace, out->threads);
	tell_devices(trace, out->devices);
	tell_said(trace, out->metadata);
	tell_trace(trace, out->traces);
}
