#include "source.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef XS_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif
#ifdef XM_HAVE_ZLIB
#include <zlib.h>
#endif

#define PIECE 16384u

static ssize_t read_file(struct xm_source *source, char *data, size_t room)
{
	off_t left = source->file->size - source->at;
	ssize_t n;

	room = (off_t)room < left ? room : (size_t)left;
	do
		n = pread(source->file->fd, data, room, source->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	source->at += n;
	return !n && room ? -ENODATA : n;
}

static int more_input(struct xm_source *source)
{
	ssize_t n = read_file(source, source->in, source->in_room);

	if (n < 0)
		return (int)n;
	source->in_at = 0;
	source->in_length = (size_t)n;
	source->in_end = !n;
	return 0;
}

/*
 * A decoder takes what lies in `in` and fills data; it sets in_frame to whether it is inside a
 * frame, and returns what it gave. A negative result: the data are damaged.
 */
#ifdef XS_HAVE_ZSTD
static ssize_t zstd_step(struct xm_source *source, char *data, size_t room)
{
	ZSTD_inBuffer in = { source->in, source->in_length, source->in_at };
	ZSTD_outBuffer out = { data, room, 0 };
	size_t left = ZSTD_decompressStream(source->state, &out, &in);

	source->in_at = in.pos;
	if (ZSTD_isError(left)) {
		source->error = ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge
					? "it needs a larger window: --zstd-window allows it"
					: ZSTD_getErrorName(left);
		return out.pos ? (ssize_t)out.pos : -EBADMSG;
	}
	source->in_frame = left;
	return (ssize_t)out.pos;
}

static int zstd_open(struct xm_source *source)
{
	source->state = ZSTD_createDCtx();
	if (!source->state)
		return -ENOMEM;
	(void)ZSTD_DCtx_setParameter(source->state, ZSTD_d_windowLogMax,
				     (int)source->file->window_log);
	return 0;
}

static void zstd_close(struct xm_source *source)
{
	ZSTD_freeDCtx(source->state);
}
#else
static ssize_t zstd_step(struct xm_source *source, char *data, size_t room)
{
	(void)source, (void)data, (void)room;
	return -ENOTSUP;
}

static int zstd_open(struct xm_source *source)
{
	(void)source;
	return -ENOTSUP;
}

static void zstd_close(struct xm_source *source)
{
	(void)source;
}
#endif

#ifdef XM_HAVE_ZLIB
static ssize_t gzip_step(struct xm_source *source, char *data, size_t room)
{
	z_stream *z = source->state;
	int result;

	z->next_in = (unsigned char *)source->in + source->in_at;
	z->avail_in = (unsigned)(source->in_length - source->in_at);
	z->next_out = (unsigned char *)data;
	z->avail_out = room > 1u << 30 ? 1u << 30 : (unsigned)room;
	room = z->avail_out;
	if (!source->in_frame && z->avail_in)
		(void)inflateReset(z);
	source->in_frame |= z->avail_in > 0;
	result = inflate(z, Z_NO_FLUSH);
	source->in_at = source->in_length - z->avail_in;
	room -= z->avail_out;
	if (result == Z_STREAM_END)
		source->in_frame = false;
	else if (result != Z_OK && result != Z_BUF_ERROR) {
		source->error = z->msg ? z->msg : "damaged gzip data";
		return room ? (ssize_t)room : -EBADMSG;
	}
	return (ssize_t)room;
}

static int gzip_open(struct xm_source *source)
{
	z_stream *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	if (inflateInit2(z, 15 + 16) != Z_OK) {
		free(z);
		return -ENOMEM;
	}
	source->state = z;
	return 0;
}

static void gzip_close(struct xm_source *source)
{
	if (source->state)
		(void)inflateEnd(source->state);
	free(source->state);
}
#else
static ssize_t gzip_step(struct xm_source *source, char *data, size_t room)
{
	(void)source, (void)data, (void)room;
	return -ENOTSUP;
}

static int gzip_open(struct xm_source *source)
{
	(void)source;
	return -ENOTSUP;
}

static void gzip_close(struct xm_source *source)
{
	(void)source;
}
#endif

static const struct {
	int (*open)(struct xm_source *source);
	ssize_t (*step)(struct xm_source *source, char *data, size_t room);
	void (*close)(struct xm_source *source);
} kinds[] = { [XM_ZSTD] = { zstd_open, zstd_step, zstd_close },
	      [XM_GZIP] = { gzip_open, gzip_step, gzip_close } };

static int kind_of(const unsigned char *head, size_t n)
{
	uint32_t magic;

	if (n >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return XM_GZIP;
	if (n < 4)
		return XM_PLAIN;
	magic = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 |
		(uint32_t)head[3] << 24;
	return magic == 0xfd2fb528 || (magic & 0xfffffff0) == 0x184d2a50 ? XM_ZSTD : XM_PLAIN;
}

int xm_source_open(struct xm_source *source, const struct xm_file *file)
{
	int result;

	memset(source, 0, sizeof(*source));
	source->file = file;
	source->in_room = PIECE;
	source->in = malloc(source->in_room);
	result = source->in ? more_input(source) : -ENOMEM;
	if (!result) {
		source->kind = kind_of((unsigned char *)source->in, source->in_length);
		if (source->kind)
			result = kinds[source->kind].open(source);
	}
	if (result < 0)
		xm_source_close(source);
	return result;
}

ssize_t xm_source_read(struct xm_source *source, char *data, size_t room)
{
	if (source->error)
		return 0;
	if (source->kind == XM_PLAIN) {
		size_t n = source->in_length - source->in_at;

		if (!n)
			return read_file(source, data, room);
		n = n < room ? n : room;
		memcpy(data, source->in + source->in_at, n);
		source->in_at += n;
		return (ssize_t)n;
	}
	for (;;) {
		ssize_t n;
		int result;

		if (source->in_at == source->in_length && !source->in_end) {
			result = more_input(source);
			if (result < 0)
				return result;
		}
		if (source->in_at == source->in_length && !source->in_frame)
			return 0;
		n = kinds[source->kind].step(source, data, room);
		if (n > 0)
			return n;
		if (n < 0)
			return 0; /* damaged: error says so */
		if (source->in_end && source->in_at == source->in_length) {
			source->cut = source->in_frame;
			return 0;
		}
	}
}

void xm_source_close(struct xm_source *source)
{
	if (source->kind && source->state)
		kinds[source->kind].close(source);
	source->state = NULL;
	free(source->in);
	source->in = NULL;
}
