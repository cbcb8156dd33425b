/*
 * What tracing has cost a process (overhead.h), as traces and reports tell it.
 */
#ifndef XS_OVERHEAD_TOLD_H
#define XS_OVERHEAD_TOLD_H

#include "overhead.h"

#define XS_OVERHEAD_TEXT_MAX 2048u /* bytes, of either */

/* An object of JSON (docs/TRACE_FORMAT.md); returns the end. */
char *xs_overhead_put_json(char *o, const struct xs_overhead *overhead);
/* A line in brackets, without its end; returns the end. */
char *xs_overhead_put_text(char *o, const struct xs_overhead *overhead);

#endif
