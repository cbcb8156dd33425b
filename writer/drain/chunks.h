/*
 * The memory of the backlog: chunks of one file, in lists. See chunks.c.
 */
#ifndef XS_CHUNKS_H
#define XS_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "run.h"
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

struct xs_chunks {
	struct xs_run *run;
	int fd; /* -1: no file yet */
	bool failed;
	uint64_t size; /* of a chunk, a power of two */
	uint32_t count;
	struct xs_chunk_entry *table;
	uint32_t *next;	  /* number + 1 of the next in its list */
	uint32_t spare;	  /* list of those that have memory, the one used last first */
	uint32_t spares;  /* how many */
	uint32_t empty;	  /* list of those that had */
	uint32_t used;	  /* ever: from there on nobody has used one */
	uint32_t taken;	  /* in lists of tracks */
	uint64_t allowed; /* bytes, before it is looked again how much memory there is */
	uint64_t refused; /* CLOCK_MONOTONIC: when there was too little; 0: there was enough */
};

/* For `limit` bytes in all. A successor (run->recovering) opens what there is. */
void xs_chunks_init(struct xs_chunks *chunks, struct xs_run *run, uint64_t limit);
void xs_chunks_close(struct xs_chunks *chunks);

/* Would xs_chunks_add() find one? Cheap: it is asked for each full ring, again and again. */
bool xs_chunks_has_room(const struct xs_chunks *chunks);
/* Appends the chunk at `position` of the owner's stream. False: there is none, or no memory. */
bool xs_chunks_add(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t owner,
		   uint64_t position);
/* Appends the one that a killed drain process has filled. */
bool xs_chunks_find(struct xs_chunks *chunks, struct xs_chunk_list *list, uint32_t owner,
		    uint64_t position);
/* Where the byte lies in the file; 0: no chunk of the list has it. */
uint64_t xs_chunks_place(const struct xs_chunks *chunks, const struct xs_chunk_list *list,
			 uint64_t position);
/* Takes the first one out of the list, and gives its memory back. */
void xs_chunks_drop(struct xs_chunks *chunks, struct xs_chunk_list *list);

#endif
