/*
 * Every collective, with every kind of counts: who gets whose data. mpi_needs DIRECTORY. Before
 *each call its ranks nap, each for another time, so that whoever need not wait is through long
 *before others come.
 *
 *	need <function> <ranks>		in the order of the calls (or of the works of requests):
 *those of the world that this rank cannot be through before true <before> <after>		by
 *the kernel's clock, around the MPI_Barrier that was told last
 */
#include "mpi_app.h"

#include <sys/syscall.h>
#include <time.h>

#define MOST 8
#define N    3

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
enum mode { FULL, EMPTY, ONE_EMPTY, SPARSE, IN_PLACE, MODES };

static enum form form;
static enum mode mode;
static MPI_Comm comm;
static int members, me, world_of[MOST]; /* of the other group, if there are two; else of this one */
static int between, side;		/* two groups; which is ours: 0 has the roots */
/* starts: of persistent ones; MPICH 4.0 cannot start them all again */
static int turn, root, starts = 1;
static int from[MOST]; /* what we get of each */
static int in[64], out[64];

/* As large as an array of counts can be; each i has its place at N * i. */
static int counts[MOST], recounts[MOST], places[MOST], bytes_places[MOST];
static MPI_Datatype types[MOST];

static void nap(void)
{
	usleep((unsigned)((rank * 7 + turn * 3) % size) * 400);
}

static void need(const char *name, int all)
{
	char ranks[64] = "";

	for (int i = 0, at = 0; i < members; i++)
		if ((all || from[i]) && (between || i != me))
			at += snprintf(ranks + at, sizeof(ranks) - (size_t)at, "%s%d",
				       at ? "," : "", world_of[i]);
	say("need %s %s", name, ranks[0] ? ranks : "-");
}

static int64_t now(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void meet(void)
{
	int64_t before = now();
	char others[64] = "";

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0, at = 0; i < size; i++)
		if (i != rank)
			at += snprintf(others + at, sizeof(others) - (size_t)at, "%s%d",
				       at ? "," : "", i);
	say("need MPI_Barrier %s", others);
	say("true %lld %lld", (long long)before, (long long)now());
}

