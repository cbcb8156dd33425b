/*
 * xstrace-system: what the machine does while programs run, as counters of a trace.
 */
#ifndef XS_SAMPLER_H
#define XS_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XS_SOURCES_MAX	256u
#define XS_COUNTER_NAME 96u

/* What is to be looked at again and again. */
struct xs_source {
	/* ns: by CLOCK_MONOTONIC, as in the last look `before`, 0: the first one */
	void (*look)(struct xs_source *source, uint64_t ns, uint64_t before);
	uint64_t every, last; /* ns between two looks, at least; when it was looked at */
	int fd[2];	      /* that are read anew from their beginnings; -1: there is none */
	char name[2][XS_COUNTER_NAME];
	uint64_t seen[2], wraps; /* the last values; they begin again at this number, 0: never */
	double scale;
	double told[2]; /* a counter keeps its value: what has not changed is not told again */
	bool was_told[2];
};

struct xs_sources {
	struct xs_source of[XS_SOURCES_MAX];
	uint32_t count;
	const char *root; /* in place of "/", for tests */
};

/* ---- source.c ---- */

/* One more, or NULL where there are too many or the file, relative to the root, cannot be read. */
struct xs_source *xs_source_add(struct xs_sources *sources, const char *path, uint64_t every,
				void (*look)(struct xs_source *, uint64_t, uint64_t));
/* The text of that file of the source, with '\0'; the length, 0: it cannot be read any more. */
size_t xs_source_read(const struct xs_source *source, int which, char *text, size_t size);
/* Opens a file relative to the root; the descriptor, or -1 with errno. */
int xs_sources_open(const struct xs_sources *sources, const char *path);
/* The value of the source's counter is this one now. */
void xs_source_tell(struct xs_source *source, int which, double value);
/* What a counter has risen by since it was seen, as `which` of the source, by time; tells it. */
void xs_source_tell_rate(struct xs_source *source, int which, uint64_t value, uint64_t ns,
			 uint64_t before);

/* ---- host.c ---- */

/* Processors, memory, network, energy. */
void xs_host_add(struct xs_sources *sources);

#endif
