/*
 * What the words of MPI's records say, as JSON members with a comma before each.
 */
#ifndef XS_MPI_WORDS_H
#define XS_MPI_WORDS_H

#include "chrome.h"

#define XS_MPI_WORDS_ROOM (XS_MPI_WORDS * 64) /* bytes that may be touched */

/* By index: those whose bits are set, but a request. */
char *xs_mpi_put_words(char *o, uint32_t words, const uint64_t *value);
/* The same of a call: programs make few calls that differ, and what those before said is remembered. */
char *xs_mpi_put_call(struct xs_process *process, char *o, uint32_t words, const uint64_t *value);

#endif
