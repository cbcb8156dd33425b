/*
 * --stall-sampling: what was counted at each instruction, and of which kernel it is. Both tables
 * are bounded: a program has many samples, but not many instructions.
 */
#include <stdlib.h>
#include <string.h>

#include "device_record.h"
#include "hash.h"
#include "metrics_text.h"
#include "names.h"
#include "output.h"
#include "put.h"
#include "samples.h"
#include "summary.h"
#include "task_record.h"
#include "text.h"

#define ROWS_MAX   65536u /* instructions of a device */
#define PLACES_MAX 65536u /* kernels */
#define REASONS	   32u	  /* that are counted; as many again as drivers have */

struct row {
	uint64_t address;
	uint64_t count[REASONS];
};

struct xs_stalls {
	struct row *rows;
	uint32_t row_count, row_room;
	struct xs_place *places;
	uint32_t place_count, place_room;
	uint32_t row_at[2 * ROWS_MAX], place_at[2 * PLACES_MAX]; /* by address: number + 1 */
	uint64_t omitted; /* samples and kernels for which there was no room */
};

static struct xs_stalls *stalls_of(struct xs_sampled_device *device)
{
	if (!device->stalls)
		device->stalls = calloc(1, sizeof(*device->stalls));
	return device->stalls;
}

/* Where the address is, or would be, in a table of that size. */
static uint32_t *find(uint32_t *table, uint32_t size, const void *rows, size_t stride,
		      uint64_t address)
{
	for (uint32_t at = xs_hash(&address, 1);; at++) {
		uint32_t *place = &table[at & (size - 1)];
		uint64_t there;

		if (!*place)
			return place;
		memcpy(&there, (const char *)rows + (*place - 1) * stride, sizeof(there));
		if (there == address)
			return place;
	}
}

/* Room for one more of `size` bytes, zeroed; NULL: no memory. */
static void *more(void **array, uint32_t *room, uint32_t count, size_t size)
{
	uint32_t grown_room = *room ? 2 * *room : 256;
	void *grown;

	if (count == *room) {
		grown = realloc(*array, grown_room * size);
		if (!grown)
			return NULL;
		*array = grown;
		*room = grown_room;
	}
	return memset((char *)*array + count * size, 0, size);
}

bool xs_stalls_place(struct xs_sampled_device *device, const struct xs_place *place)
{
	struct xs_stalls *stalls = stalls_of(device);
	struct xs_place *fresh;
	uint32_t *at;

	if (!stalls)
		return false;
	at = find(stalls->place_at, 2 * PLACES_MAX, stalls->places, sizeof(*stalls->places),
		  place->address);
	if (*at)
		return true; /* the first one that was there */
	if (stalls->place_count == PLACES_MAX) {
		stalls->omitted++;
		return true;
	}
	fresh = more((void **)&stalls->places, &stalls->place_room, stalls->place_count,
		     sizeof(*fresh));
	if (!fresh)
		return false;
	*fresh = *place;
	*at = ++stalls->place_count;
	return true;
}

bool xs_stalls_add(struct xs_sampled_device *device, const struct xs_metrics *sample)
{
	struct xs_stalls *stalls = stalls_of(device);
	/* counted in units of 8 bytes */
	uint64_t address = sample->value[0] << 3;
	struct row *row;
	uint32_t *at;

	if (!stalls)
		return false;
	if (!address)
		return true; /* of no kernel */
	at = find(stalls->row_at, 2 * ROWS_MAX, stalls->rows, sizeof(*stalls->rows), address);
	if (!*at) {
		if (stalls->row_count == ROWS_MAX) {
			stalls->omitted++;
			return true;
		}
		row = more((void **)&stalls->rows, &stalls->row_room, stalls->row_count,
			   sizeof(*row));
		if (!row)
			return false;
		row->address = address;
		*at = ++stalls->row_count;
	}
	row = &stalls->rows[*at - 1];
	for (uint32_t i = 1; i < sample->count && i <= REASONS; i++)
		if (sample->type[i] == XS_VALUE_U64)
			row->count[i - 1] += sample->value[i];
	return true;
}

bool xs_stalls_some(const struct xs_sampled_device *device)
{
	return device->stalls->row_count && device->stalls->place_count;
}

static int by_address(const void *a, const void *b)
{
	uint64_t one, other;

	memcpy(&one, a, sizeof(one));
	memcpy(&other, b, sizeof(other));
	return one < other ? -1 : one > other;
}

/* The last kernel that begins there or before; NULL: the address is in none. */
static const struct xs_place *place_of(const struct xs_stalls *stalls, uint64_t address)
{
	uint32_t low = 0, high = stalls->place_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (stalls->places[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - stalls->places[low - 1].address >= stalls->places[low - 1].bytes)
		return NULL;
	return &stalls->places[low - 1];
}

static char *put_row(char *o, struct xs_process *process, const struct xs_sampled_device *device,
		     const struct xs_place *place, const struct row *row)
{
	const struct xs_device_record record = {
		.event = { .name = place->name, .source = place->source }, .work = XS_WORK_KERNEL
	};
	const struct xs_work work = { .record = &record };

	o = xs_put(xs_metrics_put_kernel(o, process, &work, false), ",");
	o += sprintf(o, "%llx", (unsigned long long)(row->address - place->address));
	for (uint32_t i = 1; i < device->group->count && i <= REASONS; i++)
		o = xs_put_count(o, ",", row->count[i - 1]);
	*o++ = '\n';
	return o;
}

static void tell(const struct xs_sampled_device *device, uint64_t unknown)
{
	if (unknown)
		xs_tell("[WARNING] --stall-sampling: %llu sampled instructions of device #%u are "
			"of "
			"no kernel that is known\n",
			(unsigned long long)unknown, device->number);
	if (device->stalls->omitted)
		xs_tell("[WARNING] --stall-sampling: device #%u: %llu samples and kernels are left "
			"out: more than %u instructions, or kernels\n",
			device->number, (unsigned long long)device->stalls->omitted, ROWS_MAX);
}

void xs_stalls_put(struct xs_process *process, const struct xs_sampled_device *device,
		   struct xs_output *out)
{
	struct xs_stalls *stalls = device->stalls;
	const struct xs_sampled_group *group = device->group; /* the only one */
	uint32_t columns = group->count <= REASONS ? group->count : REASONS + 1;
	uint64_t unknown = 0;
	char *o = xs_output_put(out);

	if (!process->run->options->result_dir[0])
		o = xs_put(xs_put_count(o, "\n=== Device #", device->number), " Metrics ===\n");
	o = xs_metrics_put_names(xs_put(o, "\nKernel"), group->names, group->names_length, columns);
	xs_output_put_end(out, xs_put(o, "\n"));
	/* they are found by their addresses no more */
	qsort(stalls->rows, stalls->row_count, sizeof(*stalls->rows), by_address);
	qsort(stalls->places, stalls->place_count, sizeof(*stalls->places), by_address);
	for (uint32_t i = 0; i < stalls->row_count; i++) {
		const struct xs_place *place = place_of(stalls, stalls->rows[i].address);

		if (place && !place->unwanted)
			xs_output_put_end(out, put_row(xs_output_put(out), process, device, place,
						       &stalls->rows[i]));
		else if (!place)
			unknown++;
		if (xs_output_full(out))
			(void)xs_output_flush(out);
	}
	tell(device, unknown);
}

void xs_stalls_free(struct xs_sampled_device *device)
{
	if (!device->stalls)
		return;
	free(device->stalls->rows);
	free(device->stalls->places);
	free(device->stalls);
	device->stalls = NULL;
}
