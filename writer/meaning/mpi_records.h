/*
 * MPI calls: see mpi.c.
 */
#ifndef XS_MPI_RECORDS_H
#define XS_MPI_RECORDS_H

#include "track.h"

void xs_mpi_read(struct xs_track *track, const struct xs_event *event, uint32_t size);

#endif
