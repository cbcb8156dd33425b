/*
 * Who a communicator's neighbours are, as the library says it: asked once for each communicator.
 */
#include "mpi_comms.h"

struct xs_mpi_topology {
	int32_t sources, targets; /* how many; sources < 0: not known */
	int32_t source[];	  /* ranks of the communicator; below 0: nobody */
};

static int (*topo_test)(xs_word comm, int *kind),
	(*graph_count)(xs_word comm, int *in, int *out, int *weighted);
static int (*graph_neighbors)(xs_word comm, int in, int *sources, int *in_weights, int out,
			      int *targets, int *out_weights);
static int (*cart_dim)(xs_word comm, int *dimensions),
	(*cart_shift)(xs_word comm, int dimension, int by, int *source, int *target);
static int (*neighbors_count)(xs_word comm, int rank, int *count),
	(*neighbors)(xs_word comm, int rank, int room, int *neighbors);

void xs_mpi_topology_find(void)
{
	static const struct {
		const char *name;
		void **place;
	} wanted[] = {
		{ "PMPI_Topo_test", (void **)&topo_test },
		{ "PMPI_Dist_graph_neighbors_count", (void **)&graph_count },
		{ "PMPI_Dist_graph_neighbors", (void **)&graph_neighbors },
		{ "PMPI_Graph_neighbors_count", (void **)&neighbors_count },
		{ "PMPI_Graph_neighbors", (void **)&neighbors },
		{ "PMPI_Cartdim_get", (void **)&cart_dim },
		{ "PMPI_Cart_shift", (void **)&cart_shift },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		*wanted[i].place = xs_mpi_find_in(wanted[i].name);
}

static size_t size_of(int32_t sources)
{
	return sizeof(struct xs_mpi_topology) +
	       (sources > 0 ? (size_t)sources : 0) * sizeof(int32_t);
}

void xs_mpi_topology_free(struct xs_mpi_comm *comm)
{
	struct xs_mpi_topology *topology =
		atomic_load_explicit(&comm->topology, memory_order_acquire);

	if (topology)
		xs_mpi_give(topology, size_of(topology->sources));
}

static struct xs_mpi_topology *make(int32_t sources, int32_t targets)
{
	struct xs_mpi_topology *topology = xs_mpi_take(size_of(sources));

	if (topology)
		*topology = (struct xs_mpi_topology){ .sources = sources, .targets = targets };
	return topology;
}

static struct xs_mpi_topology *ask_cart(xs_word handle)
{
	struct xs_mpi_topology *topology;
	int dimensions = 0, target;

	if (cart_dim(handle, &dimensions))
		return NULL;
	topology = make(2 * dimensions, 2 * dimensions);
	/* of each dimension the one before, then the one behind */
	for (int i = 0; topology && i < dimensions; i++)
		if (cart_shift(handle, i, 1, &topology->source[2 * i], &target))
			topology->source[2 * i] = topology->source[2 * i + 1] = -1;
		else
			topology->source[2 * i + 1] = target;
	return topology;
}

static struct xs_mpi_topology *ask_graph(xs_word handle, int rank)
{
	struct xs_mpi_topology *topology;
	int count = 0;

	if (neighbors_count(handle, rank, &count))
		return NULL;
	topology = make(count, count);
	if (topology && neighbors(handle, rank, count, topology->source))
		topology->sources = -1;
	return topology;
}

static struct xs_mpi_topology *ask_dist_graph(xs_word handle)
{
	struct xs_mpi_topology *topology;
	int in = 0, out = 0, weighted = 0, *rest;
	size_t bytes;

	if (graph_count(handle, &in, &out, &weighted))
		return NULL;
	topology = make(in, out);
	bytes = ((size_t)in + 2 * (size_t)out + 1) * sizeof(*rest);
	rest = topology ? xs_mpi_take(bytes) : NULL; /* weights and targets */
	if (topology && (!rest || graph_neighbors(handle, in, topology->source, rest, out,
						  rest + in, rest + in + out)))
		topology->sources = -1;
	if (rest)
		xs_mpi_give(rest, bytes);
	return topology;
}

static struct xs_mpi_topology *ask(const struct xs_mpi_comm *comm)
{
	xs_word handle = (xs_word)comm->handle;
	int kind;

	if (!comm->handle || !topo_test || !graph_count || !graph_neighbors || !cart_dim ||
	    !cart_shift || !neighbors_count || !neighbors || topo_test(handle, &kind))
		return NULL;
	/* the kinds' numbers differ between libraries */
	return kind == xs_mpi_abi.cart	       ? ask_cart(handle)
	       : kind == xs_mpi_abi.graph      ? ask_graph(handle, comm->rank)
	       : kind == xs_mpi_abi.dist_graph ? ask_dist_graph(handle)
					       : NULL;
}

static const struct xs_mpi_topology *topology_of(struct xs_mpi_comm *comm)
{
	struct xs_mpi_topology *topology =
		atomic_load_explicit(&comm->topology, memory_order_acquire);

	if (!topology) {
		topology = ask(comm);
		/* MPI allows one thread at a time here */
		atomic_store_explicit(&comm->topology, topology, memory_order_release);
	}
	return topology;
}

int32_t xs_mpi_neighbors(struct xs_mpi_comm *comm)
{
	const struct xs_mpi_topology *topology = topology_of(comm);

	return topology ? topology->targets : 0;
}

const int32_t *xs_mpi_sources(struct xs_mpi_comm *comm, int32_t *ret_count)
{
	const struct xs_mpi_topology *topology = topology_of(comm);

	if (!topology || topology->sources < 0)
		return NULL;
	*ret_count = topology->sources;
	return topology->source;
}

int32_t xs_mpi_ranks(const struct xs_mpi_comm *comm)
{
	return comm->count;
}

int32_t xs_mpi_local(const struct xs_mpi_comm *comm)
{
	return comm->local;
}
