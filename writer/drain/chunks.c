/*
 * Where the backlog lies: in memory, which is a sparse file of the run's directory, and for what
 * has no place there in a file on disk (spool.c). A successor finds both. The former begins with
 * the latter's name and a table that says for each chunk whose it is; lists are private.
 *
 * New memory costs more than what is copied into it, so the chunk that was used last is the next to
 * be used again. More than a few that nobody uses go back to the system.
 */
#include "chunks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "memory.h"
#include "text.h"
#include "unread.h"

#define NAME	    "backlog"
#define SIZE_LEAST  4096u
#define SIZE	    (128u << 10) /* where the limit is not too small, or too large, for that */
#define MEMORY_MOST 8192u
#define DISK_MOST   (1u << 18)
#define RUNS_MOST   32768u /* each is a mapping, of which a process may have 65,530 */
#define SPARES	    32u
#define LOOK	    (4u << 20) /* bytes of new room, before it is looked how much there is */
#define REFUSED	    50000000u  /* ns: until then it is not looked again whether there is more */
#define HEADER	    8192u      /* struct xs_spool_place */
_Static_assert(sizeof(struct xs_spool_place) <= HEADER, "the table begins behind it");

static uint32_t count(const struct xs_chunks *chunks)
{
	return chunks->store[XS_CHUNK_MEMORY].count + chunks->store[XS_CHUNK_DISK].count;
}

static uint64_t table_size(const struct xs_chunks *chunks)
{
	uint64_t size = count(chunks) * sizeof(*chunks->table);

	return (size + XS_PAGE - 1) & ~(uint64_t)(XS_PAGE - 1);
}

void xs_chunks_init(struct xs_chunks *chunks, struct xs_run *run, uint64_t memory, uint64_t disk)
{
	struct xs_chunk_store *in_memory = &chunks->store[XS_CHUNK_MEMORY],
			      *on_disk = &chunks->store[XS_CHUNK_DISK];

	*chunks = (struct xs_chunks){ .run = run, .size = SIZE };
	while (chunks->size > SIZE_LEAST && chunks->size > memory / 8)
		chunks->size /= 2;
	while (memory / chunks->size > MEMORY_MOST)
		chunks->size *= 2;
	in_memory->fd = on_disk->fd = -1;
	in_memory->count = on_disk->first = (uint32_t)(memory / chunks->size);
	disk /= chunks->size;
	on_disk->count = disk < DISK_MOST ? (uint32_t)disk : DISK_MOST;
	in_memory->start = HEADER + table_size(chunks);
}

static int map_file(struct xs_chunks *chunks)
{
	const struct xs_run *run = chunks->run;
	struct xs_chunk_store *store = &chunks->store[XS_CHUNK_MEMORY];
	char *map;

	store->fd =
		xs_shm_open(run->directory, NAME, run->recovering ? XS_SHM_OPEN : XS_SHM_CREATE);
	if (store->fd < 0)
		return store->fd;
	if (!xs_run_can_spare(run, store->fd))
		return -EMFILE;
	if (!run->recovering &&
	    ftruncate(store->fd, (off_t)(store->start + store->count * chunks->size)) < 0)
		return -errno;
	map = mmap(NULL, store->start, PROT_READ | PROT_WRITE, MAP_SHARED, store->fd, 0);
	if (map == MAP_FAILED)
		return -ENOMEM;
	chunks->spool = (void *)map;
	chunks->table = (void *)(map + HEADER);
	chunks->next = calloc(count(chunks), sizeof(*chunks->next));
	if (!chunks->next)
		return -ENOMEM;
	return xs_shm_present(map, HEADER) ? 0 : -EBADMSG; /* cut; or the file system is full */
}

/* Its file is made when the first ring is full. */
static bool has_memory(struct xs_chunks *chunks)
{
	struct xs_chunk_store *store = &chunks->store[XS_CHUNK_MEMORY];

	if (store->fd < 0 && !store->failed) {
		store->error = map_file(chunks);
		/* without its table there is nothing on disk either */
		store->failed = chunks->store[XS_CHUNK_DISK].failed = store->error < 0;
	}
	return !store->failed;
}

