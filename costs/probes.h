/*
 * Between costs.c, which measures, and what it measures.
 */
#ifndef XS_PROBES_H
#define XS_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/* One kind of event. */
struct xs_probe {
	void (*prepare)(void); /* before the first one; NULL: nothing */
	void (*one)(void);     /* records one; NULL: it was not built */
	/* the ticks that lie in the slices of so many, by their records; NULL: they have none */
	uint64_t (*inside)(const unsigned char *data, uint32_t count);
};

extern const struct xs_probe xs_probe_task, xs_probe_span, xs_probe_metadata, xs_probe_mark,
	xs_probe_counter, xs_probe_call, xs_probe_values, xs_probe_mpi;

/*
 * standin.c: the collector of this process, which records into a ring of its own. False: there is
 * no memory. `options`: of the run; they stay where they are.
 */
bool xs_standin_open(const struct xs_options *options, bool use_tsc);
/* The ring is empty again. */
void xs_standin_rewind(void);
/* What was recorded since. */
const unsigned char *xs_standin_data(void);
bool xs_standin_use_tsc(void);

#endif
