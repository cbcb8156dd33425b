#include "strtab.h"

#include <stddef.h>
#include <string.h>

#include "shm.h"

#define UNIT 8u
#define STEP XS_PAGE	 /* of text that is made present at once */
#define NEAR (64u << 10) /* of text that others may be about to make present */
#define LINE 8u		 /* slots that are probed in one place */
/* A table that nobody has spoilt has no such row of slots without an empty one. */
#define PROBES 8192u

/* What is looked for: pieces, `length` bytes in all. */
struct wanted {
	const struct xs_part *parts;
	uint32_t length, scope, hash;
};

static uint32_t hash_of(const struct wanted *wanted)
{
	/* FNV-1a, folded: short names, and only on the first use of each */
	uint64_t hash = 0xcbf29ce484222325ull ^ wanted->scope;
	uint32_t left = wanted->length;

	for (const struct xs_part *part = wanted->parts; left; part++)
		for (uint32_t i = 0; i < part->length && left; i++, left--)
			hash = (hash ^ (unsigned char)part->text[i]) * 0x100000001b3ull;
	return (uint32_t)(hash ^ hash >> 32) | 1;
}

static bool is_same(const char *text, const struct wanted *wanted)
{
	uint32_t left = wanted->length;

	for (const struct xs_part *part = wanted->parts; left; part++) {
		uint32_t n = part->length < left ? part->length : left;

		if (memcmp(text, part->text, n))
			return false;
		text += n;
		left -= n;
	}
	return true;
}

static void copy(char *text, const struct wanted *wanted)
{
	uint32_t left = wanted->length;

	for (const struct xs_part *part = wanted->parts; left; part++) {
		uint32_t n = part->length < left ? part->length : left;

		memcpy(text, part->text, n);
		text += n;
		left -= n;
	}
	*text = '\0';
}

/*
 * Where a string of `length` bytes lies; NULL: others can write the table, and `id` is no place for
 * one.
 */
static struct xs_string *at(struct xs_strings *strings, uint64_t id, uint32_t length)
{
	uint64_t offset = id * UNIT;

	if (offset < sizeof(*strings) ||
	    offset + sizeof(struct xs_string) + length + 1 > XS_STRINGS_SIZE)
		return NULL;
	return (struct xs_string *)((char *)strings + offset);
}

/*
 * Makes the memory of these units present, so that a full /dev/shm is seen here and not as a
 * SIGBUS.
 */
static bool prepare(struct xs_strings *strings, uint64_t from, uint64_t end)
{
	uint32_t ready = atomic_load_explicit(&strings->ready, memory_order_relaxed);
	/* others are about to make present what lies between, unless `ready` is nonsense */
	bool near = from <= ready || from - ready <= NEAR / UNIT;
	uint64_t start = (near && ready < from ? ready : from) * UNIT / XS_PAGE * XS_PAGE,
		 stop = (end * UNIT + STEP - 1) / STEP * STEP;

	if (end <= ready)
		return true;
	if (!xs_shm_present((char *)strings + start, stop - start))
		return false;
	/* another process may have been faster; what is present stays so */
	if (near)
		atomic_compare_exchange_strong_explicit(&strings->ready, &ready,
							(uint32_t)(stop / UNIT),
							memory_order_relaxed, memory_order_relaxed);
	return true;
}

void xs_strings_init(struct xs_strings *strings)
{
	uint32_t first = sizeof(*strings) / UNIT;

	atomic_store_explicit(&strings->used, first, memory_order_relaxed);
	atomic_store_explicit(&strings->ready, sizeof(*strings) / STEP * STEP / UNIT,
			      memory_order_relaxed);
}

#define PREPARED (256u << 10) /* bytes of text */

void xs_strings_prepare(struct xs_strings *strings)
{
	uint64_t used = atomic_load_explicit(&strings->used, memory_order_relaxed);

	if (used * UNIT + PREPARED > XS_STRINGS_SIZE ||
	    !prepare(strings, used, used + PREPARED / UNIT) ||
	    !xs_shm_present(strings, sizeof(*strings)))
		return;
	for (uint32_t i = 0; i < sizeof(strings->present) / sizeof(strings->present[0]); i++)
		atomic_store_explicit(&strings->present[i], UINT64_MAX, memory_order_relaxed);
}

static uint32_t add(struct xs_strings *strings, const struct wanted *wanted)
{
	uint32_t units =
		(uint32_t)(sizeof(struct xs_string) + wanted->length + 1 + UNIT - 1) / UNIT;
	uint32_t id = atomic_load_explicit(&strings->used, memory_order_relaxed);
	struct xs_string *string;

	if (atomic_fetch_add_explicit(&strings->count, 1, memory_order_relaxed) >=
	    XS_STRINGS_COUNT) {
		atomic_fetch_sub_explicit(&strings->count, 1, memory_order_relaxed);
		return 0;
	}
	do {
		string = at(strings, id, units * UNIT - (uint32_t)sizeof(*string) - 1);
		if (!string || !prepare(strings, id, (uint64_t)id + units))
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(&strings->used, &id, id + units,
							memory_order_relaxed,
							memory_order_relaxed));
	string->length = wanted->length;
	string->scope = wanted->scope;
	copy(string->text, wanted);
	/* last, and never 0: who asks for the id too early must not take what is there for it */
	__atomic_store_n(&string->hash, wanted->hash, __ATOMIC_RELEASE);
	return id;
}

