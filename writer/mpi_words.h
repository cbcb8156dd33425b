/*
 * What the words of MPI's records say, as JSON members with a comma before each.
 */
#ifndef XS_MPI_WORDS_H
#define XS_MPI_WORDS_H

#include "chrome.h"

#define XS_MPI_SET_ROOM	  4096 /* bytes of a set of ranks; what does not fit is left out */
#define XS_MPI_WORDS_ROOM (XS_MPI_WORDS * 64 + XS_MPI_SET_ROOM) /* bytes that may be touched */

/*
 * By index: those whose bits are set, but a request. Programs make few calls that differ, and what
 * those before said is remembered.
 */
char *xs_mpi_put_call(struct xs_process *process, char *o, uint32_t words, const uint64_t *value);

/*
 * Who this process is in a communicator, as an event: who merges ranks needs to know it before the
 * first collective there.
 */
void xs_mpi_show_member(struct xs_track *track, const struct xs_mpi_member_record *record);

#endif
