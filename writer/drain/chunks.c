/*
 * The memory of the backlog: one sparse file in the run's directory, which a successor finds there.
 * It begins with a table that says for each chunk whose it is; lists are private.
 *
 * New memory costs more than what is copied into it, so the chunk that was used last is the next to
 * be used again. More than a few that nobody uses go back to the system.
 */
#include "chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "memory.h"

#define NAME	   "backlog"
#define SIZE_LEAST 4096u
#define SIZE	   (128u << 10) /* where the limit is not too small, or too large, for that */
#define COUNT_MOST 8192u	/* each is a mapping, of which a process may have 65,530 */
#define SPARES	   32u
#define LOOK	   (4u << 20) /* bytes of new memory, before it is looked how much there is */
#define REFUSED	   50000000u  /* ns: until then it is not looked again whether there is more */

static uint64_t table_size(const struct xs_chunks *chunks)
{
	uint64_t size = chunks->count * sizeof(*chunks->table);

	return (size + XS_PAGE - 1) & ~(uint64_t)(XS_PAGE - 1);
}

void xs_chunks_init(struct xs_chunks *chunks, struct xs_run *run, uint64_t limit)
{
	*chunks = (struct xs_chunks){ .run = run, .fd = -1, .size = SIZE };
	while (chunks->size > SIZE_LEAST && chunks->size > limit / 8)
		chunks->size /= 2;
	while (limit / chunks->size > COUNT_MOST)
		chunks->size *= 2;
	chunks->count = (uint32_t)(limit / chunks->size);
}

static bool map_file(struct xs_chunks *chunks)
{
	const struct xs_run *run = chunks->run;
	uint64_t size = table_size(chunks);
	void *map;

	chunks->fd =
		xs_shm_open(run->directory, NAME, run->recovering ? XS_SHM_OPEN : XS_SHM_CREATE);
	if (chunks->fd < 0 || !xs_run_can_spare(run, chunks->fd) ||
	    (!run->recovering &&
	     ftruncate(chunks->fd, (off_t)(size + chunks->count * chunks->size)) < 0))
		return false;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, chunks->fd, 0);
	if (map == MAP_FAILED)
		return false;
	chunks->table = map;
	chunks->next = calloc(chunks->count, sizeof(*chunks->next));
	return chunks->next && xs_shm_present(map, size);
}

/* The file is made when the first ring is full. */
static bool is_open(struct xs_chunks *chunks)
{
	if (chunks->fd < 0 && !chunks->failed)
		chunks->failed = !map_file(chunks);
	return !chunks->failed;
}

void xs_chunks_close(struct xs_chunks *chunks)
{
	if (chunks->table)
		(void)munmap(chunks->table, table_size(chunks));
	if (chunks->fd >= 0)
		close(chunks->fd);
	free(chunks->next);
}

static uint64_t place_of(const struct xs_chunks *chunks, uint32_t number)
{
	return table_size(chunks) + number * chunks->size;
}

/*
 * What the option allows is not taken from who needs memory: as much as the backlog has stays free,
 * for rings and for the application, whose group (container, job) may have a limit, too.
 */
static bool may_grow(struct xs_chunks *chunks)
{
	uint64_t has = (chunks->used + 1) * chunks->size, free = 0, memory;
	struct statvfs fs;

	if (chunks->allowed < chunks->size) {
		memory = xs_memory_available();
		if (!fstatvfs(chunks->fd, &fs))
			free = (uint64_t)fs.f_bavail * fs.f_frsize;
		free = free < memory ? free : memory;
		if (free < has + chunks->size || has > xs_memory_limit() / 8)
			return false;
		chunks->allowed = LOOK < chunks->size ? chunks->size : LOOK;
	}
	chunks->allowed -= chunks->size;
	return true;
}

bool xs_chunks_has_room(const struct xs_chunks *chunks)
{
	if (chunks->spare)
		return true;
	if (chunks->failed || (!chunks->empty && chunks->used >= chunks->count))
		return false;
	return !chunks->refused || xs_clock_ns(CLOCK_MONOTONIC) - chunks->refused > REFUSED;
}

/* Returns number + 1; 0: there is none. */
static uint32_t take(struct xs_chunks *chunks)
{
	uint32_t *list = chunks->spare ? &chunks->spare : &chunks->empty, chunk;

	if (!xs_chunks_has_room(chunks))
		return 0;
	if (!chunks->spare && !may_grow(chunks)) {
		chunks->refused = xs_clock_ns(CLOCK_MONOTONIC);
		return 0;
	}
	chunks->refused = 0;
	chunk = *list;
	if (!chunk)
		return ++chunks->used;
	chunks->spares -= list == &chunks->spare;
	*list = chunks->next[chunk - 1];
	return chunk;
}

static void append(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t chunk,
		   uint64_t position)
{
	chunks->next[chunk - 1] = 0;
	chunks->taken++;
	if (list->first) {
		chunks->next[list->last - 1] = chunk;
	} else {
		list->first = chunk;
		list->from = position;
	}
	list->last = chunk;
	list->to = position;
}

bool xs_chunks_add(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t owner,
		   uint64_t position)
{
	uint32_t chunk = is_open(chunks) ? take(chunks) : 0;
	struct xs_chunk_entry *entry;

	if (!chunk)
		return false;
	entry = &chunks->table[chunk - 1];
	atomic_store_explicit(&entry->owner, 0, memory_order_release);
	entry->position = position;
	atomic_store_explicit(&entry->owner, owner, memory_order_release);
	append(chunks, list, chunk, position);
	return true;
}

bool xs_chunks_find(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t owner,
		    uint64_t position)
{
	for (uint32_t i = 0; is_open(chunks) && i < chunks->count; i++) {
		const struct xs_chunk_entry *entry = &chunks->table[i];

		if (atomic_load(&entry->owner) != owner || entry->position != position)
			continue;
		append(chunks, list, i + 1, position);
		return true;
	}
	return false;
}

uint64_t xs_chunks_place(const struct xs_chunks *chunks, const struct xs_chunk_list *list,
			 uint64_t position)
{
	uint64_t start = position & ~(chunks->size - 1), at = list->from;
	uint32_t chunk = list->first;

	if (list->first && start == list->to) {
		chunk = list->last;
		at = start;
	}
	for (; chunk && at != start; at += chunks->size)
		chunk = chunks->next[chunk - 1];
	return chunk ? place_of(chunks, chunk - 1) + (position - start) : 0;
}

void xs_chunks_drop(struct xs_chunks *chunks, struct xs_chunk_list *list)
{
	uint32_t chunk = list->first, *to = &chunks->spare;

	list->first = chunks->next[chunk - 1];
	list->from += chunks->size;
	chunks->taken--;
	atomic_store_explicit(&chunks->table[chunk - 1].owner, 0, memory_order_release);
	if (chunks->spares < SPARES) {
		chunks->spares++;
	} else {
		(void)fallocate(chunks->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)place_of(chunks, chunk - 1), (off_t)chunks->size);
		to = &chunks->empty;
	}
	chunks->next[chunk - 1] = *to;
	*to = chunk;
}
