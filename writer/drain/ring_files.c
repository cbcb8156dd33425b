/*
 * The files of a process's rings: the first one, and further ones, of which it makes one whenever
 * it needs more rings than there are. It says in its first file how many there are. So one that
 * cannot be opened or mapped, whatever the reason, is known to be missing, and the others are read.
 */
#include "ring_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ring_tracks.h"
#include "unread.h"

bool xs_mapped_is_valid(const struct xs_mapped *file)
{
	return file->ring_size >= XS_RING_MIN && file->ring_size <= XS_RING_MAX &&
	       !(file->ring_size & (file->ring_size - 1)) && file->slots <= 65536 &&
	       xs_slot_offset(file->slots, file->ring_size) <= file->size;
}

static int map_segment(const struct xs_process *process, struct xs_mapped *segment,
		       const char *name)
{
	int error = xs_shm_map_at(process->run->directory, name, XS_SHM_OPEN, 0, &segment->map,
				  &segment->size);
	const volatile struct xs_segment_file *file = segment->map;

	if (error < 0)
		return error;
	if (segment->size >= XS_PROCESS_HEADER && file->magic == XS_MAGIC) {
		segment->slots = file->slots;
		segment->ring_size = file->ring_size;
		if (xs_mapped_is_valid(segment))
			return 0;
	}
	munmap(segment->map, segment->size);
	segment->map = NULL;
	return -EBADMSG;
}

/* 0 or -errno: not all that is in the file is read. */
static int find_in_segment(struct xs_process *process, uint32_t index, const char *name)
{
	struct xs_mapped *segment = &process->segments[index];
	struct xs_segment_file *file;
	int error = segment->map || segment->error ? segment->error
						   : map_segment(process, segment, name);

	if (error < 0) {
		if (!xs_unread_for_want(error))
			segment->error = error; /* once: there may be as many as somebody says */
		return error;
	}
	file = segment->map;
	/* pairs with the release in the collector's fresh() */
	error = xs_process_find_in(process, segment, index + 1,
				   atomic_load_explicit(&file->used, memory_order_acquire));
	if (atomic_load_explicit(&file->magic, memory_order_relaxed) != XS_MAGIC)
		error = -EBADMSG; /* then it does not say how many rings are used, either */
	return error;
}

/* So many files as the process says, if it says what can be. */
static void make_room(struct xs_process *process)
{
	/* pairs with the release in the collector's make_segment() */
	uint32_t count = atomic_load_explicit(&process->file->segments, memory_order_acquire);
	struct xs_mapped *grown;

	if (count > XS_MAX_SEGMENTS)
		count = XS_MAX_SEGMENTS;
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

void xs_process_find_tracks(struct xs_process *process)
{
	char name[XS_NAME_MAX];
	int error;

	/* pairs with the release in the collector's fresh() */
	error = xs_process_find_in(process, &process->first, 0,
				   atomic_load_explicit(&process->file->used,
							memory_order_acquire));
	if (error < 0)
		xs_unread_note(process, process->name, error);
	make_room(process);
	for (uint32_t i = 0; i < process->segment_count; i++) {
		xs_process_file_name(name, process->pid, process->serial, i + 1);
		error = find_in_segment(process, i, name);
		if (error < 0)
			xs_unread_note(process, name, error);
	}
}
