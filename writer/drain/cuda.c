/*
 * The buffers of CUDA's activity: found, read, given back.
 *
 * A buffer is read when the rings have been read up to a moment at which it was full: then the
 * calls of its records are known. The commit that writes its text out gives it back. While it is
 * read its traced process waits for nothing: it has others.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda.h"
#include "flight.h"
#include "names.h"
#include "output.h"
#include "text.h"
#include "tracks.h"
#include "unread.h"

/* how long a record waits for the call that it belongs to */
#define PATIENCE 2000000000u /* ns */

/* The process says that it has made this file, and it cannot be read. */
static void note(struct xs_process *process, uint32_t number, int error)
{
	char name[XS_NAME_MAX];

	xs_activity_name(name, process->pid, process->serial, number);
	xs_unread_note(process, name, error);
}

/* made_as: where the file says which one it is. */
static void *map_file(struct xs_process *process, uint32_t number, uint64_t size, size_t made_as,
		      bool *ret_other)
{
	struct xs_shm_file opened;
	char name[XS_NAME_MAX];
	void *map;
	int error;

	xs_activity_name(name, process->pid, process->serial, number);
	error = xs_shm_map_at(process->run->directory, name, XS_SHM_OPEN, size, &map, &opened);
	if (!error) {
		*ret_other = xs_unread_is_other(process, *(const uint64_t *)((char *)map + made_as),
						opened.inode, number);
		return map;
	}
	note(process, number, error);
	return NULL;
}

