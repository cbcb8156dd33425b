/*
 * Names for places in the code: what call stacks hold (struct xs_stack_record), as a person reads
 * it.
 *
 * The files' own symbol tables are read, those in /usr/lib/debug too. A file that is not there any
 * more, or another one than the process had loaded (its build id tells), gives no names: the place
 * is then shown as file+offset.
 */
#ifndef XS_SYMBOLS_H
#define XS_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

struct xs_run;

struct xs_symbol {
	/*
	 * of the function, or of the file; "0x…" for an address in no file; "function (file.py:12)"
	 * for one of Python's
	 */
	char *name;
	uint64_t offset; /* in the function or file */
	uint32_t length; /* of the name */
	bool whole;	 /* the name says the place, and there is no offset */
};

/*
 * What a word of a stack record is. `pid` sees the file system as the traced process does (0:
 * unknown). Valid until the next call.
 */
const struct xs_symbol *xs_symbol_of(struct xs_run *run, int32_t pid, uint64_t frame);

/*
 * The same of an address in a file that has no string id: `told` is its build id in hexadecimal
 * digits, or nothing, then a blank and its path.
 */
const struct xs_symbol *xs_symbol_in(struct xs_run *run, int32_t pid, const char *told,
				     uint64_t address);

#endif
