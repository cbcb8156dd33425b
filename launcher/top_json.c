/*
 * --top --once --json: the picture of each run as JSON, one object for all. Times are ns; "recent"
 * is about the last `recent_ns`. docs/LIVE.md has the members.
 */
#include <string.h>

#include "look.h"

typedef unsigned long long ull;

/* The text is plain: valid UTF-8 without control characters. */
static void put_text(FILE *out, const char *key, const char *text)
{
	fprintf(out, "\"%s\":\"", key);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void put_sum(FILE *out, const char *prefix, const struct xs_live_sum *sum)
{
	fprintf(out, ",\"%scount\":%llu,\"%sns\":%llu", prefix, (ull)sum->count, prefix,
		(ull)sum->ns);
}

static void put_process(FILE *out, const struct xs_live_process *process)
{
	fprintf(out, "{\"pid\":%d,", process->pid);
	if (process->rank >= 0)
		fprintf(out, "\"rank\":%d,", process->rank);
	put_text(out, "name", process->name);
	fprintf(out,
		",\"threads\":%u,\"ring_fill\":%.3f,\"events\":%llu,\"recent_events\":%llu,"
		"\"lost\":%llu",
		process->threads, process->fill / 1000.0, (ull)process->events,
		(ull)process->recent_events, (ull)process->lost);
	put_sum(out, "call_", &process->calls);
	put_sum(out, "recent_call_", &process->recent_calls);
	fprintf(out, ",\"waited_ns\":%llu,\"recent_waited_ns\":%llu", (ull)process->waited,
		(ull)process->recent_waited);
	if (process->in_call[0]) {
		fputc(',', out);
		put_text(out, "in_call", process->in_call);
		fprintf(out, ",\"in_call_threads\":%u,\"in_call_ns\":%llu",
			process->in_call_threads, (ull)process->in_call_ns);
	}
	fputc('}', out);
}

static void put_device(FILE *out, const struct xs_live_device *device)
{
	fprintf(out, "{\"pid\":%d,\"device\":%d,", device->pid, device->device);
	put_text(out, "name", device->name);
	put_sum(out, "", &device->all);
	put_sum(out, "recent_", &device->recent);
	fprintf(out, ",\"busy_ns\":%llu,\"recent_busy_ns\":%llu}", (ull)device->busy,
		(ull)device->recent_busy);
}

static void put_name(FILE *out, const struct xs_live_name *name)
{
	fputc('{', out);
	put_text(out, "kind", xs_look_kind(name->kind));
	fputc(',', out);
	put_text(out, "name", name->name);
	put_sum(out, "", &name->all);
	put_sum(out, "recent_", &name->recent);
	if (name->kind == XS_LIVE_COPY)
		fprintf(out, ",\"bytes\":%llu,\"recent_bytes\":%llu", (ull)name->bytes,
			(ull)name->recent_bytes);
	fputc('}', out);
}

static void put_picture(FILE *out, const struct xs_look *look)
{
	const struct xs_live_head *head = look->picture;

	fprintf(out,
		",\"age_ns\":%llu,\"watched_ns\":%llu,\"recent_ns\":%llu,\"drain_cpu_ns\":%llu,"
		"\"recent_drain_cpu_ns\":%llu,\"drain_rss\":%llu,\"backlog\":%llu,"
		"\"names_known\":%s,\"processes\":[",
		(ull)head->begun, (ull)head->watched, (ull)head->recent, (ull)head->cpu,
		(ull)head->recent_cpu, (ull)head->rss, (ull)head->behind,
		head->blind ? "false" : "true");
	for (uint32_t i = 0; i < head->process_count; i++) {
		fputs(i ? "," : "", out);
		put_process(out, &xs_look_processes(look)[i]);
	}
	fprintf(out, "],\"more_processes\":%u,\"devices\":[", head->more_processes);
	for (uint32_t i = 0; i < head->device_count; i++) {
		fputs(i ? "," : "", out);
		put_device(out, &xs_look_devices(look)[i]);
	}
	fputs("],\"names\":[", out);
	for (uint32_t i = 0; i < head->name_count; i++) {
		fputs(i ? "," : "", out);
		put_name(out, &xs_look_names(look)[i]);
	}
	fputc(']', out);
}

void xs_top_json(FILE *out, const struct xs_looks *looks)
{
	fputs("{\"runs\":[", out);
	for (size_t i = 0; i < looks->count; i++) {
		const struct xs_look *look = &looks->of[i];

		fputs(i ? ",\n{" : "\n{", out);
		put_text(out, "run", look->run_id);
		if (look->session[0]) {
			fputc(',', out);
			put_text(out, "session", look->session);
		}
		if (look->rank >= 0)
			fprintf(out, ",\"rank\":%d", look->rank);
		fprintf(out, ",\"pid\":%d,", look->pid);
		put_text(out, "command", look->command);
		fputc(',', out);
		put_text(out, "state", xs_look_state(look));
		if (look->picture)
			put_picture(out, look);
		fputc('}', out);
	}
	fputs("\n]}\n", out);
}
