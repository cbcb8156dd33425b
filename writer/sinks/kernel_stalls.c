/*
 * --stall-sampling where the traced process itself tells how often its kernels were found at which
 * instruction (CUDA): a row of CSV for each, as the sampling process writes them (stalls.c).
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_record.h"
#include "hash.h"
#include "metrics_file.h"
#include "metrics_text.h"
#include "put.h"
#include "sinks.h"
#include "sink.h"
#include "text.h"

#define ROWS_MAX 65536u /* instructions of a process */
#define REASONS	 64u

struct row {
	uint64_t address;
	uint32_t name; /* the kernel's */
	uint8_t device, source;
	uint64_t count[REASONS];
};

struct xs_kernel_stalls {
	struct row *rows;
	uint32_t count, room;
	uint32_t columns, reasons;
	const char *names;
	size_t names_length;
	uint32_t at[2 * ROWS_MAX]; /* number + 1 */
	uint64_t omitted;
};

/* Where the row's number is, or would be. */
static uint32_t *find(struct xs_kernel_stalls *stalls, const struct row *wanted)
{
	const uint64_t key[2] = { wanted->address, (uint64_t)wanted->device << 32 | wanted->name };

	for (uint32_t at = xs_hash(key, 2);; at++) {
		uint32_t *place = &stalls->at[at & (2 * ROWS_MAX - 1)];
		const struct row *row = *place ? &stalls->rows[*place - 1] : NULL;

		if (!row || (row->address == wanted->address && row->name == wanted->name &&
			     row->device == wanted->device))
			return place;
	}
}

/* NULL: there is no room, or no memory. */
static struct row *row_of(struct xs_kernel_stalls *stalls, const struct row *wanted)
{
	uint32_t *place = find(stalls, wanted), room = stalls->room ? 2 * stalls->room : 256;
	struct row *grown;

	if (*place)
		return &stalls->rows[*place - 1];
	if (stalls->count == ROWS_MAX)
		return NULL;
	if (stalls->count == stalls->room) {
		grown = realloc(stalls->rows, room * sizeof(*grown));
		if (!grown)
			return NULL;
		stalls->rows = grown;
		stalls->room = room;
	}
	stalls->rows[stalls->count] = *wanted;
	*place = ++stalls->count;
	return &stalls->rows[stalls->count - 1];
}

static void add(struct xs_process *process, const struct xs_metrics *counts, uint64_t address)
{
	const struct xs_device_record *kernel = counts->work->record;
	struct xs_kernel_stalls *stalls = process->sink[XS_SINK_KERNEL_STALLS];
	const struct row wanted = { .address = address,
				    .name = kernel->event.name,
				    .device = kernel->device,
				    .source = kernel->event.source };
	struct row *row;

	if (!stalls->columns) {
		stalls->columns = counts->columns;
		stalls->reasons = counts->count < REASONS ? counts->count : REASONS;
		stalls->names = counts->names;
		stalls->names_length = counts->names_length;
	}
	/* GPUs of several sorts have reasons of their own: the first sort has columns */
	row = stalls->columns == counts->columns ? row_of(stalls, &wanted) : NULL;
	if (!row) {
		stalls->omitted++;
		return;
	}
	for (uint32_t i = 0; i < stalls->reasons && i < counts->count; i++)
		row->count[i] += counts->value[i];
}

/* ---- the end ---- */

static int by_place(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->device != other->device)
		return one->device < other->device ? -1 : 1;
	if (one->name != other->name)
		return one->name < other->name ? -1 : 1;
	return one->address < other->address ? -1 : one->address > other->address;
}

static char *put_head(char *o, const struct xs_process *process,
		      const struct xs_kernel_stalls *stalls, uint32_t device)
{
	if (!process->run->options->result_dir[0])
		o = xs_put(xs_put_count(o, "\n=== Device #", device), " Metrics ===\n");
	o = xs_metrics_put_names(xs_put(o, "\nKernel,IP[Address]"), stalls->names,
				 stalls->names_length, stalls->reasons);
	return xs_put(o, "\n");
}

static char *put_row(char *o, const struct xs_process *process,
		     const struct xs_kernel_stalls *stalls, const struct row *row)
{
	const struct xs_device_record record = {
		.event = { .name = row->name, .source = row->source }, .work = XS_WORK_KERNEL
	};
	const struct xs_work work = { .record = &record };

	o = xs_put(xs_metrics_put_kernel(o, process, &work, false), ",");
	o += sprintf(o, "%llx", (unsigned long long)row->address);
	for (uint32_t i = 0; i < stalls->reasons; i++)
		o = xs_put_count(o, ",", row->count[i]);
	return xs_put(o, "\n");
}

static bool write_all(struct xs_process *process, struct xs_kernel_stalls *stalls)
{
	struct xs_output out = { .fd = -1 };
	bool open = false, own = process->run->options->result_dir[0];
	char path[PATH_MAX];

	qsort(stalls->rows, stalls->count, sizeof(*stalls->rows), by_place);
	for (uint32_t i = 0; i < stalls->count; i++) {
		const struct row *row = &stalls->rows[i];
		bool first = !i || row->device != row[-1].device;

		if (first && own && open) {
			xs_metrics_close(&out, path);
			open = false;
		}
		if (!open && xs_metrics_open(process, row->device, &out, path) < 0)
			return false;
		open = true;
		if (first)
			xs_output_put_end(&out, put_head(xs_output_put(&out), process, stalls,
							 row->device));
		xs_output_put_end(&out, put_row(xs_output_put(&out), process, stalls, row));
		if (xs_output_full(&out))
			(void)xs_output_flush(&out);
	}
	if (open)
		xs_metrics_close(&out, path);
	return open;
}

static void drop(struct xs_process *process)
{
	struct xs_kernel_stalls *stalls = process->sink[XS_SINK_KERNEL_STALLS];

	free(stalls->rows);
	free(stalls);
}

static bool close_stalls(struct xs_process *process, enum xs_end end, int status)
{
	struct xs_kernel_stalls *stalls = process->sink[XS_SINK_KERNEL_STALLS];
	bool some = stalls->count && write_all(process, stalls);

	(void)end, (void)status;
	if (stalls->omitted)
		xs_tell("[WARNING] --stall-sampling: process %d: %llu counts of instructions are "
			"left out: more than %u of these, or of another sort of GPU\n",
			process->pid, (unsigned long long)stalls->omitted, ROWS_MAX);
	drop(process);
	return some;
}

static bool wanted(const struct xs_run *run)
{
	return run->options->stall_sampling;
}

static bool open_stalls(struct xs_process *process)
{
	process->sink[XS_SINK_KERNEL_STALLS] = calloc(1, sizeof(struct xs_kernel_stalls));
	return process->sink[XS_SINK_KERNEL_STALLS];
}

const struct xs_sink xs_kernel_stalls_sink = {
	.wanted = wanted,
	.open = open_stalls,
	.stalled = add,
	.close = close_stalls,
	.drop = drop,
};
