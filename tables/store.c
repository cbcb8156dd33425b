#include "store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rows.h"
#include "scan.h"

#define OUT    (256u << 10)
#define WINDOW (256u << 10)

int xt_store_init(struct xt_store *store, int directory)
{
	memset(store, 0, sizeof(*store));
	store->out = malloc(OUT);
	store->fd = xt_nameless(directory);
	if (store->fd >= 0 && store->out)
		return 0;
	return store->fd < 0 ? store->fd : -ENOMEM;
}

static void put(struct xt_store *store, const char *data, size_t length)
{
	while (length && !store->error) {
		ssize_t n = write(store->fd, data, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			store->error = n < 0 ? -errno : -ENOSPC;
			return;
		}
		data += n;
		length -= (size_t)n;
	}
}

uint64_t xt_store_add(struct xt_store *store, const char *text, size_t length)
{
	uint64_t at = store->end;

	store->end += length;
	if (store->filled + length > OUT) {
		put(store, store->out, store->filled);
		store->filled = 0;
	}
	if (length > OUT) {
		put(store, text, length);
		return at;
	}
	memcpy(store->out + store->filled, text, length);
	store->filled += length;
	return at;
}

/* The window from `at` on. */
static bool move(struct xt_store *store, uint64_t at, size_t length)
{
	size_t wanted = length > WINDOW ? length : WINDOW, done = 0;

	if (store->filled) {
		put(store, store->out, store->filled);
		store->filled = 0;
		if (store->error)
			return false;
	}
	if (store->window_room < wanted || store->window_room > 4 * wanted) {
		free(store->window);
		store->window = malloc(wanted + XF_SLACK + 1);
		store->window_room = store->window ? wanted : 0;
		if (!store->window) {
			store->error = -ENOMEM;
			return false;
		}
	}
	while (done < wanted && at + done < store->end) {
		ssize_t n =
			pread(store->fd, store->window + done, wanted - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	store->window_at = at;
	store->window_length = done;
	if (done < length)
		store->error = -EIO;
	return done >= length;
}

const char *xt_store_get(struct xt_store *store, uint64_t at, size_t length)
{
	if (store->error)
		return NULL;
	if (!store->window || at < store->window_at ||
	    at + length > store->window_at + store->window_length) {
		/* what was written before and is wanted next mostly lies near it */
		uint64_t from = at > store->window_at || at < WINDOW / 4 || length > WINDOW / 2
					? at
					: at - WINDOW / 4;

		if (!move(store, from, (size_t)(at - from) + length))
			return NULL;
	}
	return store->window + (at - store->window_at);
}

void xt_store_free(struct xt_store *store)
{
	free(store->out);
	free(store->window);
	if (store->fd >= 0)
		close(store->fd);
	store->fd = -1;
}
