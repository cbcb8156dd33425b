/*
 * What pairs.c measures: a begin+end pair, made by the tracer's own client library. Each emit_*.c
 * is one of them; the loop is in there, so that no call of ours stands between two events.
 */
#ifndef XSTRACE_BENCH_EMIT_H
#define XSTRACE_BENCH_EMIT_H

void emit_init(void);
void emit_pairs(long count);

#endif
