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
/* what a full disk takes back for the tail, beside the pieces at both ends */
#define REACH 65536u

void xs_output_begin(struct xs_output *out, int fd, uint64_t offset)
{
	out->fd = fd;
	out->offset = out->reach[0] = out->reach[1] = offset;
}

int xs_output_init(struct xs_output *out, int fd, uint64_t offset, enum xs_compress compress)
{
	memset(out, 0, sizeof(*out));
	xs_output_begin(out, fd, offset);
	out->compress = compress;
	out->room = compress ? ROOM_ZSTD : ROOM;
	out->makes_room = true;
	out->data = malloc(out->room + XS_OUTPUT_SLACK);
	if (!out->data)
		return -ENOMEM;
#ifdef XS_HAVE_ZSTD
	if (compress) {
		out->zstd = ZSTD_createCCtx();
		out->frame_room = ZSTD_compressBound(out->room + XS_OUTPUT_SLACK) + 64;
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

/* Has somebody else cut the file by now? What is written then goes to where it would have gone. */
static bool is_shorter(const struct xs_output *out)
{
	struct stat file;

	return !fstat(out->fd, &file) && S_ISREG(file.st_mode) &&
	       (uint64_t)file.st_size < out->offset;
}

/* plain: after an error, the whole lines or packets that reached the file are kept. */
static int write_all(struct xs_output *out, const char *data, size_t length, bool plain)
{
	size_t done = 0;
	int error = 0;

	out->cut |= !out->borrowed && is_shorter(out);
	while (done < length && !error) {
		ssize_t n = write(out->fd, data + done, length - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			error = -errno;
	}
	if (error)
		done = plain ? whole(out, data, done) : 0;
	if (done && out->offset - out->reach[1] >= REACH) {
		out->reach[0] = out->reach[1];
		out->reach[1] = out->offset;
	}
	out->offset += done;
	return error;
}

#ifdef XS_HAVE_ZSTD
#define BLOCK_MAX (128u << 10) /* RFC 8878, 3.1.1.2.4 */

static char *put_number(char *o, uint64_t number, int bytes)
{
	for (int i = 0; i < bytes; i++)
		*o++ = (char)(number >> 8 * i);
	return o;
}

/*
 * The text as a frame of blocks that are not compressed (RFC 8878, 3.1.1): zstd wants memory with
 * its first large frame, and there may be none by then. The frame's bytes; 0: it has no room.
 */
static size_t store_frame(char *frame, size_t room, const char *data, size_t length)
{
	/* a single segment, whose size takes 8 bytes; no checksum */
	char *o = put_number(put_number(put_number(frame, 0xfd2fb528, 4), 0xe0, 1), length, 8);

	if (length + 3 * (length / BLOCK_MAX + 1) + 13 > room)
		return 0;
	for (size_t at = 0, n; at < length; at += n) {
		n = length - at < BLOCK_MAX ? length - at : BLOCK_MAX;
		o = put_number(o, n << 3 | (at + n == length), 3);
		o = (char *)mempcpy(o, data + at, n);
	}
	return (size_t)(o - frame);
}
#endif

static int write_piece(struct xs_output *out, const char *data, size_t length)
{
	if (!length)
		return 0;
#ifdef XS_HAVE_ZSTD
	if (out->compress) {
		size_t n = ZSTD_compress2(out->zstd, out->frame, out->frame_room, data, length);

		if (ZSTD_isError(n))
			n = store_frame(out->frame, out->frame_room, data, length);
		return n ? write_all(out, out->frame, n, false) : -EIO;
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

int xs_output_head(struct xs_output *out)
{
	int error = xs_output_flush(out);

	out->reach[0] = out->reach[1] = out->offset;
	return error;
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
 * The last whole line or packet that ends at or before `end`; packets are found from where one
 * begins.
 */
static uint64_t line_before(const struct xs_output *out, uint64_t end)
{
	uint64_t from = out->whole ? out->reach[0] : end - (end < REACH ? end : REACH);
	char *data = from < end ? malloc((size_t)(end - from)) : NULL;
	ssize_t n = data ? pread(out->fd, data, (size_t)(end - from), (off_t)from) : 0;
	size_t found = n > 0 ? whole(out, data, (size_t)n) : 0;

	free(data);
	return found ? from + found : 0;
}

/* The same of frames; a file's first one stays. */
static uint64_t frame_before(const struct xs_output *out, uint64_t end)
{
	uint64_t at = out->reach[0];

#ifdef XS_HAVE_ZSTD
	for (;;) {
		ssize_t n = pread(out->fd, out->frame, out->frame_room, (off_t)at);
		size_t size = n > 0 ? ZSTD_findFrameCompressedSize(out->frame, (size_t)n) : 0;

		if (!size || ZSTD_isError(size) || (at && at + size > end))
			break;
		at += size;
	}
#else
	(void)end;
#endif
	return at;
}

/* Where to cut so that a tail of this length has room: file systems give it in blocks. */
static uint64_t back_for(const struct xs_output *out, uint64_t offset, size_t length)
{
	uint64_t end = length + 8192 < offset ? offset - length - 8192 : 0;
	uint64_t back = out->compress ? frame_before(out, end) : end ? line_before(out, end) : 0;

	return back > out->reach[0] ? back : out->reach[0];
}

static bool cut(struct xs_output *out, uint64_t offset)
{
	if (out->borrowed || ftruncate(out->fd, (off_t)offset) < 0)
		return false;
	out->offset = offset;
	return lseek(out->fd, (off_t)offset, SEEK_SET) >= 0;
}

/* At the end: it is shorter, or was so once, or has a hole in the place of what was written. */
static bool was_cut(const struct xs_output *out, const struct stat *file)
{
	off_t hole;

	if (out->cut || !S_ISREG(file->st_mode))
		return out->cut;
	hole = lseek(out->fd, 0, SEEK_HOLE); /* -1: the file is empty, or nobody can say */
	return (uint64_t)file->st_size < out->offset || (hole >= 0 && hole < file->st_size);
}

int xs_output_close(struct xs_output *out, const char *tail, size_t length)
{
	struct stat file = { .st_ino = 0 };
	bool shorter = false;
	int error = 0;

	if (out->fd >= 0) {
		uint64_t back;

		(void)xs_output_flush(out);
		error = out->error;
		back = out->offset;
		/*
		 * on a full disk: behind the last whole line, packet or frame; if that does not fit
		 * either, at the price of what came before it
		 */
		if (error < 0)
			(void)cut(out, back);
		if (write_piece(out, tail, length) < 0) {
			error = error ? error : -errno;
			if (!out->borrowed)
				back = back_for(out, back, length);
			if (cut(out, back) && write_piece(out, tail, length) < 0)
				(void)cut(out, back);
		}
		if (!out->borrowed) {
			shorter = !fstat(out->fd, &file) && was_cut(out, &file);
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
	out->cut = shorter;
	return error;
}
