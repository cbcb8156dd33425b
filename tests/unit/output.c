/*
 * The trace's file: what is put is what is in it, with a full disk up to a whole line and with its
 * tail, and compressed in frames that can be read one by one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef XS_HAVE_ZSTD
#include <zstd.h>
#endif

#include "output.h"
#include "tap.h"

#define TAIL "the end\n"

static struct xs_output out;
static int fd;

static int file(void)
{
	return memfd_create("output", MFD_CLOEXEC);
}

/* What the test's descriptor (a duplicate: the output closes its own) holds. */
static char *content(size_t *ret_length)
{
	struct stat st;
	char *text;

	if (fstat(fd, &st) < 0)
		abort();
	text = malloc((size_t)st.st_size + 1);
	if (!text || pread(fd, text, (size_t)st.st_size, 0) != st.st_size)
		abort();
	text[st.st_size] = '\0';
	*ret_length = (size_t)st.st_size;
	return text;
}

static void start(enum xs_compress compress)
{
	fd = file();
	CHECK(!xs_output_init(&out, dup(fd), 0, compress), "init");
}

/* Lines "line 0", "line 1", …, flushed when full. Returns the first error. */
static int lines(unsigned from, unsigned to)
{
	int error = 0, result;

	for (unsigned i = from; i < to; i++) {
		char *o = xs_output_put(&out);

		xs_output_put_end(&out, o + sprintf(o, "line %u\n", i));
		if (xs_output_full(&out)) {
			result = xs_output_flush(&out);
			if (result && !error)
				error = result;
			CHECK(out.length == 0, "flushed");
		}
	}
	return error;
}

/* The text is lines from 0 on, none missing and none cut, then the tail. Returns how many. */
static unsigned check_lines(const char *text, size_t length)
{
	char wanted[32];
	const char *at = text, *end = text + length;
	unsigned n = 0;

	for (;; n++) {
		size_t size = (size_t)sprintf(wanted, "line %u\n", n);

		if ((size_t)(end - at) < size || memcmp(at, wanted, size))
			break;
		at += size;
	}
	CHECK((size_t)(end - at) == sizeof(TAIL) - 1 && !memcmp(at, TAIL, sizeof(TAIL) - 1),
	      "behind line %u: %.20s (%zu bytes)", n, at, (size_t)(end - at));
	return n;
}

static void plain(void)
{
	for (unsigned count = 0; count < 200000; count = count * 7 + 1) {
		size_t length;
		char *text;

		start(XS_COMPRESS_NONE);
		CHECK(!lines(0, count / 2), "write");
		CHECK(!xs_output_flush(&out) && !xs_output_flush(&out), "flush, twice");
		CHECK(!lines(count / 2, count), "write");
		CHECK(out.offset + out.length == out.put + out.length, "%zu and %zu",
		      (size_t)out.offset, (size_t)out.put);
		xs_output_close(&out, TAIL, sizeof(TAIL) - 1);
		CHECK(out.fd == -1 && !out.data && !out.cut, "closed");
		text = content(&length);
		CHECK(check_lines(text, length) == count, "%u lines", count);
		free(text);
		close(fd);
	}
}

/* A log without a line. */
static void nothing(void)
{
	start(XS_COMPRESS_NONE);
	xs_output_close(&out, "", 0);
	CHECK(!out.cut, "it never had more");
	close(fd);
}

/* As for --recover: goes on behind what is there. */
static void appends(void)
{
	size_t length;
	char *text;

	fd = file();
	CHECK(write(fd, "line 0\nline 1\n", 14) == 14, "write");
	CHECK(!xs_output_init(&out, dup(fd), 14, XS_COMPRESS_NONE), "init");
	(void)lines(2, 10);
	xs_output_close(&out, TAIL, sizeof(TAIL) - 1);
	text = content(&length);
	CHECK(check_lines(text, length) == 10, "%s", text);
	free(text);
	close(fd);
}

