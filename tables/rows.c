#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "map.h"

#define DIGIT  11u
#define DIGITS (1u << DIGIT)
#define LEAST  1024u /* rows of a part that are read at once */
#define FIRST  4096u /* rows that there is room for at first */

/* What a row is sorted by. */
struct xt_key {
	uint64_t time; /* less the earliest */
	uint32_t track, index;
};

int xt_nameless(int directory)
{
	char name[64];
	int fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	for (unsigned i = 0; fd < 0 && i < 100; i++) {
		(void)snprintf(name, sizeof(name), ".part.%ld.%u", (long)getpid(), i);
		fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			(void)unlinkat(directory, name, 0);
		else if (errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : fd;
}

void xt_rows_init(struct xt_rows *rows, int directory, size_t bytes)
{
	memset(rows, 0, sizeof(*rows));
	rows->directory = directory;
	rows->fd = -1;
	rows->room = bytes / (2 * sizeof(struct xt_row) + 2 * sizeof(struct xt_key));
	if (rows->room < FIRST)
		rows->room = FIRST;
	if (rows->room > UINT32_MAX)
		rows->room = UINT32_MAX;
}

/* The thread has ended; what went wrong in it is known. */
static void end_spilling(struct xt_rows *rows)
{
	if (rows->is_spilling)
		pthread_join(rows->thread, NULL);
	rows->is_spilling = false;
	rows->error = rows->error ? rows->error : rows->spill_error;
}

void xt_rows_free(struct xt_rows *rows)
{
	end_spilling(rows);
	free(rows->full);
	free(rows->rows);
	free(rows->keys);
	free(rows->others);
	for (uint32_t i = 0; i < rows->part_count; i++)
		free(rows->parts[i].rows);
	free(rows->parts);
	free(rows->heap);
	if (rows->fd >= 0)
		close(rows->fd);
	memset(rows, 0, sizeof(*rows));
	rows->fd = -1;
}

/* ---- order ---- */

/* By all but the time and track, which are the same. */
static int in_moment(const struct xt_row *a, const struct xt_row *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind == XT_SLICE && a->dur != b->dur)
		return a->dur > b->dur ? -1 : 1; /* what holds the other comes first */
	if ((a->flags ^ b->flags) & XT_OUTER)
		return a->flags & XT_OUTER ? -1 : 1;
	return 0;
}

static int in_order(const struct xt_row *a, const struct xt_row *b)
{
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	return in_moment(a, b);
}

static int by_moment(const void *left, const void *right, void *user)
{
	const struct xt_key *a = left, *b = right;
	const struct xt_row *rows = user;
	int order = in_moment(&rows[a->index], &rows[b->index]);

	return order ? order : a->index < b->index ? -1 : 1;
}

/* One digit of the keys, stably; nothing is done where it is the same in all. */
static void sort_digit(struct xt_rows *rows, size_t count, unsigned shift, bool is_track)
{
	size_t counts[DIGITS] = { 0 }, place = 0;
	struct xt_key *from = rows->keys, *to = rows->others;

#define DIGIT_OF(key) (((is_track ? (key).track : (key).time) >> shift) & (DIGITS - 1))
	for (size_t i = 0; i < count; i++)
		counts[DIGIT_OF(from[i])]++;
	if (counts[DIGIT_OF(from[0])] == count)
		return;
	for (unsigned i = 0; i < DIGITS; i++) {
		size_t n = counts[i];

		counts[i] = place;
		place += n;
	}
	for (size_t i = 0; i < count; i++)
		to[counts[DIGIT_OF(from[i])]++] = from[i];
#undef DIGIT_OF
	rows->keys = to;
	rows->others = from;
}

static void sort_moments(struct xt_rows *rows, struct xt_row *all, size_t count)
{
	struct xt_key *keys = rows->keys;

	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && keys[end].time == keys[i].time &&
				  keys[end].track == keys[i].track;)
			end++;
		if (end - i > 1)
			qsort_r(keys + i, end - i, sizeof(*keys), by_moment, all);
	}
}

