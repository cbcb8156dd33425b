/*
 * Some consecutive events of one input, as one thread has looked at them: the text that they become
 * in the output, and notes of what only makes sense in the order of all inputs.
 */
#ifndef XM_BLOCK_H
#define XM_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bytes of room that a block keeps; it has more only where an event is long */
#define XM_BLOCK_ROOM (512u << 10)

struct xm_bytes {
	char *data; /* XF_SLACK bytes lie behind the room */
	size_t length, room;
};

struct xm_note {
	size_t size;  /* with what it says, which follows it */
	size_t place; /* bytes of the block's text that come before it */
	int64_t lost; /* what the input had said of its lost events by then */
	uint64_t says[];
};

struct xm_block {
	struct xm_block *next;
	struct xm_input *input;
	struct xm_bytes text, notes;
	uint32_t weight;  /* in blocks of usual size */
	int error;	  /* -ENOMEM: something found no room */
	int64_t progress; /* of the input, behind it */
	int64_t lost;
	bool ends_turn; /* another input may be next */
	bool is_last;	/* the input has no more */
};

/* Where `more` bytes can be put, behind `length`; NULL: no memory, and the block has the error. */
char *xm_block_room(struct xm_block *block, struct xm_bytes *bytes, size_t more);
/* A note, which says `size` bytes. NULL: no memory. */
struct xm_note *xm_block_note(struct xm_block *block, size_t size);
/* The note at *at, which moves behind it; NULL: no more. */
const struct xm_note *xm_block_next(const struct xm_block *block, size_t *at);
/* Forgets what is in it; what a long event needed is given back. */
void xm_block_clear(struct xm_block *block);
void xm_block_free(struct xm_block *block);

#endif