/* When the memory is used up; a successor, when it needs what is there. */
static bool has_disk(struct xs_chunks *chunks)
{
	struct xs_chunk_store *store = &chunks->store[XS_CHUNK_DISK];
	bool recovering = chunks->run->recovering;

	if (store->fd >= 0 || store->failed)
		return !store->failed;
	store->fd = recovering ? xs_spool_open(chunks->spool)
			       : xs_spool_create(chunks->run, chunks->spool);
	store->error = store->fd < 0				  ? store->fd
		       : xs_run_can_spare(chunks->run, store->fd) ? 0
								  : -EMFILE;
	store->failed = store->error < 0;
	return !store->failed;
}

/* A killed drain process has left records there. 0 or -errno; what the file is to blame for is
 * told. */
static int find_them(struct xs_chunks *chunks, struct xs_chunk_store *store)
{
	if (!store->failed && (store->fd >= 0 || has_disk(chunks)))
		return 0;
	if (!store->error_told && !xs_unread_for_want(store->error))
		xs_tell("[WARNING] %.*s, with records that were still to be written: %s\n",
			(int)sizeof(chunks->spool->path) - 1, chunks->spool->path,
			store->error == -EPERM ? "it is not the file that it was"
					       : strerror(-store->error));
	store->error_told = true;
	return store->error;
}

static struct xs_chunk_store *store_of(struct xs_chunks *chunks, uint32_t number)
{
	return &chunks->store[number < chunks->store[XS_CHUNK_DISK].first ? XS_CHUNK_MEMORY
									  : XS_CHUNK_DISK];
}

static bool has_store(struct xs_chunks *chunks, const struct xs_chunk_store *store)
{
	return has_memory(chunks) && (store == &chunks->store[XS_CHUNK_MEMORY] || has_disk(chunks));
}

void xs_chunks_close(struct xs_chunks *chunks)
{
	struct xs_chunk_store *disk = &chunks->store[XS_CHUNK_DISK];

	/* all that a killed drain process has left is written */
	if (chunks->run->recovering && has_memory(chunks))
		(void)has_disk(chunks);
	if (disk->fd >= 0)
		xs_spool_remove(chunks->spool, disk->fd);
	if (chunks->spool)
		(void)munmap(chunks->spool, chunks->store[XS_CHUNK_MEMORY].start);
	for (int i = 0; i < XS_CHUNK_KINDS; i++)
		if (chunks->store[i].fd >= 0)
			close(chunks->store[i].fd);
	free(chunks->next);
}

static uint64_t place_of(const struct xs_chunks *chunks, const struct xs_chunk_store *store,
			 uint32_t number)
{
	return store->start + (number - store->first) * chunks->size;
}

/*
 * What the options allow is not taken from who needs it. As much memory as the backlog has stays
 * free, for rings and for the application, whose group (container, job) may have a limit, too; and
 * three times as much of the disk: the text needs more than that.
 */
static bool may_grow(struct xs_chunks *chunks, struct xs_chunk_store *store)
{
	bool on_disk = store == &chunks->store[XS_CHUNK_DISK];
	/* what went back to the system, and what has room, is nobody's */
	uint64_t has = (store->taken + 1) * chunks->size, free = 0, memory, most;
	struct statvfs fs;

	if (store->allowed < chunks->size) {
		memory = on_disk ? UINT64_MAX : xs_memory_available();
		if (!fstatvfs(store->fd, &fs))
			free = (uint64_t)fs.f_bavail * fs.f_frsize / (on_disk ? 3 : 1);
		free = free < memory ? free : memory;
		most = on_disk ? UINT64_MAX : xs_memory_limit() / 8;
		if (free < has + chunks->size || has > most)
			return false;
		most -= has - chunks->size;
		most = LOOK < most ? LOOK : most;
		store->allowed = most < chunks->size ? chunks->size : most;
	}
	store->allowed -= chunks->size;
	return true;
}

