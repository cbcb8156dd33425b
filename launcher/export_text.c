/*
 * Pictures of runs in Prometheus' text format (version 0.0.4, as its documentation has it): a
 * family for each number, with a sample for each run, process, device or name. Counters count from
 * when the exporter first looked at a run.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "look.h"

/* Values of labels: what stands in quotes there. The text is plain: it has no ends of lines. */
static void put_label(FILE *out, const char *separator, const char *key, const char *text)
{
	fprintf(out, "%s%s=\"", separator, key);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void put_run(FILE *out, const char *family, const struct xs_look *look)
{
	fprintf(out, "xstrace_%s{", family);
	put_label(out, "", "run", look->run_id);
	put_label(out, ",", "session", look->session);
	if (look->rank >= 0)
		fprintf(out, ",rank=\"%d\"", look->rank);
}

static void put_family(FILE *out, const char *family, const char *type, const char *help)
{
	fprintf(out, "# HELP xstrace_%s %s\n# TYPE xstrace_%s %s\n", family, help, family, type);
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* ---- of runs ---- */

static double up(const struct xs_look *look)
{
	return look->picture ? 1 : 0;
}

static double recording(const struct xs_look *look)
{
	return look->picture && !look->picture->paused;
}

static double age(const struct xs_look *look)
{
	return look->picture ? seconds(look->picture->begun) : 0;
}

static double cpu(const struct xs_look *look)
{
	return look->picture ? seconds(look->picture->cpu) : 0;
}

static double resident(const struct xs_look *look)
{
	return look->picture ? (double)look->picture->rss : 0;
}

static double backlog(const struct xs_look *look)
{
	return look->picture ? (double)look->picture->behind : 0;
}

static const struct {
	const char *name, *type, *help;
	double (*value)(const struct xs_look *look);
} of_runs[] = {
	{ "up", "gauge", "1: the drain process of the run answers.", up },
	{ "recording", "gauge", "1: the run is not paused.", recording },
	{ "run_seconds", "gauge", "Age of the run.", age },
	{ "drain_cpu_seconds_total", "counter", "Processor time of the drain process.", cpu },
	{ "drain_resident_bytes", "gauge", "Memory of the drain process.", resident },
	{ "backlog_bytes", "gauge", "Records that wait to become text.", backlog },
};

/* ---- of processes ---- */

static double events(const struct xs_live_process *process)
{
	return (double)process->events;
}

static double lost(const struct xs_live_process *process)
{
	return (double)process->lost;
}

static double threads(const struct xs_live_process *process)
{
	return process->threads;
}

static double fill(const struct xs_live_process *process)
{
	return process->fill / 1000.0;
}

static double calls(const struct xs_live_process *process)
{
	return (double)process->calls.count;
}

static double call_seconds(const struct xs_live_process *process)
{
	return seconds(process->calls.ns);
}

static double wait_seconds(const struct xs_live_process *process)
{
	return seconds(process->waited);
}

static const struct {
	const char *name, *type, *help;
	double (*value)(const struct xs_live_process *process);
} of_processes[] = {
	{ "events_total", "counter", "Records read.", events },
	{ "lost_events_total", "counter", "Records lost.", lost },
	{ "threads", "gauge", "Threads that have rings.", threads },
	{ "ring_fill_ratio", "gauge", "Of the fullest ring.", fill },
	{ "process_calls_total", "counter", "API and MPI calls that have ended.", calls },
	{ "process_call_seconds_total", "counter", "Time in them, over all threads.",
	  call_seconds },
	{ "process_wait_seconds_total", "counter", "Time in calls that waited for devices.",
	  wait_seconds },
};

/* ---- of devices and names ---- */

static double busy(const struct xs_live_device *device)
{
	return seconds(device->busy);
}

static double commands(const struct xs_live_device *device)
{
	return (double)device->all.count;
}

static const struct {
	const char *name, *help;
	double (*value)(const struct xs_live_device *device);
} of_devices[] = {
	{ "device_busy_seconds_total", "Time in which a command ran on the device.", busy },
	{ "device_commands_total", "Commands that ran on the device.", commands },
};

static double name_count(const struct xs_live_name *name)
{
	return (double)name->all.count;
}

static double name_seconds(const struct xs_live_name *name)
{
	return seconds(name->all.ns);
}

static double name_bytes(const struct xs_live_name *name)
{
	return (double)name->bytes;
}

static const struct {
	const char *name, *help;
	double (*value)(const struct xs_live_name *name);
} of_names[] = {
	{ "name_total", "Tasks, calls, kernels and copies of this name that have ended.",
	  name_count },
	{ "name_seconds_total", "Time in them.", name_seconds },
	{ "name_bytes_total", "Bytes that copies of this name moved.", name_bytes },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void put_runs(FILE *out, const struct xs_looks *looks)
{
	for (size_t f = 0; f < COUNT(of_runs); f++) {
		put_family(out, of_runs[f].name, of_runs[f].type, of_runs[f].help);
		for (size_t i = 0; i < looks->count; i++) {
			put_run(out, of_runs[f].name, &looks->of[i]);
			put_label(out, ",", "command", looks->of[i].command);
			fprintf(out, "} %.15g\n", of_runs[f].value(&looks->of[i]));
		}
	}
}

static void put_processes(FILE *out, const struct xs_looks *looks, size_t f)
{
	for (size_t i = 0; i < looks->count; i++) {
		const struct xs_look *look = &looks->of[i];

		for (uint32_t p = 0; look->picture && p < look->picture->process_count; p++) {
			const struct xs_live_process *process = &xs_look_processes(look)[p];

			put_run(out, of_processes[f].name, look);
			fprintf(out, ",pid=\"%d\"", process->pid);
			put_label(out, ",", "process", process->name);
			fprintf(out, "} %.15g\n", of_processes[f].value(process));
		}
	}
}

static void put_devices(FILE *out, const struct xs_looks *looks, size_t f)
{
	for (size_t i = 0; i < looks->count; i++) {
		const struct xs_look *look = &looks->of[i];

		for (uint32_t d = 0; look->picture && d < look->picture->device_count; d++) {
			const struct xs_live_device *device = &xs_look_devices(look)[d];

			put_run(out, of_devices[f].name, look);
			fprintf(out, ",pid=\"%d\",device=\"%d\"", device->pid, device->device);
			put_label(out, ",", "name", device->name);
			fprintf(out, "} %.15g\n", of_devices[f].value(device));
		}
	}
}

/*
 * Samples of one family must differ by their labels: names that were cut, or made plain, may be
 * alike. The first of them is all of them; false: this one is not the first.
 */
static bool all_alike(const struct xs_look *look, uint32_t at, struct xs_live_name *ret)
{
	const struct xs_live_name *names = xs_look_names(look);

	*ret = names[at];
	for (uint32_t i = 0; i < look->picture->name_count; i++) {
		if (i == at || names[i].kind != ret->kind || strcmp(names[i].name, ret->name) != 0)
			continue;
		if (i < at)
			return false;
		ret->all.count += names[i].all.count;
		ret->all.ns += names[i].all.ns;
		ret->bytes += names[i].bytes;
	}
	return true;
}

static void put_names(FILE *out, const struct xs_looks *looks, size_t f)
{
	for (size_t i = 0; i < looks->count; i++) {
		const struct xs_look *look = &looks->of[i];

		for (uint32_t n = 0; look->picture && n < look->picture->name_count; n++) {
			struct xs_live_name name;

			if (!all_alike(look, n, &name) ||
			    (of_names[f].value == name_bytes && name.kind != XS_LIVE_COPY))
				continue;
			put_run(out, of_names[f].name, look);
			put_label(out, ",", "kind", xs_look_kind(name.kind));
			put_label(out, ",", "name", name.name);
			fprintf(out, "} %.15g\n", of_names[f].value(&name));
		}
	}
}

char *xs_export_text(const struct xs_looks *looks, size_t *ret_length)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_length);

	if (!out)
		return NULL;
	put_runs(out, looks);
	for (size_t f = 0; f < COUNT(of_processes); f++) {
		put_family(out, of_processes[f].name, of_processes[f].type, of_processes[f].help);
		put_processes(out, looks, f);
	}
	for (size_t f = 0; f < COUNT(of_devices); f++) {
		put_family(out, of_devices[f].name, "counter", of_devices[f].help);
		put_devices(out, looks, f);
	}
	for (size_t f = 0; f < COUNT(of_names); f++) {
		put_family(out, of_names[f].name, "counter", of_names[f].help);
		put_names(out, looks, f);
	}
	if (fclose(out))
		return NULL;
	return text;
}
