/*
 * The buffers of CUDA's activity: found, read, given back.
 *
 * A buffer is read when the rings have been read up to a moment at which it was full: then the
 * calls of its records are known. The commit that writes its text out gives it back. While it is
 * read its traced process waits for nothing: it has others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_activity.h"
#include "names.h"
#include "output.h"
#include "text.h"

/* how long a record waits for the call that it belongs to */
#define PATIENCE 2000000000u /* ns */

static void *map_file(const struct xs_process *process, uint32_t number, uint64_t size)
{
	char name[XS_NAME_MAX];
	uint64_t mapped;
	void *map;

	xs_activity_name(name, process->pid, process->serial, number);
	if (xs_shm_map_at(process->run->directory, name, XS_SHM_OPEN, 0, &map, &mapped) < 0)
		return NULL;
	if (mapped >= size)
		return map;
	munmap(map, mapped);
	return NULL;
}

/* The file that tells of the others: what must not change later is copied. */
static struct xs_cuda *open_cuda(struct xs_process *process)
{
	struct xs_cuda *cuda;
	struct xs_activity_file *file;

	if (process->cuda && process->cuda->file)
		return process->cuda;
	/* pairs with the release in the collector's xs_tell_activity() */
	if (!process->file || !atomic_load_explicit(&process->file->activity, memory_order_acquire))
		return NULL;
	cuda = xs_cuda_of(process);
	file = cuda ? map_file(process, 0, sizeof(*file)) : NULL;
	if (!file)
		return NULL;
	if (atomic_load_explicit(&file->magic, memory_order_acquire) != XS_MAGIC) {
		munmap(file, sizeof(*file));
		return NULL;
	}
	cuda->file = file;
	cuda->version = file->version;
	cuda->source = file->source;
	cuda->clock = file->clock;
	cuda->off = file->off;
	for (uint32_t i = 0; i < XS_ACTIVITY_KINDS; i++) {
		uint16_t size = atomic_load_explicit(&file->size[i], memory_order_relaxed);

		cuda->size[i] = size % 8 ? 0 : size;
	}
	if (cuda->off && process->run->options->verbose) {
		size_t length;
		const char *why = xs_text_of(process->run, cuda->off, &length);

		xs_tell("[INFO] CUDA is not traced in process %d (%s): %.*s\n", process->pid,
			process->comm, (int)(length < 400 ? length : 400), why);
	}
	xs_cuda_restore(process);
	return cuda;
}

static void map_buffers(struct xs_process *process)
{
	struct xs_cuda *cuda = process->cuda;
	uint32_t count = atomic_load_explicit(&cuda->file->buffers, memory_order_acquire);

	for (uint32_t i = 0; i < count && i < XS_ACTIVITY_BUFFERS; i++)
		if (!cuda->buffer[i].map)
			cuda->buffer[i].map =
				map_file(process, i + 1, XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES);
}

/* ---- reading ---- */

void xs_cuda_look(struct xs_process *process)
{
	struct xs_cuda *cuda = open_cuda(process);

	if (!cuda)
		return;
	map_buffers(process);
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		struct xs_cuda_buffer *buffer = &cuda->buffer[i];

		/* pairs with the release in the collector's publish() */
		buffer->full = buffer->map && !buffer->done &&
			       atomic_load_explicit(&buffer->map->state, memory_order_acquire) ==
				       XS_BUFFER_FULL;
	}
}

/*
 * From ns of the buffer's clock to ns of the trace. The pair's middle is CUPTI's time: it is off by
 * half of the pair's width at most.
 */
static int64_t offset_of(struct xs_process *process, const struct xs_activity_buffer *map)
{
	struct xs_cuda *cuda = process->cuda;
	struct xs_activity_pair pair = map->pair;
	uint64_t width = pair.after - pair.before;

	if (cuda->clock != XS_ACTIVITY_PAIRS || !pair.before || pair.after < pair.before)
		return process->run->clock.offset;
	if (width / 2 > cuda->clock_error)
		cuda->clock_error = width / 2;
	return process->run->clock.offset + (int64_t)(pair.before + width / 2 - pair.cupti);
}

static bool keep_orphan(struct xs_cuda *cuda, const unsigned char *data, uint32_t size)
{
	struct xs_cuda_orphan *orphan;

	if (!cuda->orphans)
		cuda->orphans = calloc(XS_CUDA_ORPHANS, sizeof(*cuda->orphans));
	if (!cuda->orphans || cuda->orphan_count == XS_CUDA_ORPHANS)
		return false;
	orphan = &cuda->orphans[cuda->orphan_count++];
	orphan->since = xs_clock_ns(CLOCK_MONOTONIC);
	orphan->offset = cuda->offset;
	orphan->size = size < sizeof(orphan->data) ? size : sizeof(orphan->data);
	memcpy(orphan->data, data, orphan->size);
	return true;
}

