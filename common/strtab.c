#include "strtab.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "shm.h"

#define UNIT 8u
#define STEP (64u << 10)

static uint32_t hash_of(const char *text, uint32_t length, uint32_t scope)
{
	/* FNV-1a, folded: short names, and only on the first use of each */
	uint64_t hash = 0xcbf29ce484222325ull ^ scope;

	for (uint32_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
	return (uint32_t)(hash ^ hash >> 32) | 1;
}

static struct xs_string *at(struct xs_strings *strings, uint32_t id)
{
	return (struct xs_string *)((char *)strings + (uint64_t)id * UNIT);
}

/* Makes memory up to `end` present, so that a full /dev/shm is seen here and not as a SIGBUS. */
static bool prepare(struct xs_strings *strings, uint32_t end)
{
	uint32_t ready = atomic_load_explicit(&strings->ready, memory_order_relaxed);

	while (end > ready) {
		uint64_t from = (uint64_t)ready * UNIT;

		if (from + STEP > XS_STRINGS_SIZE || !xs_shm_present((char *)strings + from, STEP))
			return false;
		/* another process may have been faster; what is present stays so */
		if (atomic_compare_exchange_strong_explicit(&strings->ready, &ready, ready + STEP / UNIT,
							    memory_order_relaxed, memory_order_relaxed))
			ready += STEP / UNIT;
	}
	return true;
}

void xs_strings_init(struct xs_strings *strings)
{
	uint32_t first = sizeof(*strings) / UNIT;

	atomic_store_explicit(&strings->used, first, memory_order_relaxed);
	atomic_store_explicit(&strings->ready, sizeof(*strings) / STEP * STEP / UNIT, memory_order_relaxed);
}

static uint32_t add(struct xs_strings *strings, const char *text, uint32_t length, uint32_t scope, uint32_t hash)
{
	uint32_t units = (uint32_t)(sizeof(struct xs_string) + length + 1 + UNIT - 1) / UNIT;
	uint32_t id = atomic_load_explicit(&strings->used, memory_order_relaxed);
	struct xs_string *string;

	if (atomic_fetch_add_explicit(&strings->count, 1, memory_order_relaxed) >= XS_STRINGS_COUNT) {
		atomic_fetch_sub_explicit(&strings->count, 1, memory_order_relaxed);
		return 0;
	}
	do {
		if ((uint64_t)(id + units) * UNIT > XS_STRINGS_SIZE || !prepare(strings, id + units))
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(&strings->used, &id, id + units, memory_order_relaxed,
							memory_order_relaxed));
	string = at(strings, id);
	string->hash = hash;
	string->length = length;
	string->scope = scope;
	memcpy(string->text, text, length);
	string->text[length] = '\0';
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

static uint32_t intern(struct xs_strings *strings, const char *text, uint32_t length, uint32_t scope)
{
	uint32_t hash = hash_of(text, length, scope), fresh = 0;

	/* never full (XS_STRINGS_COUNT), so the search ends at an empty slot; the bound is for a spoilt table */
	for (uint32_t probe = 0; probe < XS_STRINGS_SLOTS; probe++) {
		_Atomic uint32_t *slot = &strings->slot[(hash + probe) % XS_STRINGS_SLOTS];
		const struct xs_string *found;
		uint32_t id;

		if (!prepare_slot(strings, slot))
			return XS_STRING_FULL;
		/* pairs with the release below: the string behind an id is complete */
		id = atomic_load_explicit(slot, memory_order_acquire);

		if (!id) {
			if (!fresh)
				fresh = add(strings, text, length, scope, hash);
			if (!fresh)
				return XS_STRING_FULL;
			if (atomic_compare_exchange_strong_explicit(slot, &id, fresh, memory_order_release,
								    memory_order_acquire))
				return fresh;
		}
		found = at(strings, id);
		if (found->hash == hash && found->length == length && found->scope == scope &&
		    !memcmp(found->text, text, length))
			return id;
	}
	return XS_STRING_FULL;
}

uint32_t xs_intern(struct xs_strings *strings, const char *text, uint32_t length, uint32_t scope)
{
	int saved = errno;
	uint32_t id;

	if (length > XS_STRING_MAX) {
		length = XS_STRING_MAX;
		while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	id = intern(strings, text, length, scope);
	errno = saved;
	return id;
}

const struct xs_string *xs_string(const struct xs_strings *strings, uint64_t size, uint32_t id, uint32_t *ret_length)
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
	*ret_length = *(const volatile uint32_t *)&string->length;
	if (*ret_length > XS_STRING_MAX || offset + sizeof(*string) + *ret_length > size)
		return NULL;
	return string;
}
