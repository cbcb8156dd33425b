/*
 * The machine's devices, as Level Zero, OpenCL and CUDA tell of them. The loaders are opened at run
 * time: neither need be there.
 */
#ifndef XS_DEVICES_H
#define XS_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XS_FOUND_MAX 64u

struct xs_found {
	char name[256];
	const char *type;
	char pci[20];	    /* "0000:3a:00.0"; empty: not told */
	uint8_t uuid[16];   /* all 0: not told */
	int level_zero;	    /* its number among Level Zero's devices; -1: not one of them */
	int opencl;	    /* among OpenCL's, of all platforms */
	int cuda;	    /* among CUDA's */
	char platform[128]; /* of OpenCL */
	uint32_t tiles;	    /* 0: not divided, or not told */
	char engines[512];
	uint64_t memory; /* bytes */
	uint32_t clock;	 /* MHz */
};

struct xs_found_list {
	struct xs_found device[XS_FOUND_MAX];
	uint32_t count;
	const char *missing[3]; /* of those that tell nothing, why; NULL: they tell */
};

/*
 * Each adds its devices; one that the list has already, by its UUID or PCI address, gets the number
 * of the other API too.
 */
void xs_find_level_zero(struct xs_found_list *list);
void xs_find_opencl(struct xs_found_list *list);
void xs_find_cuda(struct xs_found_list *list);

/* Before anything else: drivers are to offer metrics. */
void xs_want_metrics(void);
/* Prints all groups of metrics. False: there are none, and a line has said why. */
bool xs_print_metrics(void);

/* One of a device's groups, which has so many metrics and can be queried, or sampled. */
typedef void xs_metric_group_t(void *data, const char *name, uint32_t metrics, bool query,
			       bool sampling);
/*
 * All groups of all devices (tell NULL: is there one?). NULL, or why there are none: Level Zero is
 * not there, or a driver does not tell.
 */
const char *xs_each_metric_group(xs_metric_group_t *tell, void *data);

/* Does CUDA's driver have a device? */
bool xs_has_cuda(void);
/* Prints CUDA's groups. False: there is no device of it. */
bool xs_print_cuda_metrics(void);
/* Does NVIDIA's driver keep its counters from all but root? */
bool xs_cuda_admin_only(void);

/*
 * Can a device count, or sample by time, all groups and programmable metrics that the text names
 * ("A,B") at once? NULL, or what is wrong with them.
 */
const char *xs_groups_problem(const char *groups, bool sampling, char *text, size_t size);
/*
 * Before a run with --metric-query (or, `sampling`, --metric-sampling): can the groups be measured
 * here? Says in a line what is wrong. 0, or the status to end with: what the user can mend.
 */
int xs_check_metrics(const char *option, const char *groups, bool sampling);

/* Does the device say one? */
bool xs_found_uuid(const uint8_t uuid[16]);
/*
 * The list's entry for a device, by UUID or PCI address; NULL: it is full. `number`: offset of the
 * member for its API, which tells nothing of it yet.
 */
struct xs_found *xs_found_entry(struct xs_found_list *list, const uint8_t uuid[16], const char *pci,
				size_t number);

#endif
