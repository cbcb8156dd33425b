/*
 * What tables are made of: rows of one size, sorted by track and time. What memory has no room for
 * is sorted in parts, which lie in a file without a name until they are merged.
 */
#ifndef XT_ROWS_H
#define XT_ROWS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* In the order in which rows of one track and time come. */
enum xt_kind {
	XT_LATE_POINT, /* an end of a flow, at the end of its slice */
	XT_SLICE,
	XT_POINT, /* an end of a flow, inside its slice */
	XT_MARK,
	XT_COUNTER,
};

#define XT_UNFINISHED	 1u
#define XT_TEXT_HAS_NAME 2u  /* the row's text begins with its name; `name` means nothing */
#define XT_BEGINS	 4u  /* of a flow: the first point */
#define XT_GOES_ON	 8u  /* of a flow: a step */
#define XT_OUTER	 32u /* of a slice: what is as long lies in it */
#define XT_NEXT		 16u /* of a flow: of the next slice that begins, not of this one */

struct xt_row {
	int64_t ts;
	int64_t dur;		      /* of a flow: its identity */
	uint64_t text;		      /* where its arguments are in the store of texts */
	uint32_t length, name_length; /* of the arguments; of the name in front of them */
	uint32_t name, track, category;
	uint8_t kind, flags;
};

struct xt_rows {
	size_t room;	    /* rows that may be in memory */
	size_t have, count; /* there is memory for; there are */
	struct xt_row *rows;
	struct xt_key *keys, *others;
	/* those that a thread sorts and writes, while `rows` is filled again */
	struct xt_row *full;
	size_t full_have, full_count, key_room;
	pthread_t thread;
	bool is_spilling;
	int spill_error;
	int directory, fd;
	off_t end;
	struct xt_part {
		off_t at;
		size_t left; /* rows that are still in the file */
		struct xt_row *rows;
		size_t next, count;
	} *parts;
	uint32_t part_count, part_room;
	size_t next; /* in memory, when all of it is there */
	uint32_t *heap;
	uint32_t heap_count;
	int error;
};

/*
 * directory: where files without a name can be made. bytes: of memory, about.
 */
void xt_rows_init(struct xt_rows *rows, int directory, size_t bytes);
/* The row is copied. What goes wrong is known from `error`. */
void xt_rows_add(struct xt_rows *rows, const struct xt_row *row);
/* There are no more: they can be read now. */
void xt_rows_sort(struct xt_rows *rows);
/* The next one, valid until the next call; NULL: there is none, or `error` is set. */
const struct xt_row *xt_rows_next(struct xt_rows *rows);
void xt_rows_free(struct xt_rows *rows);

/* A file without a name in the directory: its descriptor, or -errno. */
int xt_nameless(int directory);

#endif
