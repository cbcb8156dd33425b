/*
 * The files of a process's rings: the first one, and further ones, of which it makes one whenever
 * it needs more rings than there are. It says in its first file how many there are. So one that
 * cannot be opened or mapped, whatever the reason, is known to be missing, and the others are read.
 */
#include "ring_files.h"

#include <errno.h>
#include <stdlib.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring_tracks.h"
#include "unread.h"

/* How many rings it has may be spoilt; its length, and that of a ring, say the same. */
static void count_slots(struct xs_process *process, struct xs_mapped *file)
{
	uint64_t ring = XS_RING_HEADER + file->ring_size;
	uint64_t slots = (file->size - XS_PROCESS_HEADER) / ring;

	if (file->slots == slots || slots * ring != file->size - XS_PROCESS_HEADER || slots > 65536)
		return;
	file->slots = (uint32_t)slots;
	process->corrupt++;
}

bool xs_mapped_is_valid(struct xs_process *process, struct xs_mapped *file)
{
	if (file->ring_size < XS_RING_MIN || file->ring_size > XS_RING_MAX ||
	    file->ring_size & (file->ring_size - 1))
		return false;
	count_slots(process, file);
	return xs_slot_offset(file->slots, file->ring_size) == file->size;
}

/*
 * How many rings of a file have records, or stand before one that has, from `seen` on. By reading:
 * a hole that is looked at through a mapping takes memory.
 */
static uint32_t with_records(const struct xs_process *process, const struct xs_mapped *file,
			     const char *name)
{
	int fd = xs_shm_open(process->run->directory, name, XS_SHM_READ);
	uint32_t count = file->seen;
	uint64_t head;

	for (uint32_t i = file->seen; fd >= 0 && i < file->slots; i++)
		if (pread(fd, &head, sizeof(head),
			  (off_t)(xs_slot_offset(i, file->ring_size) +
				  offsetof(struct xs_ring, head))) == sizeof(head) &&
		    head)
			count = i + 1;
	if (fd >= 0)
		close(fd);
	return count;
}

/*
 * All rings that are to be read. `used`: the file's word of how many there are. last: a ring beyond
 * that has records tells that the word is not what the process wrote.
 */
static int find_in(struct xs_process *process, struct xs_mapped *file, uint32_t index,
		   _Atomic uint32_t *used, bool last, const char *name)
{
	/* pairs with the release in the collector's fresh() */
	uint32_t more, count = atomic_load_explicit(used, memory_order_acquire);
	int error = xs_process_find_in(process, file, index, count);

	if (!last || error)
		return error;
	more = with_records(process, file, name);
	atomic_thread_fence(memory_order_acquire);
	if (more <= file->seen)
		return 0;
	if (atomic_load_explicit(used, memory_order_acquire) < more) /* or a thread took it now */
		process->corrupt++;
	return xs_process_find_in(process, file, index, more);
}

static int map_segment(struct xs_process *process, struct xs_mapped *segment, uint32_t index,
		       const char *name)
{
	struct xs_shm_file opened;
	int error = xs_shm_map_at(process->run->directory, name, XS_SHM_OPEN, 0, &segment->map,
				  &opened);
	const volatile struct xs_segment_file *file = segment->map;

	if (error < 0)
		return error;
	segment->size = opened.size;
	if (segment->size >= XS_PROCESS_HEADER && file->magic == XS_MAGIC) {
		segment->slots = file->slots;
		segment->ring_size = file->ring_size;
		segment->other =
			xs_unread_is_other(process, file->made_as, opened.inode, index + 1);
		if (xs_mapped_is_valid(process, segment))
			return 0;
	}
	munmap(segment->map, segment->size);
	segment->map = NULL;
	return -EBADMSG;
}

/* 0 or -errno: not all that is in the file is read. */
static int find_in_segment(struct xs_process *process, uint32_t index, bool last, const char *name)
{
	struct xs_mapped *segment = &process->segments[index];
	struct xs_segment_file *file;
	int error = segment->map || segment->error ? segment->error
						   : map_segment(process, segment, index, name);

	if (error < 0) {
		if (!xs_unread_for_want(error))
			segment->error = error; /* once: there may be as many as somebody says */
		return error;
	}
	file = segment->map;
	error = find_in(process, segment, index + 1, &file->used, last, name);
	if (atomic_load_explicit(&file->magic, memory_order_relaxed) != XS_MAGIC)
		error = -EBADMSG; /* then it does not say how many rings are used, either */
	return !error && segment->other ? -EPERM : error;
}

/* Has the process made this file, and written into it? */
static bool has_records(struct xs_process *process, uint32_t index, const char *name)
{
	struct xs_mapped segment = { .map = NULL };
	bool has = !map_segment(process, &segment, index, name) &&
		   with_records(process, &segment, name) > 0;

	if (segment.map)
		munmap(segment.map, segment.size);
	return has;
}

/* How many further files there are, although the process does not say so any more. */
static uint32_t files_beyond(struct xs_process *process, uint32_t count)
{
	const _Atomic uint32_t *segments = &process->file->segments;
	char name[XS_NAME_MAX];

	for (; count < XS_MAX_SEGMENTS; count++) {
		xs_process_file_name(name, process->pid, process->serial, count + 1);
		if (!has_records(process, count, name))
			break;
		atomic_thread_fence(memory_order_acquire);
		/* or it was made now */
		if (atomic_load_explicit(segments, memory_order_acquire) <= count)
			process->corrupt++;
	}
	return count;
}

/* So many files as the process says, if it says what can be. */
static void make_room(struct xs_process *process, bool last)
{
	/* pairs with the release in the collector's make_segment() */
	uint32_t count = atomic_load_explicit(&process->file->segments, memory_order_acquire);
	struct xs_mapped *grown;

	if (count > XS_MAX_SEGMENTS)
		count = XS_MAX_SEGMENTS;
	if (count < process->segment_count)
		count = process->segment_count;
	if (last)
		count = files_beyond(process, count);
	if (count <= process->segment_count)
		return;
	grown = realloc(process->segments, count * sizeof(*grown));
	if (!grown) {
		xs_unread_note(process, process->name, -ENOMEM);
		return;
	}
	memset(grown + process->segment_count, 0,
	       (count - process->segment_count) * sizeof(*grown));
	process->segments = grown;
	process->segment_count = count;
}

void xs_process_find_tracks(struct xs_process *process, bool last)
{
	char name[XS_NAME_MAX];
	int error;

	error = find_in(process, &process->first, 0, &process->file->used, last, process->name);
	if (!error && process->first.other)
		error = -EPERM;
	if (error < 0)
		xs_unread_note(process, process->name, error);
	make_room(process, last);
	for (uint32_t i = 0; i < process->segment_count; i++) {
		xs_process_file_name(name, process->pid, process->serial, i + 1);
		error = find_in_segment(process, i, last, name);
		if (error < 0)
			xs_unread_note(process, name, error);
	}
}