/* Also of the table there is only so much memory as is needed. */
static bool has_entry(const struct xs_chunks *chunks, uint32_t number)
{
	uint32_t each = XS_PAGE / sizeof(*chunks->table), first = number / each * each;

	return (number != first && number != chunks->store[XS_CHUNK_DISK].first) ||
	       xs_shm_present(&chunks->table[first], XS_PAGE);
}

static bool is_refused(const struct xs_chunk_store *store)
{
	return store->refused && xs_clock_ns(CLOCK_MONOTONIC) - store->refused <= REFUSED;
}

static bool store_has_room(const struct xs_chunk_store *store)
{
	return store->spare || (!store->failed && (store->empty || store->used < store->count) &&
				!is_refused(store));
}

bool xs_chunks_has_room(const struct xs_chunks *chunks)
{
	if (chunks->runs >= RUNS_MOST)
		return false;
	for (int i = 0; i < XS_CHUNK_KINDS; i++)
		if (store_has_room(&chunks->store[i]))
			return true;
	return false;
}

/* Returns number + 1; 0: there is none. */
static uint32_t take_from(struct xs_chunks *chunks, struct xs_chunk_store *store)
{
	uint32_t *list = store->spare ? &store->spare : &store->empty, chunk;

	if (!store_has_room(store) || !has_store(chunks, store))
		return 0;
	if (!store->spare && (!may_grow(chunks, store) ||
			      (!*list && !has_entry(chunks, store->first + store->used)))) {
		store->refused = xs_clock_ns(CLOCK_MONOTONIC);
		return 0;
	}
	store->refused = 0;
	chunk = *list;
	if (!chunk)
		return store->first + ++store->used;
	store->spares -= list == &store->spare;
	*list = chunks->next[chunk - 1];
	return chunk;
}

static void give_back(struct xs_chunks *chunks, uint32_t chunk)
{
	struct xs_chunk_store *store = store_of(chunks, chunk - 1);
	uint32_t *to = &store->spare;

	if (chunks->run->recovering) /* until all is written: it may have to be read again */
		return;
	atomic_store_explicit(&chunks->table[chunk - 1].owner, 0, memory_order_release);
	if (store->spares < SPARES) {
		store->spares++;
	} else {
		(void)fallocate(store->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)place_of(chunks, store, chunk - 1), (off_t)chunks->size);
		to = &store->empty;
	}
	chunks->next[chunk - 1] = *to;
	*to = chunk;
}

/* Maps it where its bytes belong, too. False: there is no memory. */
static bool append(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t chunk,
		   uint64_t position, void *at)
{
	struct xs_chunk_store *store = store_of(chunks, chunk - 1);

	if (mmap(at, chunks->size, PROT_READ, MAP_SHARED | MAP_FIXED, store->fd,
		 (off_t)place_of(chunks, store, chunk - 1)) == MAP_FAILED)
		return false;
	chunks->next[chunk - 1] = 0;
	store->taken++;
	chunks->runs += !list->first || chunk != list->last + 1;
	if (list->first) {
		chunks->next[list->last - 1] = chunk;
	} else {
		list->first = chunk;
		list->from = position;
	}
	list->last = chunk;
	list->to = position;
	return true;
}

bool xs_chunks_add(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t owner,
		   uint64_t position, void *at)
{
	struct xs_chunk_entry *entry;
	uint32_t chunk = 0;

	for (int i = 0; i < XS_CHUNK_KINDS && !chunk && chunks->runs < RUNS_MOST; i++)
		chunk = take_from(chunks, &chunks->store[i]);
	if (!chunk)
		return false;
	entry = &chunks->table[chunk - 1];
	atomic_store_explicit(&entry->owner, 0, memory_order_release);
	entry->position = position;
	atomic_store_explicit(&entry->owner, owner, memory_order_release);
	if (append(chunks, list, chunk, position, at))
		return true;
	store_of(chunks, chunk - 1)->refused = xs_clock_ns(CLOCK_MONOTONIC);
	give_back(chunks, chunk);
	return false;
}

