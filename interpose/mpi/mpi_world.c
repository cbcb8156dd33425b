/*
 * What the MPI library says: who this process is in MPI_COMM_WORLD, and who the members of a
 * communicator are there.
 */
#include "mpi_comms.h"
#include "mpi_record.h"

static int (*initialized)(int *flag), (*finalized)(int *flag);
static int (*comm_rank)(xs_word comm, int *rank), (*comm_size)(xs_word comm, int *size),
	(*comm_test_inter)(xs_word comm, int *flag);
static int (*group_of[XS_MPI_GROUP_FILE + 1])(xs_word handle, void *group);
static int (*group_size)(xs_word group, int *size), (*group_free)(void *group);
static int (*group_rank)(xs_word group, int *rank),
	(*group_of_set)(xs_word session, const char *name, void *group);
static int (*translate_ranks)(xs_word group, int n, const int *ranks, xs_word to, int *result);

struct xs_mpi_comm xs_mpi_world_comm = { .id = XS_MPI_WORLD },
		   xs_mpi_self_comm = { .id = XS_MPI_SELF };
uint64_t xs_mpi_world;
static int32_t self_rank[1];
static uint64_t world_group;

static void free_group(uint64_t group)
{
	int32_t narrow = (int32_t)group;

	(void)group_free(xs_mpi_abi.int_handles ? (void *)&narrow : (void *)&group);
}

int32_t xs_mpi_members(uint64_t handle, enum xs_mpi_group which, int32_t **ret_ranks)
{
	uint64_t group = 0;
	int32_t count = -1, *ranks = NULL, *own;

	*ret_ranks = NULL;
	if (!group_of[which] || group_of[which]((xs_word)handle, &group))
		return -1;
	group = xs_mpi_load(&group);
	if (group_size((xs_word)group, &count) || count < 0)
		count = -1;
	if (count > 0) {
		ranks = xs_mpi_take((size_t)count * sizeof(*ranks));
		own = xs_mpi_take((size_t)count * sizeof(*own));
		for (int32_t i = 0; own && i < count; i++)
			own[i] = i;
		if (!ranks || !own ||
		    translate_ranks((xs_word)group, count, own, (xs_word)world_group, ranks)) {
			xs_mpi_give(ranks, (size_t)count * sizeof(*ranks));
			ranks = NULL;
			count = -1;
		}
		for (int32_t i = 0; ranks && i < count; i++)
			if (ranks[i] < 0)
				ranks[i] = XS_MPI_NOTHING;
		xs_mpi_give(own, own ? (size_t)count * sizeof(*own) : 0);
	}
	free_group(group);
	*ret_ranks = ranks;
	return count;
}

void xs_mpi_comms_find(void)
{
	static const struct {
		const char *name;
		void **place;
	} wanted[] = {
		{ "PMPI_Initialized", (void **)&initialized },
		{ "PMPI_Finalized", (void **)&finalized },
		{ "PMPI_Comm_rank", (void **)&comm_rank },
		{ "PMPI_Comm_size", (void **)&comm_size },
		{ "PMPI_Comm_test_inter", (void **)&comm_test_inter },
		{ "PMPI_Comm_group", (void **)&group_of[XS_MPI_GROUP_OWN] },
		{ "PMPI_Comm_remote_group", (void **)&group_of[XS_MPI_GROUP_REMOTE] },
		{ "PMPI_Win_get_group", (void **)&group_of[XS_MPI_GROUP_WIN] },
		{ "PMPI_File_get_group", (void **)&group_of[XS_MPI_GROUP_FILE] },
		{ "PMPI_Group_size", (void **)&group_size },
		{ "PMPI_Group_free", (void **)&group_free },
		{ "PMPI_Group_translate_ranks", (void **)&translate_ranks },
		{ "PMPI_Group_rank", (void **)&group_rank },
		{ "PMPI_Group_from_session_pset", (void **)&group_of_set },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		*wanted[i].place = xs_mpi_find_in(wanted[i].name);
	xs_mpi_topology_find();
}

static bool complete(void)
{
	return initialized && finalized && comm_rank && comm_size && comm_test_inter &&
	       group_of[XS_MPI_GROUP_OWN] && group_of[XS_MPI_GROUP_REMOTE] && group_size &&
	       group_free && translate_ranks;
}

void xs_mpi_begin(void)
{
	int yes = 0, over = 1, rank, size;
	uint64_t group = 0;

	if (xs_mpi_world || !complete() || initialized(&yes) || !yes || finalized(&over) || over)
		return;
	/*
	 * no lock is held while the library is asked; of threads that are here together the group
	 * of one counts
	 */
	if (comm_rank((xs_word)xs_mpi_abi.world, &rank) ||
	    comm_size((xs_word)xs_mpi_abi.world, &size) ||
	    group_of[XS_MPI_GROUP_OWN]((xs_word)xs_mpi_abi.world, &group))
		return;
	xs_lock_robust(&xs_mpi_comms_lock);
	if (!xs_mpi_world) {
		world_group = xs_mpi_load(&group);
		xs_mpi_world_comm.count = xs_mpi_world_comm.local = size;
		xs_mpi_world_comm.rank = self_rank[0] = rank;
		xs_mpi_world_comm.handle = xs_mpi_abi.world;
		xs_mpi_self_comm.handle = xs_mpi_abi.self;
		xs_mpi_self_comm.ranks = self_rank;
		xs_mpi_self_comm.count = xs_mpi_self_comm.local = 1;
		xs_companion_rank(rank, size);
		xs_mpi_world = xs_mpi_abi.world;
	}
	xs_unlock(&xs_mpi_comms_lock);
}

void xs_mpi_begin_session(uint64_t session)
{
	uint64_t group = 0;
	int rank, size;

	xs_mpi_begin();
	if (xs_mpi_world || !complete() || !group_of_set || !group_rank ||
	    group_of_set((xs_word)session, "mpi://WORLD", &group))
		return;
	group = xs_mpi_load(&group);
	if (group_rank((xs_word)group, &rank) || group_size((xs_word)group, &size))
		return;
	xs_lock_robust(&xs_mpi_comms_lock);
	world_group = group;
	xs_mpi_world_comm.count = xs_mpi_world_comm.local = size;
	xs_mpi_world_comm.rank = rank;
	xs_companion_rank(rank, size);
	xs_mpi_world = xs_mpi_abi.world; /* no program names it before MPI_Init */
	xs_unlock(&xs_mpi_comms_lock);
}

bool xs_mpi_is_inter(uint64_t comm)
{
	int yes = 0;

	(void)comm_test_inter((xs_word)comm, &yes);
	return yes;
}

int32_t xs_mpi_own_rank(uint64_t comm)
{
	int rank = 0;

	(void)comm_rank((xs_word)comm, &rank);
	return rank;
}