/* --recover: is the file there, although a word that says so may be spoilt? */
static bool is_left(const struct xs_process *process, uint32_t number)
{
	char name[XS_NAME_MAX];

	if (!process->run->recovering)
		return false;
	xs_activity_name(name, process->pid, process->serial, number);
	return faccessat(process->run->directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make_history(struct xs_process *process);

/* The file that tells of the others: what must not change later is copied. */
static struct xs_cuda *open_cuda(struct xs_process *process)
{
	struct xs_cuda *cuda;
	struct xs_activity_file *file;
	bool told;

	if (process->cuda && process->cuda->file) {
		if (process->cuda->other)
			note(process, 0, -EPERM);
		return process->cuda;
	}
	/* pairs with the release in the collector's xs_tell_activity() */
	if (!process->file)
		return NULL;
	told = atomic_load_explicit(&process->file->activity, memory_order_acquire);
	if (!told && !is_left(process, 0))
		return NULL;
	cuda = xs_cuda_of(process);
	if (!cuda)
		note(process, 0, -ENOMEM);
	file = cuda ? map_file(process, 0, sizeof(*file),
			       offsetof(struct xs_activity_file, made_as), &cuda->other)
		    : NULL;
	if (!file)
		return NULL;
	if (atomic_load_explicit(&file->magic, memory_order_acquire) != XS_MAGIC) {
		munmap(file, sizeof(*file));
		note(process, 0, -EBADMSG);
		return NULL;
	}
	cuda->file = file;
	if (cuda->other)
		note(process, 0, -EPERM);
	if (!told && atomic_load(&file->made))
		process->corrupt++;
	cuda->version = file->version;
	cuda->source = file->source;
	cuda->clock = file->clock;
	cuda->off = file->off;
	if (process->run->flight)
		make_history(process);
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

static void map_buffer(struct xs_process *process, uint32_t index, bool told, bool *ret_spoilt)
{
	struct xs_cuda_buffer *buffer = &process->cuda->buffer[index];

	buffer->map = map_file(process, index + 1, XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES,
			       offsetof(struct xs_activity_buffer, made_as), &buffer->other);
	/* or the process ended when it had just made it */
	*ret_spoilt |= !told && buffer->map && atomic_load(&buffer->map->state);
}

static void map_buffers(struct xs_process *process)
{
	struct xs_cuda *cuda = process->cuda;
	uint64_t made = atomic_load_explicit(&cuda->file->made, memory_order_acquire);
	bool spoilt = false;

	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		struct xs_cuda_buffer *buffer = &cuda->buffer[i];
		bool told = made >> i & 1;

		if (!buffer->map && (told || is_left(process, i + 1)))
			map_buffer(process, i, told, &spoilt);
		if (buffer->map && buffer->other)
			note(process, i + 1, -EPERM);
	}
	process->corrupt += spoilt;
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
			       atomic_load_explicit(&buffer->map->state, memory_order_acquire) >=
				       XS_BUFFER_FULL; /* or somebody else's number: it heals */
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
		return process->mono_offset;
	if (width / 2 > cuda->clock_error)
		cuda->clock_error = width / 2;
	return process->mono_offset + (int64_t)(pair.before + width / 2 - pair.cupti);
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
	orphan->told.offset = cuda->offset;
	orphan->told.size = size < sizeof(orphan->told.data) ? size
							     : (uint32_t)sizeof(orphan->told.data);
	memcpy(orphan->told.data, data, orphan->told.size);
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

		cuda->offset = orphan->told.offset;
		if (!xs_cuda_record(process, orphan->told.data, orphan->told.size, last) &&
		    left++ != i)
			cuda->orphans[left - 1] = *orphan;
	}
	cuda->orphan_count = left;
}

/* In memory of ours: it is shown, or waits for its call. */
static void tell(struct xs_process *process, const unsigned char *data, uint32_t size)
{
	if (!xs_cuda_record(process, data, size, false) && !keep_orphan(process->cuda, data, size))
		(void)xs_cuda_record(process, data, size, true);
}

/* A record is followed by the next one at a multiple of 16 bytes. */
static uint32_t room_of(uint32_t size)
{
	return (uint32_t)offsetof(struct xs_cuda_told, data) + (size + 15) / 16 * 16;
}

static void keep(struct xs_cuda *cuda, const unsigned char *data, uint32_t size)
{
	struct xs_cuda_told told = { .offset = cuda->offset };

	told.size = size < sizeof(told.data) ? size : (uint32_t)sizeof(told.data);
	memcpy(told.data, data, told.size);
	xs_flight_add(cuda->history, &told, room_of(told.size));
}

/*
 * A record of the buffer at `at`; returns its length, 0: there are no more that can be read. full:
 * there is one, as the traced process says.
 */
static uint32_t read_one(struct xs_process *process, const unsigned char *data, uint32_t at,
			 uint32_t valid, bool full)
{
	_Alignas(8) unsigned char copy[XS_RECORD_ROOM];
	struct xs_cuda *cuda = process->cuda;
	uint32_t kind, size, length;

	if (valid - at < 8)
		return 0;
	memcpy(&kind, data + at, sizeof(kind));
	kind &= ~XS_ACTIVITY_RESERVED;
	size = kind < XS_ACTIVITY_KINDS ? cuda->size[kind] : 0;
	if (!size || size > valid - at) {
		cuda->unknown += kind || full;
		return 0;
	}
	length = size < sizeof(copy) ? size : sizeof(copy);
	memcpy(copy, data + at, length);
	memcpy(copy, &kind, sizeof(kind)); /* it may have changed since */
	if (cuda->history && !process->open_count)
		keep(cuda, copy, length);
	else if (cuda->for_later)
		(void)xs_cuda_record(process, copy, length, false);
	else
		tell(process, copy, length);
	return size;
}

/* How much of it can be read, and from where on. */
static uint32_t valid_of(struct xs_cuda_buffer *buffer)
{
	uint32_t turn = __atomic_load_n(&buffer->map->turn, __ATOMIC_RELAXED);
	uint64_t valid = buffer->full
				 ? atomic_load_explicit(&buffer->map->valid, memory_order_relaxed)
				 : XS_ACTIVITY_BYTES;

	if (turn != buffer->turn) {
		buffer->turn = turn;
		buffer->consumed = 0;
	}
	return valid < XS_ACTIVITY_BYTES ? (uint32_t)valid : XS_ACTIVITY_BYTES;
}

static uint64_t read_buffer(struct xs_process *process, struct xs_cuda_buffer *buffer)
{
	const unsigned char *data = (const unsigned char *)buffer->map + XS_ACTIVITY_HEADER;
	struct xs_cuda *cuda = process->cuda;
	uint32_t valid = valid_of(buffer), first = buffer->consumed, size;

	cuda->offset = offset_of(process, buffer->map);
	while (buffer->consumed < valid) {
		size = read_one(process, data, buffer->consumed, valid, buffer->full);
		if (!size)
			break;
		buffer->consumed += size;
		cuda->dirty = true;
		if (++cuda->records % 16 == 0) {
			xs_cuda_tell_waits(process, false);
			xs_cuda_tell_streams(process, false);
		}
		if (process->out && xs_output_full(process->out))
			process->commit(process);
	}
	buffer->full = false;
	buffer->done = cuda->dirty = true;
	return buffer->consumed - first;
}

bool xs_cuda_is_cut(const struct xs_process *process)
{
	char name[XS_NAME_MAX];
	struct stat st;

	for (uint32_t i = 0; process->cuda && i < XS_ACTIVITY_BUFFERS; i++) {
		xs_activity_name(name, process->pid, process->serial, i + 1);
		if (process->cuda->buffer[i].map &&
		    !fstatat(process->run->directory, name, &st, AT_SYMLINK_NOFOLLOW) &&
		    st.st_size < (off_t)(XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES))
			return true;
	}
	return false;
}

bool xs_cuda_is_there(const struct xs_process *process)
{
	return process->cuda && process->cuda->file;
}

/*
 * Those that are full, or that CUPTI had not handed back when the process ended, in the order in
 * which it got them. Returns their number.
 */
static uint32_t list_buffers(struct xs_cuda *cuda, bool all,
			     struct xs_cuda_buffer *list[XS_ACTIVITY_BUFFERS])
{
	uint32_t count = 0, at, turns[XS_ACTIVITY_BUFFERS];

	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		struct xs_cuda_buffer *buffer = &cuda->buffer[i];
		uint32_t turn;

		if (!buffer->full &&
		    (!all || !buffer->map || buffer->done ||
		     atomic_load_explicit(&buffer->map->state, memory_order_acquire) ==
			     XS_BUFFER_EMPTY))
			continue;
		turn = __atomic_load_n(&buffer->map->turn, __ATOMIC_RELAXED);
		for (at = count++; at && turns[at - 1] > turn; at--) {
			turns[at] = turns[at - 1];
			list[at] = list[at - 1];
		}
		turns[at] = turn;
		list[at] = buffer;
	}
	return count;
}

