/*
 * Interned names, in shared memory: each distinct (text, scope) is stored once and has a 32-bit id
 * for the whole run.
 *
 * Shared by all processes of a run, so ids stay good across fork, and dead processes' names stay
 * readable. Insertion is lock-free (a killed process can leave an unused entry, never a lock);
 * nothing is ever removed. Memory is bounded: XS_STRINGS_SIZE bytes and XS_STRINGS_COUNT names;
 * when either is used up, new names become XS_STRING_FULL.
 */
#ifndef XS_STRINGS_H
#define XS_STRINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define XS_STRINGS_SLOTS (1u << 18)
#define XS_STRINGS_SIZE	 (24u << 20)
#define XS_STRINGS_COUNT (XS_STRINGS_SLOTS / 4 * 3)
#define XS_STRING_MAX	 16384u /* bytes of one name; longer ones are cut at a character */
#define XS_STRING_FULL	 1u	/* the id of "(too many names)" */

struct xs_strings {
	_Atomic uint32_t used;	/* next free offset, in 8-byte units */
	_Atomic uint32_t ready; /* offset up to which memory is present, in 8-byte units */
	_Atomic uint32_t count;
	uint32_t reserved;
	/* a bit per page of the table */
	_Atomic uint64_t present[(XS_STRINGS_SLOTS * 4 / 4096 + 64) / 64];
	/* open addressing; id or 0. The first names lie close together: see slot_of() */
	_Atomic uint32_t slot[XS_STRINGS_SLOTS];
};

struct xs_string {
	uint32_t hash; /* stored last, never 0 */
	uint32_t length, scope, reserved;
	char text[];
};

/* Prepares a fresh file's table. */
void xs_strings_init(struct xs_strings *strings);

/* Makes memory for more names present while system calls can still be made. */
void xs_strings_prepare(struct xs_strings *strings);

/* A piece of a name. */
struct xs_part {
	const char *text;
	uint32_t length;
};

/*
 * The same as xs_intern() of all pieces one after the other, which need not be copied together for
 * that.
 */
uint32_t xs_intern_parts(struct xs_strings *strings, const struct xs_part *parts, uint32_t count,
			 uint32_t scope);

/*
 * The id of `text` (length bytes) under `scope` (an id or 0), never 0. ITT tasks are interned as
 * "domain::task" with the domain's id as scope. Preserves errno; takes no lock and allocates
 * nothing from the heap.
 */
uint32_t xs_intern(struct xs_strings *strings, const char *text, uint32_t length, uint32_t scope);

/*
 * The string of an id, or NULL when the id cannot be one. `size` is the size of the mapping.
 * *ret_length is the text's length, read once: a process that can write the table may change it at
 * any time, so string->length must not be used.
 */
const struct xs_string *xs_string(const struct xs_strings *strings, uint64_t size, uint32_t id,
				  uint32_t *ret_length);

/* Is that the name which was interned, by its string's hash? The text is a copy. */
bool xs_string_is(const struct xs_string *string, const char *text, uint32_t length,
		  uint32_t scope);

#endif