int xs_chunks_find(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t owner,
		   uint64_t position, void *at)
{
	uint32_t all = count(chunks), first = list->first ? list->last : 0;
	int error;

	if (!has_memory(chunks))
		return chunks->store[XS_CHUNK_MEMORY].error;
	/* mostly the one behind the last */
	for (uint32_t i = 0; i < all; i++) {
		uint32_t number = first + i < all ? first + i : first + i - all;
		const struct xs_chunk_entry *entry = &chunks->table[number];

		if (atomic_load(&entry->owner) != owner || entry->position != position)
			continue;
		error = find_them(chunks, store_of(chunks, number));
		if (error < 0)
			return error;
		return append(chunks, list, number + 1, position, at) ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

/* Returns number + 1; 0: no chunk of the list has the byte. */
static uint32_t chunk_at(const struct xs_chunks *chunks, const struct xs_chunk_list *list,
			 uint64_t position)
{
	uint64_t start = position & ~(chunks->size - 1), at = list->from;
	uint32_t chunk = list->first;

	if (!chunk || (int64_t)(start - list->to) > 0)
		return 0;
	if (start == list->to)
		return list->last;
	for (; chunk && at != start; at += chunks->size)
		chunk = chunks->next[chunk - 1];
	return chunk;
}

bool xs_chunks_has(const struct xs_chunks *chunks, const struct xs_chunk_list *list,
		   uint64_t position)
{
	return chunk_at(chunks, list, position) != 0;
}

/* It is tried again: room may come. */
static void refuse(struct xs_chunks *chunks, struct xs_chunk_store *store, int error)
{
	store->refused = xs_clock_ns(CLOCK_MONOTONIC);
	if (!store->error_told)
		xs_tell("[WARNING] cannot keep records in %s: %s; threads wait until others are "
			"written\n",
			chunks->spool->path, strerror(error));
	store->error_told = true;
}

ssize_t xs_chunks_write(struct xs_chunks *chunks, const struct xs_chunk_list *list,
			uint64_t position, const void *data, uint64_t length)
{
	uint32_t number = chunk_at(chunks, list, position) - 1;
	struct xs_chunk_store *store = store_of(chunks, number);
	bool on_disk = store == &chunks->store[XS_CHUNK_DISK];
	ssize_t n;

	if (on_disk && is_refused(store))
		return 0;
	n = pwrite(store->fd, data, length,
		   (off_t)(place_of(chunks, store, number) + (position & (chunks->size - 1))));
	/* EFAULT: the ring's file was cut */
	if (on_disk && n < 0 && errno != EFAULT)
		refuse(chunks, store, errno);
	return n;
}

void xs_chunks_drop(struct xs_chunks *chunks, struct xs_chunk_list *list)
{
	uint32_t chunk = list->first;

	list->first = chunks->next[chunk - 1];
	list->from += chunks->size;
	chunks->runs -= list->first != chunk + 1;
	store_of(chunks, chunk - 1)->taken--;
	give_back(chunks, chunk);
}

void xs_chunks_drop_last(struct xs_chunks *chunks, struct xs_chunk_list *list)
{
	uint32_t chunk = list->last, before = list->first;

	if (list->first == chunk) {
		xs_chunks_drop(chunks, list);
		return;
	}
	while (chunks->next[before - 1] != chunk)
		before = chunks->next[before - 1];
	chunks->next[before - 1] = 0;
	list->last = before;
	list->to -= chunks->size;
	chunks->runs -= before + 1 != chunk;
	store_of(chunks, chunk - 1)->taken--;
	give_back(chunks, chunk);
}
