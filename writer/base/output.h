/*
 * A file that is written as it comes, plain or as independent zstd frames, and that survives a full
 * disk as a valid file.
 */
#ifndef XS_OUTPUT_H
#define XS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

/* the longest piece: a slice with all that it says, a line of a report */
#define XS_OUTPUT_SLACK 196608u

struct xs_output {
	int fd; /* -1: not open */
	/* -errno of the first failed write; from then on nothing is written but the tail */
	int error;
	char *data;
	/* of data; room is when to write, there is XS_OUTPUT_SLACK behind it */
	size_t length, room;
	uint64_t offset; /* bytes in the file, whole lines (or frames) */
	/*
	 * Where writes began, the later 64 KiB or more behind the earlier one; a full disk is cut
	 * back to the first at most.
	 */
	uint64_t reach[2];
	uint64_t put;	   /* bytes given in all, uncompressed */
	uint32_t compress; /* enum xs_compress */
	/* the descriptor is not ours: what is written is never cut back, nor the file closed */
	bool borrowed;
	bool makes_room; /* xs_output_put() does; the merger's front is memory alone */
	/*
	 * How much of what was written, from a write's beginning on, are whole things that may end
	 * the file. NULL: lines.
	 */
	size_t (*whole)(const char *data, size_t length);
	void *zstd, *frame; /* ZSTD_CCtx, output buffer */
	size_t frame_room;
	uint64_t device, inode; /* of the file, once it is closed; 0: there was none of ours */
	bool cut; /* it has lost what was written, and not by us; wholly known once it is closed */
};

/* Takes over fd. 0 or -errno. */
int xs_output_init(struct xs_output *out, int fd, uint64_t offset, enum xs_compress compress);

/* Takes over fd after xs_output_init() had -1: memory comes first where a file is to be made. */
void xs_output_begin(struct xs_output *out, int fd, uint64_t offset);

/*
 * Writes all that was put. 0 or -errno (the first time an error happens, `error` keeps it; then 0,
 * and what is put is thrown away).
 */
int xs_output_flush(struct xs_output *out);

/* The same of a file's head: a full disk never takes it back. */
int xs_output_head(struct xs_output *out);

/* The same as xs_output_flush(), and then text that lies elsewhere. */
int xs_output_write(struct xs_output *out, const char *text, size_t length);

/*
 * Where to put a piece of text: at most XS_OUTPUT_SLACK bytes, then xs_output_put_end(). All text
 * comes this way, and the room for it is made here: what one record has put before may be any
 * number of pieces.
 */
static inline char *xs_output_put(struct xs_output *out)
{
	if (__builtin_expect(out->length >= out->room && out->makes_room, 0))
		(void)xs_output_flush(out);
	return out->data + out->length;
}

static inline void xs_output_put_end(struct xs_output *out, const char *end)
{
	out->length = (size_t)(end - out->data);
}

static inline bool xs_output_full(const struct xs_output *out)
{
	return out->length >= out->room;
}

/*
 * Writes the tail and closes; on a full disk the file is cut back so that the tail fits. 0, or
 * -errno when something was lost.
 */
int xs_output_close(struct xs_output *out, const char *tail, size_t length);

#endif
