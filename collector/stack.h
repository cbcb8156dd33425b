/*
 * --call-stacks: who called the API.
 */
#ifndef XS_STACK_H
#define XS_STACK_H

#include <stdint.h>

/* Frames per call; 0: not wanted. Set when the process joins. */
extern uint32_t xs_stack_depth __attribute__((visibility("hidden")));

/* The process has joined: gets ready for `depth` frames. */
void xs_stack_init(uint32_t depth);
/* Writes the calling thread's stack, for the call record that follows, which began at `tick`. */
void xs_stack_write(uint64_t tick) __attribute__((cold, noinline));

#endif
