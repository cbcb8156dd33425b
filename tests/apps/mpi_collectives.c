/*
 * Every class of collective, one-sided communication, files, topologies, sub-communicators, and
 * what fails. mpi_collectives DIRECTORY
 */
#include "mpi_app.h"

#define N 64
static int from[N * 16], to[N * 16], counts[16], places[16];
static int seq; /* of MPI_COMM_WORLD */

static void rooted(void)
{
	int root = size - 1;

	MPI_Barrier(MPI_COMM_WORLD);
	say("call MPI_Barrier comm=world seq=%d", ++seq);
	MPI_Bcast(from, 3, MPI_DOUBLE, root, MPI_COMM_WORLD);
	say("call MPI_Bcast comm=world root=%d count=3 bytes=24 seq=%d", root, ++seq);
	MPI_Reduce(from, to, 5, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	say("call MPI_Reduce root=0 count=5 bytes=20 seq=%d", ++seq);
	MPI_Gather(from, 2, MPI_INT, to, 2, MPI_INT, root, MPI_COMM_WORLD);
	say("call MPI_Gather root=%d bytes=8 seq=%d", root, ++seq);
	/* what means nothing must not be looked at */
	if (rank == root)
		MPI_Gather(MPI_IN_PLACE, 12345, MPI_DATATYPE_NULL, to, 3, MPI_INT, root,
			   MPI_COMM_WORLD);
	else
		MPI_Gather(from, 3, MPI_INT, NULL, -7, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
	say("call MPI_Gather root=%d bytes=12 seq=%d", root, ++seq);
	if (rank == root)
		MPI_Scatter(from, 4, MPI_INT, MPI_IN_PLACE, 12345, MPI_DATATYPE_NULL, root,
			    MPI_COMM_WORLD);
	else
		MPI_Scatter(NULL, -7, MPI_DATATYPE_NULL, to, 4, MPI_INT, root, MPI_COMM_WORLD);
	say("call MPI_Scatter root=%d bytes=16 seq=%d", root, ++seq);
	MPI_Gatherv(from, counts[rank], MPI_INT, to, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
	say("call MPI_Gatherv root=0 count=%d bytes=%d seq=%d", counts[rank], 4 * counts[rank],
	    ++seq);
	MPI_Scatterv(from, counts, places, MPI_INT, to, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
	say("call MPI_Scatterv root=0 count=%d bytes=%d seq=%d", counts[rank], 4 * counts[rank],
	    ++seq);
}

static void all(void)
{
	MPI_Datatype types[16];
	int sum = 0, bytes[16];
	MPI_Request request;

	for (int i = 0; i < size; i++) {
		sum += counts[i];
		types[i] = MPI_INT;
		bytes[i] = 4 * places[i];
	}
	MPI_Allreduce(MPI_IN_PLACE, to, 6, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	say("call MPI_Allreduce count=6 bytes=24 seq=%d", ++seq);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, 2, MPI_INT, MPI_COMM_WORLD);
	say("call MPI_Allgather count=2 bytes=8 seq=%d", ++seq);
	MPI_Allgatherv(from, counts[rank], MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD);
	say("call MPI_Allgatherv count=%d bytes=%d seq=%d", counts[rank], 4 * counts[rank], ++seq);
	MPI_Alltoall(from, 2, MPI_INT, to, 2, MPI_INT, MPI_COMM_WORLD);
	say("call MPI_Alltoall count=2 bytes=8 seq=%d", ++seq);
	for (int i = 0; i < size; i++)
		counts[i] = 2;
	MPI_Alltoallv(from, counts, places, MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD);
	say("call MPI_Alltoallv count=%d bytes=%d seq=%d", 2 * size, 8 * size, ++seq);
	MPI_Alltoallw(from, counts, bytes, types, to, counts, bytes, types, MPI_COMM_WORLD);
	say("call MPI_Alltoallw count=%d bytes=%d seq=%d", 2 * size, 8 * size, ++seq);
	MPI_Reduce_scatter(from, to, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	say("call MPI_Reduce_scatter count=%d bytes=%d seq=%d", 2 * size, 8 * size, ++seq);
	MPI_Reduce_scatter_block(from, to, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	say("call MPI_Reduce_scatter_block count=3 bytes=12 seq=%d", ++seq);
	MPI_Scan(from, to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	say("call MPI_Scan count=1 bytes=8 seq=%d", ++seq);
	MPI_Exscan(from, to, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	say("call MPI_Exscan count=1 bytes=4 seq=%d", ++seq);
	MPI_Iallreduce(from, to, 7, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	say("call MPI_Iallreduce count=7 bytes=28 seq=%d request=!", ++seq);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	say("call MPI_Wait request=!");
	say("done MPI_Iallreduce comm=world count=7 bytes=28 seq=%d", seq);
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	say("call MPI_Ibarrier seq=%d", ++seq);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	say("call MPI_Wait");
	say("done MPI_Ibarrier seq=%d", seq);
}

static void one_sided(void)
{
	int memory[N] = { 0 };
	MPI_Win window;

	MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	say("call MPI_Win_create comm=world");
	MPI_Win_fence(0, window);
	say("call MPI_Win_fence win=!");
	MPI_Put(from, 4, MPI_INT, (rank + 1) % size, 8, 4, MPI_INT, window);
	say("call MPI_Put win=! peer=%d count=4 bytes=16", (rank + 1) % size);
	MPI_Accumulate(from, 2, MPI_INT, 0, 16, 2, MPI_INT, MPI_SUM, window);
	say("call MPI_Accumulate peer=0 count=2 bytes=8");
	MPI_Win_fence(0, window);
	say("call MPI_Win_fence");
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	say("call MPI_Win_lock peer=0");
	MPI_Get(to, 3, MPI_INT, 0, 0, 3, MPI_INT, window);
	say("call MPI_Get peer=0 count=3 bytes=12");
	MPI_Win_unlock(0, window);
	say("call MPI_Win_unlock peer=0");
	MPI_Win_free(&window);
	say("call MPI_Win_free");
}

static void files(const char *directory)
{
	MPI_File file = open_data(directory);
	MPI_Status status;

	MPI_File_write_at_all(file, 400 * rank, from, 100, MPI_INT, MPI_STATUS_IGNORE);
	say("call MPI_File_write_at_all file=! offset=%d count=100 bytes=400", 400 * rank);
	MPI_File_sync(file);
	say("call MPI_File_sync file=!");
	MPI_Barrier(MPI_COMM_WORLD);
	say("call MPI_Barrier");
	/* more is asked for than there is */
	MPI_File_read_at(file, 400 * (size - 1), to, 200, MPI_INT, &status);
	say("call MPI_File_read_at offset=%d count=200 bytes=400", 400 * (size - 1));
	MPI_File_close(&file);
	say("call MPI_File_close");
}

static void topologies(void)
{
	int periodic = 1, before, after;
	MPI_Comm ring, pair, both, twin;
	MPI_Group group, first;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
	say("call MPI_Cart_create comm=world new_comm=!");
	MPI_Cart_shift(ring, 0, 1, &before, &after);
	say("call MPI_Cart_shift");
	MPI_Neighbor_allgather(from, 2, MPI_INT, to, 2, MPI_INT, ring);
	say("call MPI_Neighbor_allgather count=2 bytes=8 seq=1");
	MPI_Neighbor_alltoallv(from, counts, places, MPI_INT, to, counts, places, MPI_INT, ring);
	say("call MPI_Neighbor_alltoallv count=4 bytes=16 seq=2");
	MPI_Comm_free(&ring);
	say("call MPI_Comm_free");
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &pair);
	say("call MPI_Comm_split");
	MPI_Intercomm_create(pair, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &both);
	say("call MPI_Intercomm_create");
	/* the partner's rank is one of the other group */
	MPI_Sendrecv(from, 1, MPI_INT, rank / 2, 6, to, 1, MPI_INT, MPI_ANY_SOURCE, 6, both,
		     MPI_STATUS_IGNORE);
	say("call MPI_Sendrecv peer=%d recv_peer=%d", rank % 2 ? rank - 1 : rank + 1,
	    rank % 2 ? rank - 1 : rank + 1);
	MPI_Bcast(from, 2, MPI_INT, rank % 2 ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT, both);
	say("call MPI_Bcast seq=1");
	MPI_Comm_dup(both, &twin);
	say("call MPI_Comm_dup new_comm=!");
	MPI_Comm_free(&twin);
	say("call MPI_Comm_free");
	MPI_Comm_free(&both);
	say("call MPI_Comm_free");
	MPI_Comm_free(&pair);
	say("call MPI_Comm_free");
	MPI_Comm_group(MPI_COMM_WORLD, &group);
	say("call MPI_Comm_group");
	MPI_Group_incl(group, 1, (int[]){ 0 }, &first);
	say("call MPI_Group_incl");
	if (!rank) {
		MPI_Comm_create_group(MPI_COMM_WORLD, first, 9, &pair);
		say("call MPI_Comm_create_group new_comm=!");
		MPI_Comm_free(&pair);
		say("call MPI_Comm_free");
	}
	MPI_Group_free(&first);
	say("call MPI_Group_free");
	MPI_Group_free(&group);
	say("call MPI_Group_free");
}

int main(int argc, char **argv)
{
	begin(&argc, &argv, argv[1]);
	for (int i = 0; i < size; i++) {
		counts[i] = i + 1;
		places[i] = 4 * i;
	}
	rooted();
	all();
	one_sided();
	files(argv[1]);
	topologies();
	return end();
}