static bool has_keys(struct xt_rows *rows, size_t count)
{
	if (rows->key_room >= count)
		return true;
	free(rows->keys);
	free(rows->others);
	rows->keys = malloc(count * sizeof(*rows->keys));
	rows->others = malloc(count * sizeof(*rows->others));
	rows->key_room = rows->keys && rows->others ? count : 0;
	return rows->key_room;
}

/* These rows: keys has their order. 0 or -ENOMEM. */
static int sort(struct xt_rows *rows, struct xt_row *all, size_t count)
{
	int64_t earliest = INT64_MAX, latest = INT64_MIN;
	uint32_t last_track = 0;

	if (!count)
		return 0;
	if (!has_keys(rows, count))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct xt_row *row = &all[i];

		earliest = row->ts < earliest ? row->ts : earliest;
		latest = row->ts > latest ? row->ts : latest;
		last_track = row->track > last_track ? row->track : last_track;
	}
	for (size_t i = 0; i < count; i++)
		rows->keys[i] = (struct xt_key){ (uint64_t)all[i].ts - (uint64_t)earliest,
						 all[i].track, (uint32_t)i };
	for (unsigned shift = 0; shift < 64 && ((uint64_t)latest - (uint64_t)earliest) >> shift;
	     shift += DIGIT)
		sort_digit(rows, count, shift, false);
	for (unsigned shift = 0; shift < 32 && last_track >> shift; shift += DIGIT)
		sort_digit(rows, count, shift, true);
	sort_moments(rows, all, count);
	return 0;
}

/* ---- parts ---- */

