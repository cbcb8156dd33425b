#include "pour.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LARGE 32768u /* bytes */

static void *write_pieces(void *user)
{
	struct xm_pour *pour = user;

	pthread_mutex_lock(&pour->lock);
	for (;;) {
		while (!pour->is_busy && !pour->is_over)
			pthread_cond_wait(&pour->changed, &pour->lock);
		if (!pour->is_busy)
			break;
		pthread_mutex_unlock(&pour->lock);
		(void)xs_output_flush(&pour->back); /* an error stays in it */
		pthread_mutex_lock(&pour->lock);
		pour->is_busy = false;
		pthread_cond_signal(&pour->changed);
	}
	pthread_mutex_unlock(&pour->lock);
	return NULL;
}

int xm_pour_open(struct xm_pour *pour, int fd, bool compress, bool thread)
{
	int result =
		xs_output_init(&pour->back, fd, 0, compress ? XS_COMPRESS_ZSTD : XS_COMPRESS_NONE);
	sigset_t all, before;

	if (result < 0)
		return result;
	pour->front.room = pour->back.room;
	pour->front.data = malloc(pour->front.room + XS_OUTPUT_SLACK);
	if (!pour->front.data)
		return -ENOMEM;
	(void)pthread_mutex_init(&pour->lock, NULL);
	(void)pthread_cond_init(&pour->changed, NULL);
	if (!thread)
		return 0;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	/* else all is written at once */
	pour->has_thread = !pthread_create(&pour->thread, NULL, write_pieces, pour);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return 0;
}

static void wait_for_thread(struct xm_pour *pour)
{
	while (pour->is_busy)
		pthread_cond_wait(&pour->changed, &pour->lock);
}

void xm_pour_flush(struct xm_pour *pour)
{
	char *data = pour->front.data;

	if (pour->has_thread) {
		pthread_mutex_lock(&pour->lock);
		wait_for_thread(pour);
	}
	pour->front.data = pour->back.data;
	pour->back.data = data;
	pour->back.length = pour->front.length;
	pour->front.length = 0;
	if (pour->has_thread) {
		pour->is_busy = true;
		pthread_cond_signal(&pour->changed);
		pthread_mutex_unlock(&pour->lock);
	} else {
		(void)xs_output_flush(&pour->back);
	}
}

void xm_pour_text(struct xm_pour *pour, const char *text, size_t length)
{
	if (length >= LARGE && !pour->has_thread && !pour->back.compress) {
		xm_pour_flush(pour);
		(void)xs_output_write(&pour->back, text, length); /* an error stays in it */
		return;
	}
	while (length) {
		size_t n = length < LARGE ? length : LARGE;
		char *o = xs_output_put(&pour->front);

		memcpy(o, text, n);
		xs_output_put_end(&pour->front, o + n);
		xm_pour_full(pour);
		text += n;
		length -= n;
	}
}

int xm_pour_close(struct xm_pour *pour, const char *tail, size_t length)
{
	if (pour->front.data && pour->front.length)
		xm_pour_flush(pour);
	if (pour->has_thread) {
		pthread_mutex_lock(&pour->lock);
		wait_for_thread(pour);
		pour->is_over = true;
		pthread_cond_signal(&pour->changed);
		pthread_mutex_unlock(&pour->lock);
		(void)pthread_join(pour->thread, NULL);
	}
	free(pour->front.data);
	return xs_output_close(&pour->back, tail, length);
}
