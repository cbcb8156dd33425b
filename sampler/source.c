/*
 * What is looked at again and again, and the counters that are told of it.
 */
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

struct xs_source *xs_source_new(struct xs_sources *sources, uint64_t every,
				void (*look)(struct xs_source *, uint64_t, uint64_t))
{
	struct xs_source *source = &sources->of[sources->count];

	if (sources->count == XS_SOURCES_MAX)
		return NULL;
	memset(source, 0, sizeof(*source));
	source->fd[0] = source->fd[1] = -1;
	source->look = look;
	source->every = every;
	source->scale = 1;
	sources->count++;
	return source;
}

struct xs_source *xs_source_add(struct xs_sources *sources, const char *path, uint64_t every,
				void (*look)(struct xs_source *, uint64_t, uint64_t))
{
	int fd = xs_sources_open(sources, path);
	struct xs_source *source;

	if (fd < 0)
		return NULL;
	source = xs_source_new(sources, every, look);
	if (source)
		source->fd[0] = fd;
	else
		close(fd);
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

uint64_t xs_source_tell_rate(struct xs_source *source, int which, uint64_t value, uint64_t time,
			     uint64_t before)
{
	uint64_t seen = source->seen[which], risen = value - seen;

	source->seen[which] = value;
	if (!before || time <= before)
		return 0;
	if (value < seen) {
		if (!source->wraps || seen > source->wraps)
			return 0; /* it began anew: nobody knows what was in between */
		risen = value + (source->wraps - seen);
	}
	xs_source_tell(source, which, (double)risen * source->scale / (double)(time - before));
	return risen;
}

void xs_source_tell_energy(struct xs_source *source, uint64_t energy, uint64_t time,
			   uint64_t before)
{
	source->sum += xs_source_tell_rate(source, 0, energy, time, before);
	xs_source_tell(source, 1, (double)source->sum / source->per_joule);
}
