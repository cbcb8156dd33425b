/*
 * --metric-query: a row of CSV for each run of a kernel, as unitrace has it: a section for each
 * device, its rows behind one header.
 *
 * Where all devices share a file, the first one's rows go there at once. Those of the others wait
 * in files without names, since readers want each device's rows in one place.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends.h"
#include "device_record.h"
#include "files.h"
#include "metrics_text.h"
#include "output.h"
#include "put.h"
#include "sinks.h"
#include "stored.h"
#include "text.h"

struct section {
	struct xs_output out;
	uint32_t device;  /* as its API counts it */
	uint8_t source;	  /* enum xs_source */
	char *path;	  /* NULL: it has no name, and is copied at the end */
	uint32_t columns; /* of its header */
	uint32_t id;	  /* of the run whose row came last; 0: none */
};

struct xs_metrics_sections {
	struct section *of[XS_DEVICES];
	struct section *first; /* of those with a file of their own */
	bool told;
};

static struct xs_metrics_sections *sections_of(const struct xs_process *process)
{
	return process->sink[XS_SINK_METRICS];
}

static void tell_error(struct xs_metrics_sections *all, const char *path, int error)
{
	if (error < 0 && !all->told)
		xs_tell("xstrace: cannot write all metrics%s%s: %s; the application goes on, what "
			"follows is lost\n",
			path ? " to " : "", path ? path : "", strerror(-error));
	all->told |= error < 0;
}

static void flush_section(struct xs_metrics_sections *all, struct section *section)
{
	(void)xs_output_flush(&section->out);
	tell_error(all, section->path, section->out.error);
}

static void section_end(struct xs_metrics_sections *all, struct section *section, char *end)
{
	xs_output_put_end(&section->out, end);
	if (xs_output_full(&section->out))
		flush_section(all, section);
}

/* ---- a device's section ---- */

/* A file for the device: of its own, or without a name. -errno: none. */
static int make_file(struct xs_process *process, uint32_t device, char *path)
{
	const struct xs_options *options = process->run->options;
	bool own = options->result_dir[0] || (options->output[0] && !sections_of(process)->first);
	int fd = own ? xs_file_create_metrics(process, device, path, PATH_MAX) : -1;

	if (own && fd < 0)
		xs_tell("xstrace: cannot write %s: %s; the metrics follow at the end, here\n", path,
			strerror(-fd));
	if (fd < 0)
		path[0] = '\0';
	return fd < 0 ? xs_file_create_nameless(process) : fd;
}

static void put_banner(struct xs_process *process, struct section *section, uint32_t device)
{
	char *o = xs_output_put(&section->out);

	if (process->run->options->result_dir[0])
		return; /* its file says which device it is of */
	o = xs_put(xs_put_count(o, "\n=== Device #", device), " Metrics ===\n");
	section_end(sections_of(process), section, o);
}

/*
 * Level Zero and CUDA count their devices from 0, each its own: files have a number once, so the
 * API that comes second gets the next one that is free.
 */
static uint32_t number_of(const struct xs_metrics_sections *all,
			  const struct xs_device_record *record)
{
	uint32_t number = record->device < XS_DEVICES ? record->device : XS_DEVICES - 1;

	while (number < XS_DEVICES - 1 && all->of[number] &&
	       (all->of[number]->source != record->event.source ||
		all->of[number]->device != record->device))
		number++;
	return number;
}

static struct section *open_section(struct xs_process *process,
				    const struct xs_device_record *record, uint32_t device)
{
	struct xs_metrics_sections *all = sections_of(process);
	struct section *section = calloc(1, sizeof(*section));
	char path[PATH_MAX];
	int fd, error;

	if (!section)
		return NULL;
	fd = make_file(process, device, path);
	error = fd < 0 ? fd : xs_output_init(&section->out, fd, 0, XS_COMPRESS_NONE);
	if (error < 0) {
		tell_error(all, path[0] ? path : NULL, error);
		if (fd >= 0)
			close(fd);
		free(section->out.data);
		free(section);
		return NULL;
	}
	section->path = path[0] ? strdup(path) : NULL;
	section->device = record->device;
	section->source = record->event.source;
	if (device != record->device)
		xs_tell("[INFO] --metric-query: device #%u of %s is device #%u in files of "
			"metrics: another API has a device #%u, too\n",
			record->device, xs_backend_of(section->source)->label, device,
			record->device);
	if (section->path && !all->first)
		all->first = section;
	all->of[device] = section;
	put_banner(process, section, device);
	return section;
}

