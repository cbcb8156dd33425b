/*
 * Where ITT's collector was not built (-Ditt=disabled), no such event is recorded.
 */
#include "probes.h"

const struct xs_probe xs_probe_task, xs_probe_span, xs_probe_metadata, xs_probe_mark,
	xs_probe_counter;