/* One call in the form that is asked for; `all`: everybody waits for everybody. */
#if MPI_VERSION >= 4
#define KEPT(name, ...)                                               \
	MPI_##name##_init(__VA_ARGS__ comm, MPI_INFO_NULL, &request); \
	for (int k = 0; k < starts; k++) {                            \
		nap();                                                \
		MPI_Start(&request);                                  \
		nap();                                                \
		MPI_Wait(&request, MPI_STATUS_IGNORE);                \
		need("MPI_" #name "_init", all_of_them);              \
	}                                                             \
	MPI_Request_free(&request);
#else
#define KEPT(name, ...)
#endif
#define CALL(all, name, small, ...)                               \
	do {                                                      \
		MPI_Request request;                              \
		int all_of_them = all;                            \
                                                                  \
		(void)all_of_them;                                \
		turn++;                                           \
		if (form == BLOCKING) {                           \
			nap();                                    \
			MPI_##name(__VA_ARGS__ comm);             \
			need("MPI_" #name, all);                  \
		} else if (form == NONBLOCKING) {                 \
			nap();                                    \
			MPI_I##small(__VA_ARGS__ comm, &request); \
			nap();                                    \
			MPI_Wait(&request, MPI_STATUS_IGNORE);    \
			need("MPI_I" #small, all);                \
		} else {                                          \
			KEPT(name, __VA_ARGS__)                   \
		}                                                 \
	} while (0)
#define ARGS(...) __VA_ARGS__,

/* What j gets of i; the same both ways, as MPI_IN_PLACE wants it. */
static int amount(int i, int j)
{
	switch (mode) {
	case EMPTY:
		return 0;
	case ONE_EMPTY:
		return i == 1 || j == 1 ? 0 : N;
	case SPARSE:
		return (i + j) % 3 ? 0 : 2;
	default:
		return N;
	}
}

/* What each has of its own (allgatherv, gatherv, scatterv, reduce_scatter). */
static int share(int i)
{
	return mode == EMPTY	   ? 0
	       : mode == ONE_EMPTY ? (i == 1 ? 0 : N)
	       : mode == SPARSE	   ? (i % 2 ? 2 : 0)
				   : N;
}

static void all_from(int yes)
{
	for (int i = 0; i < members; i++)
		from[i] = yes;
}

/* Between groups only the root's side sends, or gets; beside the root nobody does anything. */
static int root_argument(void)
{
	return !between ? root : side ? root : me == root ? MPI_ROOT : MPI_PROC_NULL;
}

static int is_root(void)
{
	return me == root && side == 0;
}

static void all_alike(void)
{
	int n = mode == EMPTY ? 0 : N, get = n > 0;
	void *mine = mode == IN_PLACE ? MPI_IN_PLACE : in;

	starts = 2;
	all_from(get);
	CALL(0, Allreduce, allreduce, ARGS(mine, out, n, MPI_INT, MPI_SUM));
	CALL(0, Allgather, allgather, ARGS(mine, n, MPI_INT, out, n, MPI_INT));
	CALL(0, Alltoall, alltoall, ARGS(mine, n, MPI_INT, out, n, MPI_INT));
	CALL(0, Reduce_scatter_block, reduce_scatter_block, ARGS(mine, out, n, MPI_INT, MPI_SUM));
	if (between) {
		starts = 1;
		return;
	}
	for (int i = 0; i < members; i++)
		from[i] = get && i < me;
	CALL(0, Scan, scan, ARGS(mine, out, n, MPI_INT, MPI_SUM));
	CALL(0, Exscan, exscan, ARGS(mine, out, n, MPI_INT, MPI_SUM));
	starts = 1;
}

static void rooted(void)
{
	int n = mode == EMPTY ? 0 : N, to = root_argument(), far = !between || side == 1;
	void *mine = mode == IN_PLACE && is_root() ? MPI_IN_PLACE : in,
	     *room = mode == IN_PLACE && is_root() ? MPI_IN_PLACE : out;

	for (int i = 0; i < members; i++)
		from[i] = n && far && i == root;
	if (mode != IN_PLACE)
		CALL(0, Bcast, bcast, ARGS(in, n, MPI_INT, to));
	CALL(0, Scatter, scatter, ARGS(in, n, MPI_INT, room, n, MPI_INT, to));
	all_from(n && is_root());
	CALL(0, Reduce, reduce, ARGS(mine, out, n, MPI_INT, MPI_SUM, to));
	CALL(0, Gather, gather, ARGS(mine, n, MPI_INT, out, n, MPI_INT, to));
}

static void rooted_by_counts(void)
{
	int to = root_argument(), far = !between || side == 1;
	void *mine = mode == IN_PLACE && is_root() ? MPI_IN_PLACE : in,
	     *room = mode == IN_PLACE && is_root() ? MPI_IN_PLACE : out;

	for (int i = 0; i < members; i++) {
		counts[i] = share(i);
		from[i] = far && i == root && share(me);
	}
	CALL(0, Scatterv, scatterv,
	     ARGS(in, counts, places, MPI_INT, room, share(me), MPI_INT, to));
	for (int i = 0; i < members; i++)
		from[i] = is_root() && share(i);
	CALL(0, Gatherv, gatherv, ARGS(mine, share(me), MPI_INT, out, counts, places, MPI_INT, to));
}

static void by_counts(void)
{
	void *mine = mode == IN_PLACE ? MPI_IN_PLACE : in;

	for (int i = 0; i < members; i++)
		from[i] = counts[i] = share(i);
	CALL(0, Allgatherv, allgatherv,
	     ARGS(mine, share(me), MPI_INT, out, counts, places, MPI_INT));
	all_from(share(me));
	CALL(0, Reduce_scatter, reduce_scatter, ARGS(mine, out, counts, MPI_INT, MPI_SUM));
	for (int i = 0; i < members; i++) {
		counts[i] = amount(me, i);
		from[i] = recounts[i] = amount(i, me);
	}
	CALL(0, Alltoallv, alltoallv,
	     ARGS(mine, counts, places, MPI_INT, out, recounts, places, MPI_INT));
	CALL(0, Alltoallw, alltoallw,
	     ARGS(mine, counts, bytes_places, types, out, recounts, bytes_places, types));
}

/* `sources`, `targets`: ranks; what is sent to the i-th is amount(me, target). */
static void neighbors(int in_degree, const int *sources, int out_degree, const int *targets)
{
	static MPI_Aint far_places[MOST];
	int n = mode == EMPTY ? 0 : N;

	all_from(0);
	for (int i = 0; i < in_degree; i++)
		if (sources[i] >= 0)
			from[sources[i]] = n;
	CALL(0, Neighbor_allgather, neighbor_allgather, ARGS(in, n, MPI_INT, out, n, MPI_INT));
	CALL(0, Neighbor_alltoall, neighbor_alltoall, ARGS(in, n, MPI_INT, out, n, MPI_INT));
	all_from(0);
	for (int i = 0; i < in_degree; i++) {
		recounts[i] = sources[i] < 0 ? 0 : share(sources[i]);
		if (sources[i] >= 0)
			from[sources[i]] = recounts[i];
	}
	CALL(0, Neighbor_allgatherv, neighbor_allgatherv,
	     ARGS(in, share(me), MPI_INT, out, recounts, places, MPI_INT));
	all_from(0);
	for (int i = 0; i < in_degree; i++) {
		recounts[i] = sources[i] < 0 ? 0 : amount(sources[i], me);
		if (sources[i] >= 0)
			from[sources[i]] = recounts[i];
	}
	for (int i = 0; i < out_degree; i++)
		counts[i] = targets[i] < 0 ? 0 : amount(me, targets[i]);
	for (int i = 0; i < MOST; i++)
		far_places[i] = bytes_places[i];
	CALL(0, Neighbor_alltoallv, neighbor_alltoallv,
	     ARGS(in, counts, places, MPI_INT, out, recounts, places, MPI_INT));
	CALL(0, Neighbor_alltoallw, neighbor_alltoallw,
	     ARGS(in, counts, far_places, types, out, recounts, far_places, types));
}

static void topologies(void)
{
	int n = size, wrap = 0, next = (rank + 1) % size, before = (rank + size - 1) % size,
	    pair[2] = { before, next };
	int line[2] = { rank ? rank - 1 : -1, rank + 1 < size ? rank + 1 : -1 }, index[MOST],
	    edges[2 * MOST], one = 1;
	MPI_Comm world = comm;

	MPI_Cart_create(world, 1, &n, &wrap, 0, &comm);
	neighbors(2, line, 2, line);
	MPI_Comm_free(&comm);
	MPI_Dist_graph_create_adjacent(world, 1, &before, &one, 1, &next, &one, MPI_INFO_NULL, 0,
				       &comm);
	neighbors(1, &before, 1, &next);
	MPI_Comm_free(&comm);
	for (int i = 0; i < size; i++) {
		index[i] = 2 * (i + 1);
		edges[2 * i] = (i + size - 1) % size;
		edges[2 * i + 1] = (i + 1) % size;
	}
	MPI_Graph_create(world, size, index, edges, 0, &comm);
	neighbors(2, pair, 2, pair);
	MPI_Comm_free(&comm);
	comm = world;
}

static void one_group(MPI_Comm of, int key)
{
	between = side = root = 0;
	comm = of;
	MPI_Comm_size(comm, &members);
	MPI_Comm_rank(comm, &me);
	MPI_Allgather(&rank, 1, MPI_INT, world_of, 1, MPI_INT, comm);
	need("MPI_Allgather", 1);
	root = key;
}

static void two_groups(MPI_Comm of, MPI_Comm half)
{
	between = 1;
	side = rank % 2;
	comm = of;
	root = 1;
	MPI_Comm_rank(half, &me);
	MPI_Comm_remote_size(comm, &members);
	for (int i = 0; i < members; i++)
		world_of[i] = 2 * i + !side;
}

#if MPI_VERSION >= 4
/* Large counts. */
static void large(void)
{
	MPI_Count many[MOST], few[MOST];
	MPI_Aint far_places[MOST];

	for (int i = 0; i < members; i++) {
		many[i] = amount(me, i);
		few[i] = share(i);
		far_places[i] = places[i];
		from[i] = amount(i, me);
	}
	turn++;
	nap();
	MPI_Alltoallv_c(in, many, far_places, MPI_INT, out, many, far_places, MPI_INT, comm);
	need("MPI_Alltoallv", 0);
	all_from(share(me));
	turn++;
	nap();
	MPI_Reduce_scatter_c(in, out, few, MPI_INT, MPI_SUM, comm);
	need("MPI_Reduce_scatter", 0);
	for (int i = 0; i < members; i++)
		from[i] = mode != EMPTY && i == root;
	turn++;
	nap();
	MPI_Bcast_c(in, mode == EMPTY ? 0 : N, MPI_INT, root, comm);
	need("MPI_Bcast", 0);
}
#endif

int main(int argc, char **argv)
{
	MPI_Comm half, other, backwards;

	begin(&argc, &argv, argv[1]);
	setvbuf(said, NULL, _IOLBF, 0); /* where it went wrong, if it did */
	for (int i = 0; i < MOST; i++) {
		places[i] = N * i;
		bytes_places[i] = N * i * (int)sizeof(int);
		types[i] = MPI_INT;
	}
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
	MPI_Comm_set_name(backwards, "back wards");
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 7, &other);
	for (int f = 0; f < (MPI_VERSION >= 4 ? FORMS : PERSISTENT); f++) {
		form = (enum form)f;
		for (int m = 0; m < MODES; m++) {
			mode = (enum mode)m;
			meet();
			one_group(f == NONBLOCKING ? backwards : MPI_COMM_WORLD, m % size);
			if (m == FULL)
				CALL(1, Barrier, barrier, );
			if (m == FULL || m == EMPTY || m == IN_PLACE) {
				all_alike();
				rooted();
			}
			rooted_by_counts();
			by_counts();
#if MPI_VERSION >= 4
			if (m != IN_PLACE && f == BLOCKING)
				large();
#endif
			one_group(MPI_COMM_WORLD, 0);
			if (m != IN_PLACE) {
				topologies();
				if (form == PERSISTENT) /* between groups MPICH 4.0 fails */
					continue;
				two_groups(other, half);
				if (m == FULL || m == EMPTY) {
					all_alike();
					rooted();
				}
				rooted_by_counts();
				by_counts();
			}
		}
	}
	meet();
	MPI_Comm_free(&other);
	MPI_Comm_free(&half);
	MPI_Comm_free(&backwards);
	return end();
}
