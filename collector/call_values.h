/*
 * -c: what a call was given and what it gave, in records of their own around its XS_CALL. Called by
 * generated code (interpose/arguments.py).
 *
 * XS_CALL_IN holds the argument words and is written before the call. XS_CALL_OUT is written after
 * a call that succeeded, when the API has read or written what the arguments point to. Nothing is
 * read through a pointer before the kernel has said that the page is there: the API need not have
 * looked at it, a count may be too large, and the memory may be gone already.
 */
#ifndef XS_CALL_VALUES_H
#define XS_CALL_VALUES_H

#include <string.h>

#include "collector.h"

extern bool xs_log_calls __attribute__((visibility("hidden")));

/*
 * Room for the words, to be ended by xs_args_end(); NULL: not recorded. `mark`: the caller's
 * XS_FRAME_MARK().
 */
uint64_t *xs_args_begin(uintptr_t mark, const struct xs_call *call, uint8_t source,
			uint32_t function, uint32_t count);
/* What is there, up to 8 bytes; 0: nothing can be read. `mark`: as above. */
uint64_t xs_word_at(uintptr_t mark, const void *from, size_t size);
/* The call's time begins anew: copying is not part of it. */
void xs_args_end(struct xs_call *call, uint32_t count);

static inline uint64_t xs_word_of_real(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

struct xs_values {
	struct xs_values_record *record;
	unsigned char *at, *end;
	uintptr_t pages[2]; /* that can be read: the caller's frame, and the last one asked for */
};

/* False: not recorded, nothing more is to be called. `mark`: as above. */
bool xs_values_begin(uintptr_t mark, struct xs_values *values, const struct xs_call *call,
		     uint8_t source, uint32_t function, uint64_t result);
void xs_values_end(struct xs_values *values);
/* As xs_word_at(), and by the type of the pointer. */
uint64_t xs_values_word(struct xs_values *values, const void *from, size_t size);
#define XS_VALUE_AT(pointer) \
	((__typeof__(*(pointer)))(uintptr_t)xs_values_word(&values, (pointer), sizeof(*(pointer))))
/*
 * What argument number `argument` points to, if anything: one value, an array, text, words up to a
 * 0, text that a member of the struct points to.
 */
void xs_values_one(struct xs_values *values, uint8_t argument, const void *from, size_t size);
void xs_values_copy(struct xs_values *values, uint8_t argument, const void *from, size_t size,
		    uint64_t count);
void xs_values_text(struct xs_values *values, uint8_t argument, const char *from);
void xs_values_list(struct xs_values *values, uint8_t argument, const void *from, size_t size);
void xs_values_member(struct xs_values *values, uint8_t argument, const char *from);

#endif
