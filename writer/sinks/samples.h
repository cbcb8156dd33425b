/*
 * What devices were sampled (--metric-sampling, --stall-sampling), and which kernels ran meanwhile:
 * of all processes of the run, until the sampling process is complete. Both lie in files without
 * names, so that memory does not grow with them.
 */
#ifndef XS_SAMPLES_H
#define XS_SAMPLES_H

#include <stdio.h>

#include "device_record.h"
#include "metric_text.h"
#include "sink.h"

/* A kernel that ran, in the file of its device. */
struct xs_sampled_kernel {
	/* of the device's clock, of CUDA: ns of the trace; of ticks `bits` are known */
	uint64_t ticks, length;
	uint64_t ns;   /* of the trace, when it began */
	uint64_t name; /* offset in the file of names */
	uint32_t id, bits;
};

/* A sample, in the file of its device; as many values follow as the device has columns. */
struct xs_sample {
	uint64_t ticks, part; /* as above */
	uint64_t value[];
};

/* Where a kernel lies. */
struct xs_place {
	uint64_t address, bytes;
	uint32_t name;	/* string id */
	uint8_t source; /* enum xs_source */
	bool unwanted;	/* by the kernels that were chosen */
};

struct xs_stalls;

/* A group of metrics that a device samples. */
struct xs_sampled_group {
	FILE *samples; /* NULL: there are none */
	uint64_t sample_count;
	/* of the first sample, and how fast the clock is */
	uint64_t ticks, ns, frequency;
	uint32_t columns, count;
	const char *names;
	size_t names_length;
	uint8_t type[XS_METRICS_MAX];
	bool parts; /* more than one */
};

struct xs_sampled_device {
	struct xs_text name, bus;
	uint64_t uuid[2]; /* of CUDA's; both 0: not known */
	uint32_t number;  /* as the sampling process, or whoever came first, counts them */
	FILE *kernels;	  /* NULL: there are none */
	uint64_t kernel_count;
	struct xs_sampled_group group[XS_GROUPS_MAX]; /* in the order of their columns' ids */
	uint32_t group_count;
	uint64_t odd;		  /* samples that are like none of these */
	struct xs_stalls *stalls; /* --stall-sampling; NULL: there are none */
};

struct xs_samples {
	struct xs_sampled_device device[XS_DEVICES];
	uint32_t device_count;
	FILE *names; /* of kernels, each with a '\0' */
	uint64_t names_length;
	struct {
		uint64_t hash, offset;
	} recent[4096]; /* names that were written not long ago */
	bool told;
};

/* Nobody has asked for them, or they are written. */
void xs_samples_free(struct xs_run *run);

/* ---- stalls.c ---- */

/* False: there is no memory. */
bool xs_stalls_place(struct xs_sampled_device *device, const struct xs_place *place);
/* Adds what was counted at an address. */
bool xs_stalls_add(struct xs_sampled_device *device, const struct xs_metrics *sample);
/* Is there an instruction of a kernel that was met? */
bool xs_stalls_some(const struct xs_sampled_device *device);
void xs_stalls_put(struct xs_process *process, const struct xs_sampled_device *device,
		   struct xs_output *out);
void xs_stalls_free(struct xs_sampled_device *device);

/* ---- samples_join.c ---- */

/* The first `size` bytes of the file, to be changed; NULL: it has not as many. */
void *xs_samples_map(FILE *file, size_t size);
/*
 * By the first two words of each, in place, however many there are; mostly they are in order.
 */
void xs_samples_sort(void *array, size_t count, size_t size);

/* Writes the files of the sampling process. True: there was something to write. */
bool xs_samples_write(struct xs_process *process, struct xs_samples *samples);

#endif
