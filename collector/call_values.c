/*
 * Copies the arguments of calls and what they point to. Functions and not inlines: there are two
 * callers for each function of an API, and a call costs less than their code would.
 */
#include "call_values.h"

#define ARRAY_MAX 512u /* bytes of an array, or of a struct, that are copied */
#define TEXT_MAX  256u
#define PAGE	  4096u

/* ---- what can be read ---- */

/* What is known without asking: the page of the caller's frame. */
static void begin_reading(uintptr_t pages[2], uintptr_t mark)
{
	pages[0] = pages[1] = mark & ~(uintptr_t)(PAGE - 1);
}

static bool page_is_there(uintptr_t pages[2], uintptr_t page)
{
	if (page == pages[0] || page == pages[1])
		return true;
	if (!xs_page_readable(page))
		return false;
	pages[1] = page;
	return true;
}

/* How many of the bytes can be read, from the first one on. */
static size_t readable(uintptr_t pages[2], const void *from, size_t bytes)
{
	uintptr_t at = (uintptr_t)from, page = at & ~(uintptr_t)(PAGE - 1);
	size_t known = 0;

	while (known < bytes && page_is_there(pages, page)) {
		page += PAGE;
		known = page - at;
	}
	return known < bytes ? known : bytes;
}

static uint64_t word(uintptr_t pages[2], const void *from, size_t size)
{
	uint64_t value = 0;

	if (size <= sizeof(value) && readable(pages, from, size) == size)
		memcpy(&value, from, size);
	return value;
}

uint64_t xs_word_at(uintptr_t mark, const void *from, size_t size)
{
	uintptr_t pages[2];

	begin_reading(pages, mark);
	return word(pages, from, size);
}

uint64_t xs_values_word(struct xs_values *values, const void *from, size_t size)
{
	return word(values->pages, from, size);
}

/* ---- records ---- */

uint64_t *xs_args_begin(uintptr_t mark, const struct xs_call *call, uint8_t source,
			uint32_t function, uint32_t count)
{
	uint32_t size = (uint32_t)sizeof(struct xs_event) + (count + (count & 1)) * 8;
	struct xs_event *event =
		xs_record_begin_in(mark, size, XS_CALL_IN, source, 0, function, XS_ROLE_OTHER);

	if (!event)
		return NULL;
	event->tick = call->tick;
	xs_own_ahead(event);
	return (uint64_t *)(event + 1);
}

void xs_args_end(struct xs_call *call, uint32_t count)
{
	xs_record_end((uint32_t)sizeof(struct xs_event) + (count + (count & 1)) * 8);
	call->tick = xs_tick(xs_use_tsc);
}

bool xs_values_begin(uintptr_t mark, struct xs_values *values, const struct xs_call *call,
		     uint8_t source, uint32_t function, uint64_t result)
{
	struct xs_values_record *record = xs_record_begin_in(mark, XS_RECORD_MAX, XS_CALL_OUT,
							     source, 0, function, XS_ROLE_OTHER);

	if (!record)
		return false;
	record->event.tick = call->tick;
	record->result = result;
	values->record = record;
	values->at = (unsigned char *)(record + 1);
	values->end = (unsigned char *)record + XS_RECORD_MAX;
	begin_reading(values->pages, mark);
	xs_own_ahead(record);
	return true;
}

void xs_values_end(struct xs_values *values)
{
	uint32_t length = (uint32_t)(values->at - (unsigned char *)values->record),
		 size = (length + 15u) & ~15u;

	values->record->length = length - (uint32_t)sizeof(*values->record);
	values->record->event.words = (uint8_t)(size / 8);
	xs_record_end(size);
}

/* `bytes`, which can be read, of `count` values, of which as many are given as fit. */
static inline void put(struct xs_values *values, uint8_t argument, const void *from, uint32_t bytes,
		       uint64_t count)
{
	struct xs_value *value = (struct xs_value *)values->at;

	if ((size_t)(values->end - values->at) < sizeof(*value) + (bytes + 7u) / 8u * 8u)
		return;
	value->argument = argument;
	value->member = 0;
	value->bytes = (uint16_t)bytes;
	value->count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
	memcpy(value + 1, from, bytes);
	values->at += sizeof(*value) + (bytes + 7u) / 8u * 8u;
}

static void put_all(struct xs_values *values, uint8_t argument, const void *from, size_t bytes,
		    uint64_t count)
{
	if (readable(values->pages, from, bytes) == bytes)
		put(values, argument, from, (uint32_t)bytes, count);
}

void xs_values_one(struct xs_values *values, uint8_t argument, const void *from, size_t size)
{
	put_all(values, argument, from, size < ARRAY_MAX ? size : ARRAY_MAX, 1);
}

void xs_values_copy(struct xs_values *values, uint8_t argument, const void *from, size_t size,
		    uint64_t count)
{
	uint64_t most = ARRAY_MAX / size;

	if (count && most)
		put_all(values, argument, from, (count < most ? count : most) * size, count);
}

void xs_values_text(struct xs_values *values, uint8_t argument, const char *from)
{
	size_t length = 0, known = 0;

	/* page by page: what is behind its end need not be there */
	while (length == known && known < TEXT_MAX) {
		size_t rest = PAGE - ((uintptr_t)(from + known) & (PAGE - 1)),
		       more = rest < TEXT_MAX - known ? rest : TEXT_MAX - known;

		if (readable(values->pages, from + known, more) < more)
			return;
		length += strnlen(from + known, more);
		known += more;
	}
	/* count: one more than there is: there is more */
	put(values, argument, from, (uint32_t)length, length + (length == TEXT_MAX));
}

void xs_values_member(struct xs_values *values, uint8_t argument, const char *from)
{
	struct xs_value *value = (struct xs_value *)values->at;

	xs_values_text(values, argument, from);
	if ((unsigned char *)value != values->at)
		value->member = 1;
}

/* Words up to a 0, which ends the list. */
void xs_values_list(struct xs_values *values, uint8_t argument, const void *from, size_t size)
{
	static const uint64_t zero = 0;
	const unsigned char *at = from;
	uint64_t count = 0;

	if (size > sizeof(zero))
		return;
	while (count < ARRAY_MAX / size &&
	       readable(values->pages, at + count * size, size) == size &&
	       memcmp(at + count * size, &zero, size))
		count++;
	xs_values_copy(values, argument, from, size, count);
}
