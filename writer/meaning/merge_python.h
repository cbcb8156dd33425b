/*
 * Python's functions within a native stack.
 */
#ifndef XS_MERGE_PYTHON_H
#define XS_MERGE_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Python's functions come in the place of the interpreter's native one, which runs several of them
 * as long as they call each other without C in between. All innermost first. loops: is the native
 * frame the interpreter's; entries: has C called the Python function? order gets, at most `room`,
 * i for the i-th native frame, -1-i for the i-th function of Python. Returns how many.
 */
uint32_t xs_merge_python(const bool *loops, uint32_t natives, const bool *entries, uint32_t pythons,
			 int32_t *order, uint32_t room);

#endif
