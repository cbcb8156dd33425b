/*
 * Reads a trace in Perfetto's protobuf, as xstrace and xstrace-merge write it, as if it were JSON.
 * An end belongs to the newest begin of its track that has none.
 */
#ifndef XT_PACKETS_H
#define XT_PACKETS_H

#include "progress.h"
#include "proto.h"
#include "source.h"
#include "trace.h"
#include "wire.h"

/* Do these bytes begin a file of packets? JSON may begin with the same byte, a line's end. */
bool xt_is_packets(const char *head, size_t n);
/*
 * All events of the source, which is at its beginning. What is wrong is noted in the trace's
 * reader. 0 or -errno.
 */
int xt_packets_take(struct xt_trace *trace, struct xm_source *source, struct xt_progress *progress);

#endif
