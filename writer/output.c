#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef XS_HAVE_ZSTD
#include <zstd.h>
#endif

#define ROOM (256u << 10)
#define ROOM_ZSTD (1u << 20) /* JSON in a frame: large enough to compress well, small enough to lose */

bool xs_output_can(enum xs_compress compress)
{
#ifdef XS_HAVE_ZSTD
	return compress == XS_COMPRESS_NONE || compress == XS_COMPRESS_ZSTD;
#else
	return compress == XS_COMPRESS_NONE;
#endif
}

int xs_output_init(struct xs_output *out, int fd, uint64_t offset, enum xs_compress compress)
{
	memset(out, 0, sizeof(*out));
	out->fd = fd;
	out->offset = out->previous = offset;
	out->compress = compress;
	out->room = compress ? ROOM_ZSTD : ROOM;
	out->data = malloc(out->room + XS_OUTPUT_SLACK);
	if (!out->data)
		return -ENOMEM;
#ifdef XS_HAVE_ZSTD
	if (compress) {
		out->zstd = ZSTD_createCCtx();
		out->frame_room = ZSTD_compressBound(out->room + XS_OUTPUT_SLACK);
		out->frame = malloc(out->frame_room);
		if (!out->zstd || !out->frame)
			return -ENOMEM;
		(void)ZSTD_CCtx_setParameter(out->zstd, ZSTD_c_compressionLevel, 1);
		(void)ZSTD_CCtx_setParameter(out->zstd, ZSTD_c_checksumFlag, 1);
	}
#endif
	return 0;
}

static int write_all(struct xs_output *out, const char *data, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t n = write(out->fd, data + done, length - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	out->previous = out->offset;
	out->offset += length;
	return 0;
}

static int write_piece(struct xs_output *out, const char *data, size_t length)
{
	if (!length)
		return 0;
#ifdef XS_HAVE_ZSTD
	if (out->compress) {
		size_t n = ZSTD_compress2(out->zstd, out->frame, out->frame_room, data, length);

		return ZSTD_isError(n) ? -EIO : write_all(out, out->frame, n);
	}
#endif
	return write_all(out, data, length);
}

int xs_output_flush(struct xs_output *out)
{
	size_t length = out->length;

	out->length = 0;
	if (out->error)
		return 0;
	out->put += length;
	out->error = write_piece(out, out->data, length);
	return out->error;
}

static bool cut(struct xs_output *out, uint64_t offset)
{
	return !ftruncate(out->fd, (off_t)offset) && lseek(out->fd, (off_t)offset, SEEK_SET) >= 0;
}

void xs_output_close(struct xs_output *out, const char *tail, size_t length)
{
	uint64_t offset = out->offset, previous = out->previous;

	if (out->fd >= 0) {
		(void)xs_output_flush(out);
		if (out->error) {
			/* first behind the last whole piece; if the disk is still full, at the price of that piece */
			if (cut(out, offset) && write_piece(out, tail, length) < 0 && cut(out, previous))
				(void)write_piece(out, tail, length);
		} else if (write_piece(out, tail, length) < 0 && cut(out, offset)) {
			(void)write_piece(out, tail, length);
		}
		close(out->fd);
	}
	free(out->data);
#ifdef XS_HAVE_ZSTD
	ZSTD_freeCCtx(out->zstd);
#endif
	free(out->frame);
	memset(out, 0, sizeof(*out));
	out->fd = -1;
}