/* all: up to the first zero what has not been handed back, too. */
static uint64_t read_buffers(struct xs_process *process, bool all)
{
	struct xs_cuda_buffer *list[XS_ACTIVITY_BUFFERS];
	uint32_t count = list_buffers(process->cuda, all, list);
	uint64_t read = 0;

	/* rings say how far time has come when they are read, which may be at the end alone */
	process->horizon = xs_process_ns(process, xs_tick(process->run->use_tsc) + XS_SKEW);
	for (uint32_t i = 0; i < count; i++)
		read += read_buffer(process, list[i]);
	return read;
}

uint64_t xs_cuda_read(struct xs_process *process, bool all)
{
	struct xs_cuda *cuda = process->cuda;
	uint64_t read = 0;

	if (!cuda || !cuda->file)
		return 0;
	read_orphans(process, false);
	read = read_buffers(process, all);
	if (all)
		read_orphans(process, true);
	xs_cuda_tell_waits(process, all);
	xs_cuda_tell_streams(process, all);
	return read;
}

/* Of the flight recorder's history: without a sink it is remembered for what comes later. */
static void replay(struct xs_track *history, const unsigned char *data, uint32_t length)
{
	struct xs_process *process = history->process;
	const struct xs_cuda_told *told;

	for (uint32_t at = 0; at < length; at += room_of(told->size)) {
		told = (const void *)(data + at);
		process->cuda->offset = told->offset;
		if (process->open_count)
			tell(process, told->data, told->size);
		else
			(void)xs_cuda_record(process, told->data, told->size, true);
		if (process->out && xs_output_full(process->out))
			process->commit(process);
	}
}

