/*
 * The calling thread's stack: who called the API (--call-stacks), and whom a signal has
 * interrupted.
 */
#ifndef XS_STACK_H
#define XS_STACK_H

#include <stdbool.h>
#include <stdint.h>

/* Frames per call; 0: not wanted. Set when the process joins. */
extern uint32_t xs_stack_depth __attribute__((visibility("hidden")));

/* The process has joined: gets ready for `depth` frames. */
void xs_stack_init(uint32_t depth);
/*
 * The calling thread's stack, the innermost frame first, as records have it. Returns how many
 * frames; *ret_more: there was no room for further ones.
 */
uint32_t xs_stack_frames(uint64_t *frames, uint32_t room, bool *ret_more)
	__attribute__((cold, noinline));

/*
 * A return address as records have it, and how many libraries the program has unloaded: what was
 * found before then may be wrong.
 */
uint64_t xs_stack_place(uintptr_t after_call) __attribute__((cold, noinline));
uint64_t xs_stack_unloaded(void);

/*
 * Does the function still run whose return address lies at `slot`, interrupted by a signal whose
 * handler this thread is in? Where that cannot be found out, the answer is yes.
 */
bool xs_stack_has(uintptr_t slot) __attribute__((cold, noinline));
/* The same of one that is a caller of this. */
bool xs_stack_came_by(uintptr_t slot) __attribute__((cold, noinline));

#endif
