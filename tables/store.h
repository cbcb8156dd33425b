/*
 * Texts of rows, in a file without a name: written in the order of the trace, read in the order of
 * the rows, which is mostly the same over long stretches.
 */
#ifndef XT_STORE_H
#define XT_STORE_H

#include <stddef.h>
#include <stdint.h>

struct xt_store {
	int fd;
	uint64_t end; /* bytes in all */
	char *out;    /* those that are not in the file yet */
	size_t filled;
	char *window; /* a piece of the file */
	uint64_t window_at;
	size_t window_length, window_room;
	int error;
};

/* 0 or -errno. */
int xt_store_init(struct xt_store *store, int directory);
/* Where the text lies, which is copied. What goes wrong is known from `error`. */
uint64_t xt_store_add(struct xt_store *store, const char *text, size_t length);
/* XF_SLACK zero bytes follow the text, which is valid until the next call. NULL: `error` says why.
 */
const char *xt_store_get(struct xt_store *store, uint64_t at, size_t length);
void xt_store_free(struct xt_store *store);

#endif
