/*
 * Files that are read again and again, and the counters that are told of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xstrace/xstrace.h>

#include "sampler.h"

int xs_sources_open(const struct xs_sources *sources, const char *path)
{
	char full[PATH_MAX];

	(void)snprintf(full, sizeof(full), "%s/%s", sources->root, path);
	return open(full, O_RDONLY | O_CLOEXEC);
}

struct xs_source *xs_source_add(struct xs_sources *sources, const char *path, uint64_t every,
				void (*look)(struct xs_source *, uint64_t, uint64_t))
{
	struct xs_source *source = &sources->of[sources->count];

	errno = 0;
	if (sources->count == XS_SOURCES_MAX)
		return NULL;
	memset(source, 0, sizeof(*source));
	source->fd[0] = xs_sources_open(sources, path);
	source->fd[1] = -1;
	if (source->fd[0] < 0)
		return NULL;
	source->look = look;
	source->every = every;
	source->scale = 1;
	sources->count++;
	return source;
}

size_t xs_source_read(const struct xs_source *source, int which, char *text, size_t size)
{
	ssize_t length = pread(source->fd[which], text, size - 1, 0);

	if (length < 0)
		length = 0;
	text[length] = '\0';
	return (size_t)length;
}

void xs_source_tell(struct xs_source *source, int which, double value)
{
	if (source->was_told[which] && source->told[which] == value)
		return;
	source->was_told[which] = true;
	source->told[which] = value;
	xstrace_counter(source->name[which], value);
}

void xs_source_tell_rate(struct xs_source *source, int which, uint64_t value, uint64_t ns,
			 uint64_t before)
{
	uint64_t seen = source->seen[which], risen = value - seen;

	source->seen[which] = value;
	if (!before || ns <= before)
		return;
	if (value < seen) {
		if (!source->wraps || seen > source->wraps)
			return; /* it began anew: nobody knows what was in between */
		risen = value + (source->wraps - seen);
	}
	xs_source_tell(source, which, (double)risen * source->scale * 1e9 / (double)(ns - before));
}
