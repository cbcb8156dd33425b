/*
 * CUDA's driver and CUPTI, as far as xstrace-metrics needs them.
 */
#ifndef XS_SAMPLER_CUPTI_H
#define XS_SAMPLER_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

#include "pm_sampling_abi.h"

struct xs_cuda_driver {
	int (*init)(unsigned);
	int (*count)(int *);
	int (*get)(int *, int);
	int (*name)(char *, int, int);
	int (*uuid)(void *, int); /* 16 bytes; may be NULL */
};
extern struct xs_cuda_driver xs_cuda_driver;

struct xs_pm {
#define XS_PM_HOST_MEMBER(name, type)		       int (*name)(struct type *);
#define XS_PM_MEMBER(name, type, last, theirs, member) int (*name)(struct type *);
	XS_PM_HOST_CALLS(XS_PM_HOST_MEMBER)
	XS_PM_CALLS(XS_PM_MEMBER)
#undef XS_PM_HOST_MEMBER
#undef XS_PM_MEMBER
	int (*get_timestamp)(uint64_t *); /* may be NULL */
};
extern struct xs_pm xs_pm;

/* How many devices CUDA's driver has; 0: or there is none. */
uint32_t xs_cuda_devices(void);
/*
 * Opens a libcupti that goes with the driver, and has it use that clock. NULL, or why none can be
 * used.
 */
const char *xs_pm_library(uint64_t (*clock)(void));
/* What went wrong in a call, for a line. */
const char *xs_pm_why(int result, const char *otherwise);

#endif
