#include "rank.h"

#include <stddef.h>
#include <string.h>

/* -1: not there, or no number. */
static int32_t number_in(char *const *environment, const char *variable)
{
	size_t n = variable ? strlen(variable) : 0;
	const char *value = NULL;
	int64_t number = 0;

	for (; n && *environment && !value; environment++)
		if (!strncmp(*environment, variable, n) && (*environment)[n] == '=')
			value = *environment + n + 1;
	if (!value || !value[0])
		return -1;
	for (; *value >= '0' && *value <= '9' && number <= INT32_MAX; value++)
		number = 10 * number + *value - '0';
	return *value || number > INT32_MAX ? -1 : (int32_t)number;
}

bool xs_job_rank(char *const *environment, int32_t *ret_rank, int32_t *ret_size)
{
	/* the innermost launcher first: mpiexec within a job of Slurm */
	static const struct {
		const char *rank, *size;
	} launchers[] = {
		{ "PMI_RANK", "PMI_SIZE" },
		{ "PMIX_RANK", "OMPI_COMM_WORLD_SIZE" },
		{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		{ "SLURM_PROCID", "SLURM_NTASKS" },
		{ "PALS_RANKID", NULL },
		{ "RANK", "WORLD_SIZE" }, /* torchrun */
	};

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		int32_t rank = number_in(environment, launchers[i].rank),
			size = number_in(environment, launchers[i].size);

		if (rank < 0)
			continue;
		*ret_rank = rank;
		*ret_size = size > rank ? size : 0;
		return true;
	}
	return false;
}

int32_t xs_local_rank(char *const *environment)
{
	static const char *const names[] = { "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK",
					     "SLURM_LOCALID", "PALS_LOCAL_RANKID", "LOCAL_RANK" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (number_in(environment, names[i]) >= 0)
			return number_in(environment, names[i]);
	return 0;
}