/* One record fills the slack behind the room to the last byte. */
static void slack(void)
{
	size_t length;
	char *text, *o;

	for (int compress = 0; compress < 2; compress++) {
		start(compress ? XS_COMPRESS_ZSTD : XS_COMPRESS_NONE);
		o = xs_output_put(&out);
		memset(o, 'x', out.room - 1);
		xs_output_put_end(&out, o + out.room - 1);
		CHECK(!xs_output_full(&out), "not yet");
		o = xs_output_put(&out);
		memset(o, 'y', XS_OUTPUT_SLACK);
		xs_output_put_end(&out, o + XS_OUTPUT_SLACK);
		CHECK(xs_output_full(&out) && !xs_output_flush(&out), "flush");
		xs_output_close(&out, "", 0);
		text = content(&length);
		CHECK(compress || length == (128 << 10) - 1 + XS_OUTPUT_SLACK, "%zu", length);
		free(text);
		close(fd);
	}
}

/* ---- no room ---- */

/* The disk has `room` bytes; `later` more when the file is closed. */
static void disk_of(size_t room, size_t later, enum xs_compress compress)
{
	struct rlimit limit = { room, RLIM_INFINITY };
	size_t length;
	int error;
	char *text;

	start(compress);
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	error = lines(0, 200000); /* 2.3 MB */
	CHECK(error == -EFBIG || compress, "%d", error);
	CHECK(!lines(200000, 300000), "told once");
	limit.rlim_cur = room + later;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	xs_output_close(&out, TAIL, sizeof(TAIL) - 1);
	CHECK(!out.cut, "by us, not by somebody else");
	limit.rlim_cur = RLIM_INFINITY;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	text = content(&length);
	CHECK(length <= room + later, "%zu bytes", length);
	if (!compress)
		CHECK(check_lines(text, length) > 0,
		      "a disk of %zu bytes: not even the first line is left", room);
	free(text);
	close(fd);
}

static void full_disk(void)
{
	static const size_t rooms[] = { 262144, 262145, 300000, 524288, 524290, 1000000, 2000000 };

	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		disk_of(rooms[i] + 100, 0, XS_COMPRESS_NONE);
		disk_of(rooms[i] + 100, 4096, XS_COMPRESS_NONE);
	}
}

/* Less than what is written at once. */
static void tiny_disk(void)
{
	disk_of(100000, 0, XS_COMPRESS_NONE);
	disk_of(100000, 4096, XS_COMPRESS_NONE);
}

static void dev_full(void)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (!CHECK(full >= 0, "/dev/full"))
		return;
	CHECK(!xs_output_init(&out, full, 0, XS_COMPRESS_NONE), "init");
	CHECK(lines(0, 100000) == -ENOSPC, "the disk is full");
	CHECK(out.error == -ENOSPC && !xs_output_flush(&out), "told once");
	xs_output_close(&out, TAIL, sizeof(TAIL) - 1);
}

/* ---- compressed ---- */

#ifdef XS_HAVE_ZSTD
static char *decompress(const char *data, size_t size, size_t *ret_length, unsigned *ret_frames)
{
	size_t room = 16 << 20, length = 0;
	char *text = malloc(room);

	*ret_frames = 0;
	while (text && size) {
		size_t frame = ZSTD_findFrameCompressedSize(data, size), n;

		if (!CHECK(!ZSTD_isError(frame), "a frame's header"))
			break;
		n = ZSTD_decompress(text + length, room - length, data, frame);
		if (!CHECK(!ZSTD_isError(n), "frame %u: %s", *ret_frames, ZSTD_getErrorName(n)))
			break;
		CHECK(n && text[length + n - 1] == '\n', "frame %u ends within a line",
		      *ret_frames);
		length += n;
		data += frame;
		size -= frame;
		++*ret_frames;
	}
	*ret_length = length;
	return text;
}

static void frames(void)
{
	static const unsigned counts[] = { 0, 1, 1000, 200000, 500000 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		size_t size, length;
		char *data, *text;
		unsigned n;

		start(XS_COMPRESS_ZSTD);
		CHECK(!lines(0, counts[i]), "write");
		xs_output_close(&out, TAIL, sizeof(TAIL) - 1);
		data = content(&size);
		text = decompress(data, size, &length, &n);
		CHECK(check_lines(text, length) == counts[i], "%u lines", counts[i]);
		CHECK(n >= 1 && n <= 3 + length / (1 << 20), "%u frames for %zu bytes", n, length);
		CHECK(counts[i] < 1000 || size < length / 3, "%zu bytes become %zu", length, size);
		free(data);
		free(text);
		close(fd);
	}
}

