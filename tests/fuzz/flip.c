#include "flip.h"

#include <string.h>

#define PIECES	8
#define CHANGES 256

static struct {
	uintptr_t from, to;
} pieces[PIECES];
static unsigned piece_count;

static struct change {
	unsigned char *place;
	uint64_t before, after;
	unsigned size;
} changes[CHANGES];
static unsigned change_count;

static const unsigned char *how, *how_end;
static unsigned wait_for;
static int is_on;

void flip_watch(void *memory, size_t size)
{
	if (piece_count == PIECES)
		return;
	pieces[piece_count].from = (uintptr_t)memory;
	pieces[piece_count++].to = (uintptr_t)memory + size;
}

static void wait_for_next(void)
{
	is_on = how + 1 < how_end && change_count < CHANGES;
	wait_for = is_on ? how[0] : 0;
}

void flip_begin(const unsigned char *given, size_t length)
{
	how = given;
	how_end = given + length;
	change_count = 0;
	wait_for_next();
}

void flip_end(void)
{
	is_on = 0;
	while (change_count) {
		struct change *c = &changes[--change_count];

		if (!memcmp(c->place, &c->after, c->size))
			memcpy(c->place, &c->before, c->size);
	}
}

/* What a value becomes: other bits, a bit more or less, nothing, all. */
static uint64_t changed(uint64_t value, unsigned char what)
{
	switch (what >> 5) {
	case 0:
		return value ^ 1ull << (what & 31);
	case 1:
		return value + 1 + (what & 31);
	case 2:
		return value - 1 - (what & 31);
	case 3:
		return value ^ 0x0101010101010101ull * what;
	case 4:
		return 0;
	case 5:
		return ~0ull;
	case 6:
		return value ^ (uint64_t)what << (what & 31) << 32;
	default:
		return value << (what & 31);
	}
}

static void __attribute__((noinline)) look_closely(void *place, unsigned size)
{
	uintptr_t at = (uintptr_t)place;
	struct change *c;

	for (unsigned i = 0; i < piece_count; i++) {
		if (at < pieces[i].from || at + size > pieces[i].to)
			continue;
		if (wait_for--)
			return;
		c = &changes[change_count++];
		*c = (struct change){ .place = place, .size = size };
		memcpy(&c->before, place, size);
		c->after = changed(c->before, how[1]);
		memcpy(place, &c->after, size);
		how += 2;
		wait_for_next();
		return;
	}
}

/* Before each load: there are many. */
static inline __attribute__((always_inline)) void look(void *place, unsigned size)
{
	if (__builtin_expect(is_on, 0))
		look_closely(place, size);
}

void __sanitizer_cov_load1(void *place);
void __sanitizer_cov_load2(void *place);
void __sanitizer_cov_load4(void *place);
void __sanitizer_cov_load8(void *place);
void __sanitizer_cov_load16(void *place);

void __sanitizer_cov_load1(void *place)
{
	look(place, 1);
}

void __sanitizer_cov_load2(void *place)
{
	look(place, 2);
}

void __sanitizer_cov_load4(void *place)
{
	look(place, 4);
}

void __sanitizer_cov_load8(void *place)
{
	look(place, 8);
}

void __sanitizer_cov_load16(void *place)
{
	look(place, 8);
}