/*
 * The flight recorder's memory: one more sequence of records beside those of the rings, which comes
 * last in each look. So the calls that its records belong to are known.
 */
static void make_history(struct xs_process *process)
{
	struct xs_track *history = calloc(1, sizeof(*history));

	if (history) {
		history->process = process;
		history->replay = replay;
	}
	process->cuda->history = history;
}

void xs_cuda_read_newest(struct xs_process *process)
{
	struct xs_cuda *cuda = process->cuda;
	uint64_t unknown;

	if (!cuda || !cuda->file)
		return;
	unknown = cuda->unknown;
	cuda->for_later = process->end == XS_END_RUNNING;
	(void)read_buffers(process, true);
	if (cuda->for_later)
		cuda->unknown = unknown;
	read_orphans(process, true);
	xs_cuda_tell_waits(process, true);
	xs_cuda_tell_streams(process, true);
}

/* ---- committing ---- */

/* All zero again: CUPTI, and who reads after a kill, may rely on it. */
void xs_cuda_release(struct xs_process *process)
{
	struct xs_cuda *cuda = process->cuda;

	if (!cuda)
		return;
	/* its writer may be about to read what was in the buffers when it began */
	cuda->dirty = process->run->flight && xs_flight_is_writing(process->run);
	if (cuda->dirty)
		return;
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		struct xs_cuda_buffer *buffer = &cuda->buffer[i];
		uint64_t valid;

		if (!buffer->done)
			continue;
		buffer->done = false;
		if (atomic_load_explicit(&buffer->map->state, memory_order_relaxed) <
		    XS_BUFFER_FULL)
			continue;
		/* what CUPTI has written, or somebody says that it has */
		valid = atomic_load_explicit(&buffer->map->valid, memory_order_relaxed);
		if (valid < buffer->consumed)
			valid = buffer->consumed;
		memset((char *)buffer->map + XS_ACTIVITY_HEADER, 0,
		       valid < XS_ACTIVITY_BYTES ? valid : XS_ACTIVITY_BYTES);
		atomic_store_explicit(&buffer->map->state, XS_BUFFER_EMPTY, memory_order_release);
	}
}

/* ---- the end ---- */

static void tell_about(struct xs_process *process)
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

	if (!cuda)
		return;
	/* without its file nothing is known but what calls have put on a device */
	dropped = cuda->file ? atomic_load(&cuda->file->dropped) : 0;
	/* a hostile process may have written any number */
	dropped = dropped < 1ull << 48 ? dropped : 0;
	open = cuda->awaited > cuda->joined ? cuda->awaited - cuda->joined : 0;
	process->lost += dropped;
	process->untimed += cuda->untimed;
	process->open_commands += open > dropped ? open - dropped : 0;
	process->corrupt += cuda->unknown;
	if (cuda->file)
		tell_about(process);
}

void xs_cuda_remove_files(const struct xs_process *process)
{
	char name[XS_NAME_MAX];

	for (uint32_t i = 0; process->cuda && i <= XS_ACTIVITY_BUFFERS; i++) {
		xs_activity_name(name, process->pid, process->serial, i);
		(void)unlinkat(process->run->directory, name, 0);
	}
}

void xs_cuda_unmap(struct xs_process *process)
{
	struct xs_cuda *cuda = process->cuda;

	for (uint32_t i = 0; cuda && i < XS_ACTIVITY_BUFFERS; i++) {
		if (cuda->buffer[i].map)
			munmap(cuda->buffer[i].map, XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES);
		cuda->buffer[i].map = NULL;
	}
}

void xs_cuda_free(struct xs_process *process)
{
	struct xs_cuda *cuda = process->cuda;

	if (!cuda)
		return;
	xs_cuda_unmap(process);
	if (cuda->history)
		xs_flight_forget(cuda->history);
	free(cuda->history);
	if (cuda->file)
		munmap(cuda->file, sizeof(*cuda->file));
	free(cuda->calls);
	free(cuda->orphans);
	free(cuda->waits);
	xs_cuda_metrics_free(cuda);
	free(cuda);
	process->cuda = NULL;
}