/* As prepare(), for the page of the table that holds a slot. */
static bool prepare_slot(struct xs_strings *strings, const _Atomic uint32_t *slot)
{
	uint64_t page = (uint64_t)((const char *)slot - (const char *)strings) / XS_PAGE;
	_Atomic uint64_t *word = &strings->present[page / 64];
	uint64_t bit = 1ull << page % 64;

	if (atomic_load_explicit(word, memory_order_relaxed) & bit)
		return true;
	if (!xs_shm_present((char *)strings + page * XS_PAGE, XS_PAGE))
		return false;
	atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
	return true;
}

/*
 * The slot that is looked at after `probe` others. A program's first names find room in the
 * table's first page, the next in its first 16, and only then all over it: for each page more that
 * holds a name, the program waits until the kernel has cleared it.
 */
static uint32_t slot_of(uint32_t hash, uint32_t probe)
{
	static const uint32_t first = (XS_PAGE - offsetof(struct xs_strings, slot)) / 4 / LINE,
			      next = 15 * XS_PAGE / 4 / LINE, crowded = (first + next) * LINE;

	uint32_t mixed = hash * 0x9e3779b1u >> 8; /* similar names have similar hashes, all odd */

	if (probe < LINE)
		return mixed % first * LINE + probe;
	if (probe < 2 * LINE)
		return (first + mixed % next) * LINE + probe % LINE;
	return crowded + (hash + probe) % (XS_STRINGS_SLOTS - crowded);
}

static uint32_t intern(struct xs_strings *strings, const struct wanted *wanted)
{
	uint32_t fresh = 0;

	/*
	 * never full (XS_STRINGS_COUNT), so the search ends at an empty slot; the bound is for a
	 * spoilt table
	 */
	for (uint32_t probe = 0; probe < PROBES; probe++) {
		_Atomic uint32_t *slot = &strings->slot[slot_of(wanted->hash, probe)];
		const struct xs_string *found;
		uint32_t id;

		if (!prepare_slot(strings, slot))
			return XS_STRING_FULL;
		/* pairs with the release below: the string behind an id is complete */
		id = atomic_load_explicit(slot, memory_order_acquire);

		if (!id) {
			if (!fresh)
				fresh = add(strings, wanted);
			if (!fresh)
				return XS_STRING_FULL;
			if (atomic_compare_exchange_strong_explicit(slot, &id, fresh,
								    memory_order_release,
								    memory_order_acquire))
				return fresh;
		}
		found = at(strings, id, wanted->length);
		if (!found)
			return XS_STRING_FULL;
		if (found->hash == wanted->hash && found->length == wanted->length &&
		    found->scope == wanted->scope && is_same(found->text, wanted))
			return id;
	}
	return XS_STRING_FULL;
}

/* The byte at a place of the pieces. */
static unsigned char byte_at(const struct xs_part *part, uint32_t place)
{
	for (; place >= part->length; part++)
		place -= part->length;
	return (unsigned char)part->text[place];
}

uint32_t xs_intern_parts(struct xs_strings *strings, const struct xs_part *parts, uint32_t count,
			 uint32_t scope)
{
	struct wanted wanted = { .parts = parts, .scope = scope };
	uint64_t length = 0;

	for (uint32_t i = 0; i < count; i++)
		length += parts[i].length;
	if (length > XS_STRING_MAX) {
		length = XS_STRING_MAX;
		while (length && (byte_at(parts, (uint32_t)length) & 0xc0) == 0x80)
			length--;
	}
	wanted.length = (uint32_t)length;
	wanted.hash = hash_of(&wanted);
	return intern(strings, &wanted);
}

uint32_t xs_intern(struct xs_strings *strings, const char *text, uint32_t length, uint32_t scope)
{
	return xs_intern_parts(strings, &(struct xs_part){ text, length }, 1, scope);
}

const struct xs_string *xs_string(const struct xs_strings *strings, uint64_t size, uint32_t id,
				  uint32_t *ret_length)
{
	static const struct {
		uint32_t head[4]; /* hash, length, scope, reserved */
		char text[20];
	} full = { { 0, 16, 0, 0 }, "(too many names)" };
	uint64_t offset = (uint64_t)id * UNIT;
	const struct xs_string *string = (const void *)((const char *)strings + offset);

	if (id == XS_STRING_FULL) {
		*ret_length = full.head[1];
		return (const void *)&full;
	}
	if (offset < sizeof(*strings) || offset + sizeof(*string) > size)
		return NULL;
	if (!__atomic_load_n(&string->hash, __ATOMIC_ACQUIRE))
		return NULL; /* nobody has got this id yet */
	*ret_length = *(const volatile uint32_t *)&string->length;
	if (*ret_length > XS_STRING_MAX || offset + sizeof(*string) + *ret_length > size)
		return NULL;
	return string;
}

bool xs_string_is(const struct xs_string *string, const char *text, uint32_t length, uint32_t scope)
{
	const struct wanted wanted = { .parts = &(const struct xs_part){ text, length },
				       .length = length,
				       .scope = scope };

	return __atomic_load_n(&string->hash, __ATOMIC_RELAXED) == hash_of(&wanted);
}
