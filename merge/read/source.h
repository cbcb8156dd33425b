/*
 * The bytes of a trace, whatever they are wrapped in: plain, or concatenated zstd frames or gzip
 * members. The first bytes say which.
 */
#ifndef XM_SOURCE_H
#define XM_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include "file.h"

struct xm_source {
	const struct xm_file *file;
	off_t at;	   /* in it */
	bool cut;	   /* compressed data end in the middle of a frame; known at the end */
	const char *error; /* compressed data are damaged; what can be had of them was given */
	enum { XM_PLAIN, XM_ZSTD, XM_GZIP } kind;
	void *state;
	char *in;
	size_t in_at, in_length, in_room;
	bool in_end, in_frame;
};

/*
 * From the beginning; the file must stay open. 0, -errno, or -ENOTSUP: this build cannot read that
 * kind.
 */
int xm_source_open(struct xm_source *source, const struct xm_file *file);
/* Bytes put into data, 0 at the end, -errno; -ENODATA: the file has become shorter. */
ssize_t xm_source_read(struct xm_source *source, char *data, size_t room);
void xm_source_close(struct xm_source *source);

#endif