/* Those whose calls have come, or will not come any more. */
static void read_orphans(struct xs_process *process, bool all)
{
	struct xs_cuda *cuda = process->cuda;
	uint64_t now = cuda->orphan_count ? xs_clock_ns(CLOCK_MONOTONIC) : 0;
	uint32_t left = 0;

	for (uint32_t i = 0; i < cuda->orphan_count; i++) {
		struct xs_cuda_orphan *orphan = &cuda->orphans[i];
		bool last = all || now - orphan->since > PATIENCE;

		cuda->offset = orphan->offset;
		if (!xs_cuda_record(process, orphan->data, orphan->size, last) && left++ != i)
			cuda->orphans[left - 1] = *orphan;
	}
	cuda->orphan_count = left;
}

/* A record of the buffer at `at`; returns its length, 0: there are no more that can be read. */
static uint32_t read_one(struct xs_process *process, const unsigned char *data, uint32_t at,
			 uint32_t valid)
{
	_Alignas(8) unsigned char copy[XS_RECORD_ROOM];
	struct xs_cuda *cuda = process->cuda;
	uint32_t kind, size, length;

	if (valid - at < 8)
		return 0;
	memcpy(&kind, data + at, sizeof(kind));
	size = kind < XS_ACTIVITY_KINDS ? cuda->size[kind] : 0;
	if (!size || size > valid - at) {
		cuda->unknown += kind != 0;
		return 0;
	}
	length = size < sizeof(copy) ? size : sizeof(copy);
	memcpy(copy, data + at, length);
	memcpy(copy, &kind, sizeof(kind)); /* it may have changed since */
	if (!xs_cuda_record(process, copy, length, false) && !keep_orphan(cuda, copy, length))
		(void)xs_cuda_record(process, copy, length, true);
	return size;
}

static uint64_t read_buffer(struct xs_process *process, struct xs_cuda_buffer *buffer,
			    uint64_t valid)
{
	const unsigned char *data = (const unsigned char *)buffer->map + XS_ACTIVITY_HEADER;
	struct xs_cuda *cuda = process->cuda;
	uint32_t turn = __atomic_load_n(&buffer->map->turn, __ATOMIC_RELAXED), size, first;

	if (valid > XS_ACTIVITY_BYTES)
		valid = XS_ACTIVITY_BYTES;
	if (turn != buffer->turn) {
		buffer->turn = turn;
		buffer->consumed = 0;
	}
	first = buffer->consumed;
	cuda->offset = offset_of(process, buffer->map);
	while (buffer->consumed < valid) {
		size = read_one(process, data, buffer->consumed, (uint32_t)valid);
		if (!size)
			break;
		buffer->consumed += size;
		cuda->dirty = true;
		if (process->out && xs_output_full(process->out))
			process->commit(process);
	}
	buffer->full = false;
	buffer->done = cuda->dirty = true;
	return buffer->consumed - first;
}

bool xs_cuda_is_there(const struct xs_process *process)
{
	return process->cuda && process->cuda->file;
}

uint64_t xs_cuda_read(struct xs_process *process, bool all)
{
	struct xs_cuda *cuda = process->cuda;
	uint64_t read = 0;

	if (!cuda || !cuda->file)
		return 0;
	read_orphans(process, false);
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		struct xs_cuda_buffer *buffer = &cuda->buffer[i];

		if (buffer->full)
			read += read_buffer(process, buffer,
					    atomic_load_explicit(&buffer->map->valid,
								 memory_order_relaxed));
	}
	/* what CUPTI had not handed back when the process ended: up to the first zero */
	for (uint32_t i = 0; all && i < XS_ACTIVITY_BUFFERS; i++) {
		struct xs_cuda_buffer *buffer = &cuda->buffer[i];

		if (buffer->map && !buffer->done &&
		    atomic_load_explicit(&buffer->map->state, memory_order_acquire) ==
			    XS_BUFFER_HANDED)
			read += read_buffer(process, buffer, XS_ACTIVITY_BYTES);
	}
	if (all)
		read_orphans(process, true);
	return read;
}

/* ---- committing ---- */

bool xs_cuda_is_dirty(const struct xs_process *process)
{
	return process->cuda && process->cuda->dirty;
}

static struct xs_kept_activity *kept_of(const struct xs_process *process)
{
	return process->kept && process->cuda && process->cuda->dirty ? &process->kept->activity
								      : NULL;
}

