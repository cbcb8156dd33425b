/*
 * An output (../../writer/base/output.h) that is compressed and written by a thread of its own,
 * while the next piece is being made: what is put goes into `front`, and xm_pour_full() hands it
 * over. Without a thread large texts are written from where they are.
 */
#ifndef XM_POUR_H
#define XM_POUR_H

#include <pthread.h>

#include "output.h"

struct xm_pour {
	struct xs_output front; /* a buffer alone: it has no file */
	struct xs_output back;	/* the thread's while is_busy, else ours */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool has_thread, is_busy, is_over;
};

/*
 * Takes over fd. Without `thread` the caller's thread writes. 0 or -errno; xm_pour_close() in any
 * case.
 */
int xm_pour_open(struct xm_pour *pour, int fd, bool compress, bool thread);
/* A text of any length. */
void xm_pour_text(struct xm_pour *pour, const char *text, size_t length);
/* Hands over what was put. */
void xm_pour_flush(struct xm_pour *pour);
/* To be called often enough that XS_OUTPUT_SLACK suffices. */
static inline void xm_pour_full(struct xm_pour *pour)
{
	if (xs_output_full(&pour->front))
		xm_pour_flush(pour);
}
/* Writes the tail and closes. 0, or -errno of the first thing that went wrong. */
int xm_pour_close(struct xm_pour *pour, const char *tail, size_t length);

#endif