static void full_disk_compressed(void)
{
	size_t all, size, length;
	char *data, *text;
	unsigned n;

	start(XS_COMPRESS_ZSTD);
	CHECK(!lines(0, 500000), "write");
	xs_output_close(&out, TAIL, sizeof(TAIL) - 1);
	free(content(&all));
	close(fd);
	for (size_t eighths = 3; eighths < 8; eighths++) {
		struct rlimit limit = { all * eighths / 8, RLIM_INFINITY };

		start(XS_COMPRESS_ZSTD);
		(void)setrlimit(RLIMIT_FSIZE, &limit);
		CHECK(lines(0, 500000) == -EFBIG, "%zu of %zu bytes are too few",
		      (size_t)limit.rlim_cur, all);
		xs_output_close(&out, TAIL, sizeof(TAIL) - 1);
		CHECK(!out.cut, "by us, not by somebody else");
		limit.rlim_cur = RLIM_INFINITY;
		(void)setrlimit(RLIMIT_FSIZE, &limit);
		data = content(&size);
		text = decompress(data, size, &length, &n);
		CHECK(check_lines(text, length) > 1000, "%zu bytes", length);
		free(data);
		free(text);
		close(fd);
	}
}

/* A head, and frames of `each` lines as they are flushed, until the disk of this size is full. */
static unsigned frames_on(size_t room, unsigned each, size_t *ret_ends)
{
	struct rlimit limit = { room, RLIM_INFINITY };
	size_t size, length;
	char *data, *text;
	unsigned n, left;

	start(XS_COMPRESS_ZSTD);
	(void)lines(0, 1);
	CHECK(!xs_output_head(&out), "head");
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	for (n = 0; n < 100 && !out.error; n++) {
		(void)lines(1 + n * each, 1 + (n + 1) * each);
		(void)xs_output_flush(&out);
		if (ret_ends)
			ret_ends[n] = (size_t)out.offset;
	}
	xs_output_close(&out, TAIL, sizeof(TAIL) - 1);
	CHECK(!out.cut, "by us, not by somebody else");
	limit.rlim_cur = RLIM_INFINITY;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	data = content(&size);
	CHECK(size <= room, "%zu bytes", size);
	text = decompress(data, size, &length, &n);
	left = check_lines(text, length);
	free(data);
	free(text);
	close(fd);
	return left;
}

/* A frame ends where the disk does, or some bytes before: others must go for the tail. */
static void full_disk_behind_frames(void)
{
	static const unsigned sizes[] = { 10, 1000, 5000 };
	size_t ends[100];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		(void)frames_on(RLIM_INFINITY, sizes[i], ends);
		for (size_t at = 0; at < 60; at += 7)
			for (size_t more = 0; more < 40; more += 3) {
				unsigned n = frames_on(ends[at] + more, sizes[i], NULL);

				CHECK(ends[at] < 16384 || n > 1,
				      "frames of %u lines, %zu of them and %zu "
				      "bytes: %u are left",
				      sizes[i], at, more, n);
			}
	}
}
#endif

int main(int argc, char **argv)
{
	(void)argc;
	(void)signal(SIGXFSZ, SIG_IGN);
	tap_main(argv);
	tap_run("nothing", nothing);
	tap_run("plain", plain);
	tap_run("appends", appends);
	tap_run("slack", slack);
	tap_run("a full disk", full_disk);
	tap_run("a disk smaller than the first piece", tiny_disk);
	tap_run("/dev/full", dev_full);
#ifdef XS_HAVE_ZSTD
	tap_run("compressed: frames", frames);
	tap_run("compressed: a full disk", full_disk_compressed);
	tap_run("compressed: a full disk behind a frame", full_disk_behind_frames);
#else
	tap_skip("compressed", "built without zstd");
#endif
	return tap_done();
}
