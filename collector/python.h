/*
 * The Python functions of the calling thread's stack, for --call-stacks.
 */
#ifndef XS_PYTHON_H
#define XS_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "python_frames.h"

/* The process has joined, and wants stacks: looks for an interpreter. */
void xs_python_init_own(void);

/*
 * The thread's functions that have not been passed yet. None: no interpreter, or the thread runs
 * nothing of Python's.
 */
#define XS_PYTHON_PAGES 32u /* a power of two */
struct xs_python_stack {
	struct xs_python python; /* reads through `pages` */
	struct xs_python_walk walk;
	uint64_t native;		 /* as xs_python_native() says it */
	uint64_t pages[XS_PYTHON_PAGES]; /* known to be readable; the address and 1 */
};
void xs_python_stack_begin(struct xs_python_stack *stack);

/* Is this the native frame of the interpreter that runs the next one? `at`: in its code. */
bool xs_python_is_run_by(const struct xs_python_stack *stack, uintptr_t at, uintptr_t from,
			 uintptr_t to);
/*
 * The next function as records have it. *ret_last: the native frame runs no further one. 0: there
 * is none.
 */
uint64_t xs_python_stack_next(struct xs_python_stack *stack, bool *ret_last);

#endif
