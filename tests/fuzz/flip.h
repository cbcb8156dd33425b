/*
 * Memory that changes while it is read, always in the same way for the same input: the code under
 * test is built so that it calls before each load (clang's trace-loads), and some loads from shared
 * memory find another value than the one before.
 */
#ifndef FLIP_H
#define FLIP_H

#include <stddef.h>
#include <stdint.h>

/* Loads from there can be changed; at most 8 pieces of memory. */
void flip_watch(void *memory, size_t size);
/* From here on; `how`: pairs of bytes, after how many loads, and what is done then. */
void flip_begin(const unsigned char *how, size_t length);
/* All is put back as it was before flip_begin(), but for what the code has written itself. */
void flip_end(void);

#endif
