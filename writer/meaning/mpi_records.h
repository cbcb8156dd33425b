/*
 * MPI calls and the work of requests: see mpi.c.
 */
#ifndef XS_MPI_RECORDS_H
#define XS_MPI_RECORDS_H

#include "track.h"

void xs_mpi_read(struct xs_track *track, const struct xs_event *event, uint32_t size);
/* All that was in the process's rings when this was begun has been read. */
void xs_mpi_pass(struct xs_process *process);
/* The process has ended: requests that are open. */
void xs_mpi_finish(struct xs_process *process, uint64_t end);

#endif
