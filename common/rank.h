/*
 * Which rank of a job a process is, as far as the job's launcher has said it in the environment.
 */
#ifndef XS_RANK_H
#define XS_RANK_H

#include <stdbool.h>
#include <stdint.h>

/* The variables that are looked at, for messages. */
#define XS_RANK_VARIABLES \
	"PMI_RANK, PMIX_RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID, PALS_RANKID, RANK"

/*
 * environment: as environ. size: how many ranks there are; 0: not said. False: no rank.
 */
bool xs_job_rank(char *const *environment, int32_t *ret_rank, int32_t *ret_size);
/* Among the ranks of this machine; 0, too, if that is not said. */
int32_t xs_local_rank(char *const *environment);

#endif
