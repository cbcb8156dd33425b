#include "sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "map.h"

#define MEMORY	    (48u << 20) /* of records that are sorted at once */
#define MAX_RECORDS (1u << 20)
#define READ_ROOM   (256u << 10)

/* As it lies in memory and in the file, followed by its data. */
struct head {
	struct xm_key_of_record key;
	uint32_t length, number;
};

struct run {
	off_t at, end; /* of the file, what is not in memory yet */
	char *data;
	size_t from, length, room;
};

struct xm_sort {
	int fd;
	off_t written;
	char *data;
	size_t length, room;
	struct head **heads;
	uint32_t count, number;
	struct run *runs;
	uint32_t run_count, run_room;
	uint32_t *heap;
	uint32_t heap_count;
	bool taken; /* the first of the heap was given out */
};

struct xm_sort *xm_sort_create(int fd)
{
	struct xm_sort *sort = calloc(1, sizeof(*sort));

	if (!sort)
		return NULL;
	sort->fd = fd;
	sort->room = MEMORY;
	sort->data = malloc(sort->room);
	sort->heads = malloc(MAX_RECORDS * sizeof(*sort->heads));
	if (!sort->data || !sort->heads) {
		xm_sort_free(sort);
		return NULL;
	}
	return sort;
}

static int compare(const struct head *a, const struct head *b)
{
	if (a->key.track != b->key.track)
		return a->key.track < b->key.track ? -1 : 1;
	if (a->key.start != b->key.start)
		return a->key.start < b->key.start ? -1 : 1;
	if (a->key.end != b->key.end)
		return a->key.end > b->key.end ? -1 : 1;
	if (a->key.kind != b->key.kind)
		return a->key.kind < b->key.kind ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static int by_key(const void *a, const void *b)
{
	return compare(*(struct head *const *)a, *(struct head *const *)b);
}

static int write_at(struct xm_sort *sort, const char *data, size_t length)
{
	while (length) {
		ssize_t n = pwrite(sort->fd, data, length, sort->written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		length -= (size_t)n;
		sort->written += n;
	}
	return 0;
}

static int write_run(struct xm_sort *sort)
{
	char *buffer = malloc(READ_ROOM);
	size_t used = 0;
	int result = 0;

	if (!buffer)
		return -ENOMEM;
	if (!xf_room_for(&sort->runs, &sort->run_room, sort->run_count, sizeof(*sort->runs))) {
		free(buffer);
		return -ENOMEM;
	}
	qsort(sort->heads, sort->count, sizeof(*sort->heads), by_key);
	memset(&sort->runs[sort->run_count], 0, sizeof(*sort->runs));
	sort->runs[sort->run_count].at = sort->written;
	for (uint32_t i = 0; i < sort->count && !result; i++) {
		size_t size = sizeof(struct head) + sort->heads[i]->length;

		if (used + size > READ_ROOM) {
			result = write_at(sort, buffer, used);
			used = 0;
		}
		if (size > READ_ROOM) {
			result = result ? result : write_at(sort, (char *)sort->heads[i], size);
		} else {
			memcpy(buffer + used, sort->heads[i], size);
			used += size;
		}
	}
	result = result ? result : write_at(sort, buffer, used);
	free(buffer);
	sort->runs[sort->run_count++].end = sort->written;
	sort->count = 0;
	sort->length = 0;
	return result;
}

int xm_sort_add(struct xm_sort *sort, const struct xm_key_of_record *key, const char *data,
		uint32_t length)
{
	size_t size = (sizeof(struct head) + length + 7) & ~(size_t)7;
	struct head *head;
	int result;

	if (sort->count && (sort->length + size > sort->room || sort->count == MAX_RECORDS)) {
		result = write_run(sort);
		if (result < 0)
			return result;
	}
	if (size > sort->room) { /* a giant */
		char *grown = realloc(sort->data, size);

		if (!grown)
			return -ENOMEM;
		sort->data = grown;
		sort->room = size;
	}
	head = (struct head *)(sort->data + sort->length);
	*head = (struct head){ *key, length, sort->number++ };
	memcpy(head + 1, data, length);
	sort->heads[sort->count++] = head;
	sort->length += size;
	return 0;
}

/* Makes the run's next record whole in memory. 1, 0: it has no more, -errno. */
static int fill(struct xm_sort *sort, struct run *run)
{
	size_t wanted = sizeof(struct head);

	for (;;) {
		if (run->length - run->from >= sizeof(struct head)) {
			struct head head;

			memcpy(&head, run->data + run->from, sizeof(head));
			wanted = sizeof(head) + head.length;
			if (run->length - run->from >= wanted)
				return 1;
		} else if (run->at == run->end) {
			return run->length == run->from ? 0 : -EIO;
		}
		if (run->from)
			memmove(run->data, run->data + run->from, run->length - run->from);
		run->length -= run->from;
		run->from = 0;
		if (wanted > run->room || !run->data) {
			size_t room = wanted > run->room ? wanted : run->room;
			char *grown = realloc(run->data, room);

			if (!grown)
				return -ENOMEM;
			run->data = grown;
			run->room = room;
		}
		for (;;) {
			size_t room = run->room - run->length, left = (size_t)(run->end - run->at);
			ssize_t n = pread(sort->fd, run->data + run->length,
					  room < left ? room : left, run->at);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n < 0 ? -errno : -EIO;
			run->length += (size_t)n;
			run->at += n;
			break;
		}
	}
}

static bool before(const struct xm_sort *sort, uint32_t a, uint32_t b)
{
	struct head x, y;

	memcpy(&x, sort->runs[a].data + sort->runs[a].from, sizeof(x));
	memcpy(&y, sort->runs[b].data + sort->runs[b].from, sizeof(y));
	return compare(&x, &y) < 0;
}

static void sink_down(struct xm_sort *sort, uint32_t at)
{
	for (;;) {
		uint32_t child = 2 * at + 1, moved = sort->heap[at];

		if (child >= sort->heap_count)
			return;
		if (child + 1 < sort->heap_count &&
		    before(sort, sort->heap[child + 1], sort->heap[child]))
			child++;
		if (!before(sort, sort->heap[child], moved))
			return;
		sort->heap[at] = sort->heap[child];
		sort->heap[child] = moved;
		at = child;
	}
}

int xm_sort_start(struct xm_sort *sort)
{
	int result = sort->count ? write_run(sort) : 0;
	size_t room;

	if (result < 0)
		return result;
	free(sort->data);
	free(sort->heads);
	sort->data = NULL;
	sort->heads = NULL;
	sort->heap = calloc(sort->run_count + 1, sizeof(*sort->heap));
	if (!sort->heap)
		return -ENOMEM;
	room = MEMORY / (sort->run_count + 1);
	room = room > READ_ROOM ? READ_ROOM : room < 4096 ? 4096 : room;
	for (uint32_t i = 0; i < sort->run_count; i++) {
		sort->runs[i].room = room;
		result = fill(sort, &sort->runs[i]);
		if (result < 0)
			return result;
		if (result)
			sort->heap[sort->heap_count++] = i;
	}
	for (uint32_t i = sort->heap_count / 2; i-- > 0;)
		sink_down(sort, i);
	return 0;
}

int xm_sort_next(struct xm_sort *sort, struct xm_record *ret)
{
	struct head head;
	struct run *run;
	int result;

	if (sort->taken && sort->heap_count) {
		run = &sort->runs[sort->heap[0]];
		memcpy(&head, run->data + run->from, sizeof(head));
		run->from += sizeof(head) + head.length;
		result = fill(sort, run);
		if (result < 0)
			return result;
		if (!result)
			sort->heap[0] = sort->heap[--sort->heap_count];
		sink_down(sort, 0);
	}
	sort->taken = true;
	if (!sort->heap_count)
		return 0;
	run = &sort->runs[sort->heap[0]];
	memcpy(&head, run->data + run->from, sizeof(head));
	*ret = (struct xm_record){ head.key, head.length, run->data + run->from + sizeof(head) };
	return 1;
}

void xm_sort_free(struct xm_sort *sort)
{
	if (!sort)
		return;
	if (sort->fd >= 0)
		close(sort->fd);
	for (uint32_t i = 0; i < sort->run_count; i++)
		free(sort->runs[i].data);
	free(sort->runs);
	free(sort->heap);
	free(sort->data);
	free(sort->heads);
	free(sort);
}
