/*
 * Memory that a fuzz target takes and gives back in each run, and gets again in the next one, as it
 * was: the kernel then has no pages to clear. (By the linker's --wrap.)
 *
 * AddressSanitizer asks the kernel for each large piece anew. Here one that was freed is poisoned
 * and waits for the next malloc() of its size, so an access to it, and a second free(), are found
 * as before. Shared memory that was made present once is, too.
 */
#ifndef LARGE_H
#define LARGE_H

/* From now on. For targets with one thread. NULL in what is built without AddressSanitizer. */
void keep_memory(void) __attribute__((weak));

#endif