void xs_cuda_save(struct xs_process *process)
{
	struct xs_kept_activity *kept = kept_of(process);
	uint32_t state;

	if (!kept)
		return;
	state = atomic_load_explicit(&kept->state, memory_order_relaxed);
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++)
		kept->consumed[state == XS_SAVED_0][i] = (uint64_t)process->cuda->buffer[i].turn
								 << 32 |
							 process->cuda->buffer[i].consumed;
	atomic_store_explicit(&kept->state,
			      state == XS_SAVED_0 ? XS_SAVED_0_NEXT_1 : XS_SAVED_1_NEXT_0,
			      memory_order_release);
}

static void settle(struct xs_kept_activity *kept)
{
	uint32_t state = atomic_load_explicit(&kept->state, memory_order_relaxed);

	if (state == XS_SAVED_0_NEXT_1)
		atomic_store_explicit(&kept->state, XS_SAVED_1, memory_order_release);
	else if (state == XS_SAVED_1_NEXT_0)
		atomic_store_explicit(&kept->state, XS_SAVED_0, memory_order_release);
}

void xs_cuda_settle(struct xs_process *process)
{
	struct xs_kept_activity *kept = kept_of(process);

	if (kept)
		settle(kept);
}

void xs_cuda_restore(struct xs_process *process)
{
	struct xs_kept_activity *kept = process->kept ? &process->kept->activity : NULL;
	uint32_t state;

	if ((!process->run->recovering && !process->run->hosted_start) || !kept)
		return;
	if (atomic_load(&process->kept->committed) & 1)
		settle(kept);
	state = atomic_load(&kept->state);
	if (state == XS_SAVED_0_NEXT_1 || state == XS_SAVED_1_NEXT_0)
		state = state == XS_SAVED_0_NEXT_1 ? XS_SAVED_0 : XS_SAVED_1;
	atomic_store(&kept->state, state);
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		uint64_t consumed = kept->consumed[state == XS_SAVED_1][i];

		process->cuda->buffer[i].turn = (uint32_t)(consumed >> 32);
		process->cuda->buffer[i].consumed = (uint32_t)consumed;
	}
}

/* All zero again: CUPTI, and who reads after a kill, may rely on it. */
void xs_cuda_release(struct xs_process *process)
{
	struct xs_cuda *cuda = process->cuda;

	if (!cuda)
		return;
	cuda->dirty = false;
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		struct xs_cuda_buffer *buffer = &cuda->buffer[i];

		if (!buffer->done)
			continue;
		buffer->done = false;
		if (atomic_load_explicit(&buffer->map->state, memory_order_relaxed) !=
		    XS_BUFFER_FULL)
			continue;
		memset((char *)buffer->map + XS_ACTIVITY_HEADER, 0, XS_ACTIVITY_BYTES);
		atomic_store_explicit(&buffer->map->state, XS_BUFFER_EMPTY, memory_order_release);
	}
}

/* ---- the end ---- */

static void tell(struct xs_process *process)
{
	const struct xs_cuda *cuda = process->cuda;

	xs_process_tell(process,
			(struct xs_about){ .key = "cupti_version", .number = cuda->version });
	if (cuda->off)
		xs_process_tell(process, (struct xs_about){ .key = "cuda_off", .text = cuda->off });
	else if (cuda->clock == XS_ACTIVITY_PAIRS)
		xs_process_tell(process, (struct xs_about){ .key = "cuda_clock_error_ns",
							    .number = cuda->clock_error });
}

void xs_cuda_finish(struct xs_process *process)
{
	struct xs_cuda *cuda = process->cuda;
	uint64_t dropped, open;

	if (!cuda || !cuda->file)
		return;
	dropped = atomic_load(&cuda->file->dropped);
	/* a hostile process may have written any number */
	dropped = dropped < 1ull << 48 ? dropped : 0;
	open = cuda->launches > cuda->joined + cuda->untimed
		       ? cuda->launches - cuda->joined - cuda->untimed
		       : 0;
	process->lost += dropped;
	process->untimed += cuda->untimed;
	/* a flight recorder's history has the calls alone */
	if (!process->run->flight)
		process->open_commands += open > dropped ? open - dropped : 0;
	process->corrupt += cuda->unknown;
	tell(process);
}

void xs_cuda_remove_files(const struct xs_process *process)
{
	char name[XS_NAME_MAX];

	for (uint32_t i = 0; process->cuda && i <= XS_ACTIVITY_BUFFERS; i++) {
		xs_activity_name(name, process->pid, process->serial, i);
		(void)unlinkat(process->run->directory, name, 0);
	}
}

void xs_cuda_free(struct xs_process *process)
{
	struct xs_cuda *cuda = process->cuda;

	if (!cuda)
		return;
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++)
		if (cuda->buffer[i].map)
			munmap(cuda->buffer[i].map, XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES);
	if (cuda->file)
		munmap(cuda->file, sizeof(*cuda->file));
	free(cuda->calls);
	free(cuda->orphans);
	free(cuda);
	process->cuda = NULL;
}
