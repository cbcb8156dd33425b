#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_NS 1000000000ull /* who waits for less needs no line */
#define NEXT_NS	 200000000ull
#define WIDTH	 60

static struct {
	const char *what;
	uint64_t total, next;
	int calls;
	bool is_shown;
} progress;

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void put(const char *text, size_t length)
{
	(void)!write(STDERR_FILENO, text, length);
}

void xm_progress_begin(const struct xm_merge *merge, const char *what)
{
	xm_progress_clear();
	progress.what = isatty(STDERR_FILENO) ? what : NULL;
	progress.total = 0;
	for (uint32_t i = 0; i < merge->count; i++)
		progress.total += merge->inputs[i].done ? 0 : (uint64_t)merge->inputs[i].file.size;
	if (!progress.next)
		progress.next = now_ns() + FIRST_NS;
}

/* Where the readers are in their files; other threads are moving them. */
static uint64_t bytes_read(const struct xm_merge *merge)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = &merge->inputs[i];

		if (input->usable)
			sum += (uint64_t)(input->done ? input->file.size
						      : *(const volatile off_t *)&input->reader
								 .source.at);
	}
	return sum < progress.total ? sum : progress.total;
}

void xm_progress_tell(const struct xm_merge *merge)
{
	char line[WIDTH + 1];
	uint64_t now, read;
	int n;

	if (!progress.what || ++progress.calls % 16 || !progress.total)
		return;
	now = now_ns();
	if (now < progress.next)
		return;
	progress.next = now + NEXT_NS;
	read = bytes_read(merge);
	n = snprintf(line, sizeof(line), "\r%s: %d %% of %.1f MB", progress.what,
		     (int)(100.0 * (double)read / (double)progress.total),
		     (double)progress.total / 1e6);
	put(line, (size_t)(n < WIDTH ? n : WIDTH));
	progress.is_shown = true;
}

void xm_progress_clear(void)
{
	char line[WIDTH + 2];

	if (!progress.is_shown)
		return;
	memset(line, ' ', sizeof(line));
	line[0] = line[sizeof(line) - 1] = '\r';
	put(line, sizeof(line));
	progress.is_shown = false;
}
