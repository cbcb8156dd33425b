/*
 * Between the files that know communicators: mpi_world.c (what the library says), mpi_table.c (by
 * their handles), mpi_identity.c, mpi_comms.c.
 */
#ifndef XS_MPI_COMMS_H
#define XS_MPI_COMMS_H

#include "mpi_wrap.h"

/* ---- mpi_world.c ---- */

extern struct xs_mpi_comm xs_mpi_self_comm;

enum xs_mpi_group { XS_MPI_GROUP_OWN, XS_MPI_GROUP_REMOTE, XS_MPI_GROUP_WIN, XS_MPI_GROUP_FILE };
/*
 * The members' ranks in MPI_COMM_WORLD (XS_MPI_NOTHING: of another world), to be given back; the
 * number of them, or -1.
 */
int32_t xs_mpi_members(uint64_t handle, enum xs_mpi_group which, int32_t **ret_ranks);
bool xs_mpi_is_inter(uint64_t comm);
int32_t xs_mpi_own_rank(uint64_t comm);

/* ---- mpi_from.c ---- */

void xs_mpi_from_free(struct xs_mpi_comm *comm);

/* ---- mpi_topology.c ---- */

void xs_mpi_topology_find(void);
void xs_mpi_topology_free(struct xs_mpi_comm *comm);

/* ---- mpi_table.c ---- */

#define XS_MPI_TOMB                                                                  \
	1u /* a handle that was taken out of the table; no library has such a handle \
	    */

extern _Atomic uint32_t xs_mpi_comms_lock;

/* Where a search for a handle begins, in a table of `size` (a power of two) places. */
uint32_t xs_mpi_place(uint64_t handle, uint32_t size);
/* NULL: it is not there. */
struct xs_mpi_comm *xs_mpi_look_up(uint64_t handle);
/* With the lock held. A handle that is known is another object's from then on. */
void xs_mpi_insert(uint64_t handle, struct xs_mpi_comm *comm);
void xs_mpi_take_out(uint64_t handle);
void xs_mpi_comm_free(struct xs_mpi_comm *comm);

/* ---- mpi_identity.c ---- */

uint64_t xs_mpi_mix(uint64_t hash, uint64_t value);
uint64_t xs_mpi_mix_ranks(uint64_t hash, const int32_t *ranks, int32_t count);
/* With the lock held: the identity of the next communicator of which all members know `key`. */
uint64_t xs_mpi_identity(uint64_t key);

#endif
