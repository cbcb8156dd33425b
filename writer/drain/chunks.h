/*
 * Where the backlog lies: chunks of two files, in lists. See chunks.c.
 */
#ifndef XS_CHUNKS_H
#define XS_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run.h"
#include "spool.h"
#include "track.h"

/*
 * Whose a chunk is and which bytes it has, in the file. What it says of bytes that nobody waits for
 * any more means nothing.
 */
struct xs_chunk_entry {
	uint64_t position;
	_Atomic uint32_t owner; /* 0: nobody's */
	uint32_t reserved;
};

enum xs_chunk_kind { XS_CHUNK_MEMORY, XS_CHUNK_DISK, XS_CHUNK_KINDS };

/* One of the files. Numbers of chunks are those of both, from 0. */
struct xs_chunk_store {
	int fd; /* -1: no file yet */
	bool failed;
	int error; /* -errno: why; 0: not known */
	bool error_told;
	uint32_t first, count; /* numbers of its chunks */
	uint64_t start;	       /* where the first one lies in the file */
	uint32_t spare;	       /* list of those that have room, the one used last first */
	uint32_t spares;       /* how many */
	uint32_t empty;	       /* list of those that had */
	uint32_t used;	       /* ever: from there on nobody has used one */
	uint32_t taken;	       /* in lists of tracks */
	uint64_t allowed;      /* bytes, before it is looked again how much room there is */
	uint64_t refused;      /* CLOCK_MONOTONIC: when there was too little; 0: there was enough */
};

struct xs_chunks {
	struct xs_run *run;
	struct xs_chunk_store store[XS_CHUNK_KINDS];
	uint64_t size;		      /* of a chunk, a power of two */
	struct xs_spool_place *spool; /* what the file of memory begins with */
	struct xs_chunk_entry *table;
	uint32_t *next; /* number + 1 of the next in its list */
	uint32_t runs;	/* of chunks that lie in a row: mappings */
};

/* For `memory` bytes and so many on disk. A successor (run->recovering) opens what there is. */
void xs_chunks_init(struct xs_chunks *chunks, struct xs_run *run, uint64_t memory, uint64_t disk);
/* The file on disk is removed, too. */
void xs_chunks_close(struct xs_chunks *chunks);

/* Would xs_chunks_add() find one? Cheap: it is asked for each full ring, again and again. */
bool xs_chunks_has_room(const struct xs_chunks *chunks);
/*
 * Appends the chunk at `position` of the owner's stream, and maps it at `at`. False: there is none,
 * or no memory.
 */
bool xs_chunks_add(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t owner,
		   uint64_t position, void *at);
/* Likewise the one that a killed drain process has filled. 0 or -errno; -ENOENT: there is none. */
int xs_chunks_find(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t owner,
		   uint64_t position, void *at);
/* Has the list the byte? */
bool xs_chunks_has(const struct xs_chunks *chunks, const struct xs_chunk_list *list,
		   uint64_t position);
/* Into its chunk, which has room for `length` bytes. As pwrite(); 0: not now. */
ssize_t xs_chunks_write(struct xs_chunks *chunks, const struct xs_chunk_list *list,
			uint64_t position, const void *data, uint64_t length);
/* Takes the first or the last one out of the list, and gives its room back. */
void xs_chunks_drop(struct xs_chunks *chunks, struct xs_chunk_list *list);
void xs_chunks_drop_last(struct xs_chunks *chunks, struct xs_chunk_list *list);

static inline uint64_t xs_chunks_taken(const struct xs_chunks *chunks)
{
	return chunks->size *
	       (chunks->store[XS_CHUNK_MEMORY].taken + chunks->store[XS_CHUNK_DISK].taken);
}

#endif
