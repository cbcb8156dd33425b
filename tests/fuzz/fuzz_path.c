/*
 * Any question to xstrace-replay, the core of xstrace-path: it answers, or says that the question
 * is none. The first byte says whether the numbers are kept in range, so that the graph is made.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph.h"

#define MAGIC 0x3161506572727378ull
#define ROOM  (1u << 16)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int replay_main(void); /* replay/main.c */

struct question {
	const unsigned char *data;
	size_t left, length;
	bool is_raw;
	unsigned char text[ROOM];
};

static unsigned next(struct question *q)
{
	return q->left ? (q->left--, *q->data++) : 0;
}

static void put(struct question *q, uint64_t number, size_t size)
{
	if (q->length + size <= ROOM) {
		memcpy(q->text + q->length, &number, size);
		q->length += size;
	}
}

/* An array of numbers below `limit`, or of any. */
static void put_array(struct question *q, uint64_t count, size_t size, uint64_t limit)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t number = next(q);

		if (q->is_raw && number > 250)
			number = UINT64_MAX >> (number & 3);
		put(q, q->is_raw || !limit ? number : number % limit, size);
	}
}

/* Begins and ends: small times, of which some are the same. */
static void put_times(struct question *q, uint64_t count)
{
	uint64_t begin[256];

	for (uint64_t i = 0; i < count; i++) {
		begin[i] = next(q) * (next(q) & 1 ? 1 : 1000);
		put(q, q->is_raw && begin[i] == 255 ? UINT64_MAX / 8 : begin[i], 8);
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t length = next(q);

		put(q, q->is_raw && length == 255 ? 1 : begin[i] + length, 8);
	}
}

static void put_factors(struct question *q, uint64_t count)
{
	static const double factors[] = { 0, 0.5, 1, 2, 1000 };

	for (uint64_t i = 0; i < count; i++) {
		unsigned which = next(q);
		double factor = q->is_raw && which > 250 ? 1.0 / 0.0 : factors[which % 5];
		uint64_t bits;

		memcpy(&bits, &factor, sizeof(bits));
		put(q, bits, 8);
	}
}

static void make(struct question *q)
{
	uint64_t slices = next(q), tracks = next(q) % 8 + !!slices, names = next(q) % 8 + 1;
	uint64_t arrows = slices ? next(q) : 0, groups = next(q) % 8, members = next(q) % 32;
	uint64_t rules = next(q) % 5, scenarios = next(q) % 8, halves = next(q) % 8;

	if (!slices || !groups)
		members = 0;
	const uint64_t head[] = { MAGIC,  slices,  tracks, names,     arrows,
				  groups, members, rules,  scenarios, halves };

	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		put(q, q->is_raw && next(q) == 255 ? UINT64_MAX >> next(q) % 64 : head[i], 8);
	put_times(q, slices);
	put_array(q, slices, 4, tracks);
	put_array(q, slices, 4, names);
	put_array(q, slices, 1, XR_KINDS);
	put_array(q, tracks, 4, tracks);
	put_array(q, names, 1, 0);
	put_array(q, arrows, 4, slices);
	put_array(q, arrows, 4, slices);
	put_array(q, arrows, 8, 0);
	put_array(q, arrows, 1, XR_ARROWS);
	put_array(q, members, 4, groups);
	put_array(q, members, 4, slices);
	put_array(q, members, 1, 0);
	put_factors(q, rules);
	put_array(q, scenarios, 8, 1ull << rules);
	put_array(q, rules * names, 2, 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static struct question q;
	static int file = -1;

	if (file < 0)
		file = memfd_create("question", MFD_CLOEXEC);
	q = (struct question){ .data = data, .left = size };
	switch (next(&q) % 4) {
	case 0: /* as it is */
		memcpy(q.text, q.data, q.length = q.left < ROOM ? q.left : ROOM);
		break;
	case 1:
		q.is_raw = true; /* fall through */
	default:
		make(&q);
	}
	if (ftruncate(file, 0) < 0 || pwrite(file, q.text, q.length, 0) != (ssize_t)q.length ||
	    lseek(file, 0, SEEK_SET) || dup2(file, STDIN_FILENO) < 0)
		abort();
	(void)replay_main();
	return 0;
}