static void put_header(struct xs_process *process, struct section *section,
		       const struct xs_metrics *metrics)
{
	char *o = xs_put(xs_output_put(&section->out), "\nKernel,GlobalInstanceId,SubDeviceId");

	o = xs_metrics_put_names(o, metrics->names, metrics->names_length, metrics->count);
	section_end(sections_of(process), section, xs_put(o, "\n"));
	section->columns = metrics->columns;
	section->id = 0;
}

/* ---- a row ---- */

static void add_metrics(struct xs_process *process, const struct xs_metrics *metrics)
{
	const struct xs_device_record *record = metrics->work->record;
	struct xs_metrics_sections *all = sections_of(process);
	uint32_t device = number_of(all, record);
	struct section *section = all->of[device];
	char *o;

	if (!section && !all->told)
		section = open_section(process, record, device);
	if (!section)
		return;
	if (section->columns != metrics->columns)
		put_header(process, section, metrics);
	o = xs_output_put(&section->out);
	if (section->id && section->id != record->id)
		*o++ = '\n'; /* the parts of one run stand together */
	section->id = record->id;
	o = xs_metrics_put_kernel(o, process, metrics->work, true);
	o = xs_put_count(o, ",", record->id);
	o = xs_put_count(o, ",", metrics->part);
	for (uint32_t i = 0; i < metrics->count; i++) {
		*o++ = ',';
		o = xs_metrics_put_value(o, metrics->value[i], metrics->type[i]);
	}
	*o++ = '\n';
	section_end(all, section, o);
}

/* ---- the end ---- */

/* What has no name is copied behind the first device's rows, or to the terminal. */
static void copy_section(struct xs_metrics_sections *all, struct section *section)
{
	static char buffer[65536];
	uint64_t at = 0;
	ssize_t n;

	flush_section(all, section);
	while ((n = pread(section->out.fd, buffer, sizeof(buffer), (off_t)at)) > 0) {
		at += (uint64_t)n;
		if (all->first)
			tell_error(all, all->first->path,
				   xs_output_write(&all->first->out, buffer, (size_t)n));
		else
			(void)!fwrite(buffer, 1, (size_t)n, stderr);
	}
}

static void close_section(struct xs_metrics_sections *all, struct section *section)
{
	int error = xs_output_close(&section->out, "", 0);

	tell_error(all, section->path, error);
	if (section->path)
		xs_tell_output("Kernel metrics are", section->path, &section->out, error);
	free(section->path);
	free(section);
}

static void free_all(struct xs_process *process)
{
	free(sections_of(process));
}

static bool close_metrics(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_metrics_sections *all = sections_of(process);
	bool some = false;

	(void)end, (void)status;
	for (uint32_t i = 0; i < XS_DEVICES; i++) {
		struct section *section = all->of[i];

		if (!section)
			continue;
		some = true;
		section_end(all, section, xs_put(xs_output_put(&section->out), "\n"));
		if (!section->path)
			copy_section(all, section);
	}
	for (uint32_t i = 0; i < XS_DEVICES; i++)
		if (all->of[i])
			close_section(all, all->of[i]);
	free_all(process);
	return some;
}

static void drop_metrics(struct xs_process *process)
{
	struct xs_metrics_sections *all = sections_of(process);

	for (uint32_t i = 0; i < XS_DEVICES; i++)
		if (all->of[i])
			close_section(all, all->of[i]);
	free_all(process);
}

static void flush_metrics(struct xs_process *process)
{
	struct xs_metrics_sections *all = sections_of(process);

	for (uint32_t i = 0; i < XS_DEVICES; i++)
		if (all->of[i])
			flush_section(all, all->of[i]);
}

static bool wanted(const struct xs_run *run)
{
	return run->options->metric_query;
}

static bool open_metrics(struct xs_process *process)
{
	process->sink[XS_SINK_METRICS] = calloc(1, sizeof(struct xs_metrics_sections));
	return process->sink[XS_SINK_METRICS];
}

const struct xs_sink xs_metrics_sink = {
	.wanted = wanted,
	.open = open_metrics,
	.metrics = add_metrics,
	.flush = flush_metrics,
	.close = close_metrics,
	.drop = drop_metrics,
};