static int write_all(int fd, const void *data, size_t length)
{
	const char *p = data;

	while (length) {
		ssize_t n = write(fd, p, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		p += n;
		length -= (size_t)n;
	}
	return 0;
}

/* The rows that are full go into the file, in their order. */
static void *spill(void *user)
{
	struct xt_rows *rows = user;
	struct xt_row few[256];
	struct xt_part *part;
	size_t filled = 0;

	if (rows->fd < 0)
		rows->fd = xt_nameless(rows->directory);
	if (rows->fd < 0)
		rows->spill_error = rows->fd;
	else if (!xf_room_for(&rows->parts, &rows->part_room, rows->part_count,
			      sizeof(*rows->parts)))
		rows->spill_error = -ENOMEM;
	else
		rows->spill_error = sort(rows, rows->full, rows->full_count);
	if (rows->spill_error)
		return NULL;
	part = &rows->parts[rows->part_count++];
	part->at = rows->end;
	part->left = rows->full_count;
	for (size_t i = 0; i < rows->full_count && !rows->spill_error; i++) {
		few[filled++] = rows->full[rows->keys[i].index];
		if (filled == 256 || i + 1 == rows->full_count) {
			rows->spill_error = write_all(rows->fd, few, filled * sizeof(*few));
			filled = 0;
		}
	}
	rows->end += (off_t)(rows->full_count * sizeof(struct xt_row));
	return NULL;
}

/* Begins to write what is in memory; there is room again. */
static void hand_over(struct xt_rows *rows)
{
	struct xt_row *empty = rows->full;
	size_t have = rows->full_have;

	end_spilling(rows);
	rows->full_have = rows->have;
	rows->have = have;
	rows->full = rows->rows;
	rows->full_count = rows->count;
	rows->rows = empty;
	rows->count = 0;
	rows->is_spilling = !pthread_create(&rows->thread, NULL, spill, rows);
	if (!rows->is_spilling)
		(void)spill(rows);
}

static void grow(struct xt_rows *rows)
{
	size_t have = 2 * rows->have < rows->room ? 2 * rows->have : rows->room;
	struct xt_row *grown;

	have = have < FIRST ? FIRST : have;
	grown = realloc(rows->rows, have * sizeof(*grown));
	if (!grown) {
		rows->error = -ENOMEM;
		return;
	}
	rows->rows = grown;
	rows->have = have;
}

void xt_rows_add(struct xt_rows *rows, const struct xt_row *row)
{
	if (rows->count == rows->room)
		hand_over(rows);
	if (rows->count == rows->have && !rows->error)
		grow(rows);
	if (!rows->error)
		rows->rows[rows->count++] = *row;
}

/* More of a part, when all that was read of it is used. */
static void refill(struct xt_rows *rows, struct xt_part *part, size_t room)
{
	size_t n = part->left < room ? part->left : room, done = 0;

	part->next = part->count = 0;
	while (done < n * sizeof(struct xt_row)) {
		ssize_t got = pread(rows->fd, (char *)part->rows + done,
				    n * sizeof(struct xt_row) - done, part->at + (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			rows->error = got < 0 ? -errno : -EIO;
			return;
		}
		done += (size_t)got;
	}
	part->count = n;
	part->left -= n;
	part->at += (off_t)done;
}

static size_t room_of_part(const struct xt_rows *rows)
{
	size_t room = rows->room / (rows->part_count ? rows->part_count : 1);

	return room < LEAST ? LEAST : room;
}

static bool before(const struct xt_rows *rows, uint32_t a, uint32_t b)
{
	const struct xt_part *left = &rows->parts[a], *right = &rows->parts[b];
	int order = in_order(&left->rows[left->next], &right->rows[right->next]);

	return order ? order < 0 : a < b;
}

/* Moves the heap's element at `at` down to its place. */
static void sink(struct xt_rows *rows, uint32_t at)
{
	uint32_t *heap = rows->heap, element = heap[at];

	for (;;) {
		uint32_t below = 2 * at + 1;

		if (below >= rows->heap_count)
			break;
		if (below + 1 < rows->heap_count && before(rows, heap[below + 1], heap[below]))
			below++;
		if (before(rows, element, heap[below]))
			break;
		heap[at] = heap[below];
		at = below;
	}
	heap[at] = element;
}

void xt_rows_sort(struct xt_rows *rows)
{
	end_spilling(rows);
	if (!rows->part_count) {
		rows->error = rows->error ? rows->error : sort(rows, rows->rows, rows->count);
		return;
	}
	if (rows->count)
		hand_over(rows);
	end_spilling(rows);
	free(rows->full);
	rows->full = NULL;
	free(rows->rows);
	free(rows->keys);
	free(rows->others);
	rows->rows = NULL;
	rows->keys = rows->others = NULL;
	rows->heap = calloc(rows->part_count, sizeof(*rows->heap));
	if (!rows->heap)
		rows->error = -ENOMEM;
	for (uint32_t i = 0; i < rows->part_count && !rows->error; i++) {
		struct xt_part *part = &rows->parts[i];

		part->rows = malloc(room_of_part(rows) * sizeof(*part->rows));
		if (!part->rows)
			rows->error = -ENOMEM;
		else
			refill(rows, part, room_of_part(rows));
		rows->heap[rows->heap_count++] = i;
	}
	for (uint32_t i = rows->heap_count; i-- && !rows->error;)
		sink(rows, i);
}

const struct xt_row *xt_rows_next(struct xt_rows *rows)
{
	struct xt_part *part;

	if (rows->error)
		return NULL;
	if (!rows->part_count)
		return rows->next < rows->count ? &rows->rows[rows->keys[rows->next++].index]
						: NULL;
	/* the part that gave the last row: it has moved on */
	if (rows->next) {
		part = &rows->parts[rows->heap[0]];
		part->next++;
		if (part->next == part->count && part->left)
			refill(rows, part, room_of_part(rows));
		if (rows->error)
			return NULL;
		if (part->next == part->count)
			rows->heap[0] = rows->heap[--rows->heap_count];
		if (rows->heap_count)
			sink(rows, 0);
	}
	if (!rows->heap_count)
		return NULL;
	rows->next = 1;
	part = &rows->parts[rows->heap[0]];
	return &part->rows[part->next];
}
