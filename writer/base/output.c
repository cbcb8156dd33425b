#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef XS_HAVE_ZSTD
#include <zstd.h>
#endif

/* larger writes ask the kernel for larger pieces of memory, which are colder */
#define ROOM (128u << 10)
/* JSON in a frame: large enough to compress well, small enough to lose */
#define ROOM_ZSTD (1u << 20)

int xs_output_init(struct xs_output *out, int fd, uint64_t offset, enum xs_compress compress)
{
	memset(out, 0, sizeof(*out));
	out->fd = fd;
	out->offset = out->previous = offset;
	out->compress = compress;
	out->room = compress ? ROOM_ZSTD : ROOM;
	out->makes_room = true;
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

/* How much of the text is whole lines; a flow's start goes with its end, which is the next line. */
static size_t whole_lines(const char *text, size_t length)
{
	static const char start[] = "{\"ph\":\"s\"";
	size_t line;

	while (length && text[length - 1] != '\n')
		length--;
	for (line = length; line > 1 && text[line - 2] != '\n'; line--)
		;
	line -= line > 0;
	if (length - line >= sizeof(start) && !memcmp(text + line, start, sizeof(start) - 1))
		return line;
	return length;
}

static size_t whole(const struct xs_output *out, const char *data, size_t length)
{
	return out->whole ? out->whole(data, length) : whole_lines(data, length);
}

/* plain: after an error, the whole lines or packets that reached the file are kept. */
static int write_all(struct xs_output *out, const char *data, size_t length, bool plain)
{
	size_t done = 0;
	int error = 0;

	while (done < length && !error) {
		ssize_t n = write(out->fd, data + done, length - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			error = -errno;
	}
	if (error)
		done = plain ? whole(out, data, done) : 0;
	out->previous = out->offset;
	out->offset += done;
	return error;
}

static int write_piece(struct xs_output *out, const char *data, size_t length)
{
	if (!length)
		return 0;
#ifdef XS_HAVE_ZSTD
	if (out->compress) {
		size_t n = ZSTD_compress2(out->zstd, out->frame, out->frame_room, data, length);

		return ZSTD_isError(n) ? -EIO : write_all(out, out->frame, n, false);
	}
#endif
	return write_all(out, data, length, true);
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

int xs_output_write(struct xs_output *out, const char *text, size_t length)
{
	(void)xs_output_flush(out);
	if (out->error)
		return 0;
	out->put += length;
	out->error = write_piece(out, text, length);
	return out->error;
}

/*
 * Where the last whole line or packet ends that ends at or before `offset`; 0: none in reach. Lines
 * are found from anywhere, packets from where one begins: at `from`.
 */
static uint64_t whole_before(const struct xs_output *out, uint64_t from, uint64_t offset)
{
	char *data;
	ssize_t n;
	size_t found;

	if (!out->whole)
		from = offset - (offset < 65536 ? offset : 65536);
	data = from < offset ? malloc((size_t)(offset - from)) : NULL;
	n = data ? pread(out->fd, data, (size_t)(offset - from), (off_t)from) : 0;
	found = n > 0 ? whole(out, data, (size_t)n) : 0;
	free(data);
	return found ? from + found : 0;
}

static bool cut(struct xs_output *out, uint64_t offset)
{
	return !out->borrowed && !ftruncate(out->fd, (off_t)offset) &&
	       lseek(out->fd, (off_t)offset, SEEK_SET) >= 0;
}

int xs_output_close(struct xs_output *out, const char *tail, size_t length)
{
	struct stat file = { .st_ino = 0 };
	int error = 0;

	if (out->fd >= 0) {
		uint64_t offset, previous, before;

		(void)xs_output_flush(out);
		error = out->error;
		offset = out->offset;
		previous = out->previous;
		/*
		 * on a full disk: behind the last whole line or packet; if that does not fit
		 * either, at the price of the piece before it
		 */
		if (error < 0)
			(void)cut(out, offset);
		if (write_piece(out, tail, length) < 0) {
			error = error ? error : -errno;
			/* file systems give room in blocks: one or two more than the tail needs */
			before = !out->compress && !out->borrowed && offset > length + 8192
					 ? whole_before(out, previous, offset - length - 8192)
					 : 0;
			if (before > previous)
				previous = before;
			if (cut(out, previous) && write_piece(out, tail, length) < 0)
				(void)cut(out, previous);
		}
		if (!out->borrowed) {
			(void)fstat(out->fd, &file);
			close(out->fd);
		}
	}
	free(out->data);
#ifdef XS_HAVE_ZSTD
	ZSTD_freeCCtx(out->zstd);
#endif
	free(out->frame);
	memset(out, 0, sizeof(*out));
	out->fd = -1;
	out->device = file.st_dev;
	out->inode = file.st_ino;
	return error;
}
