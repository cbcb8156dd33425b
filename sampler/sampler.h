/*
 * xstrace-system: what the machine does while programs run, as counters of a trace.
 */
#ifndef XS_SAMPLER_H
#define XS_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XS_SOURCES_MAX	   1024u
#define XS_SOURCE_COUNTERS 3u
#define XS_COUNTER_NAME	   128u
#define XS_GPU_NAME	   80u

#define XS_MS 1000000u /* in ns */

/* A GPU whose library tells of it. */
struct xs_gpu {
	char name[XS_GPU_NAME]; /* what the names of its counters begin with: name, PCI address */
	char denied[96];	/* what this user may not read */
	uint64_t failed;	/* hashes of what a line has told of as not readable any more */
	bool gone;		/* lost: nobody asks it any more */
};

/* What is to be looked at again and again. */
struct xs_source {
	/* ns: by CLOCK_MONOTONIC, as in the last look `before`, 0: the first one */
	void (*look)(struct xs_source *source, uint64_t ns, uint64_t before);
	uint64_t every, last; /* ns between two looks, at least; when it was looked at */
	int fd[2];	      /* that are read anew from their beginnings; -1: there is none */
	struct xs_gpu *gpu;   /* NULL: the host's */
	void *handle;	      /* of its library */
	const char *what;     /* it is, of a GPU: "power" */
	bool off;	      /* it is not there any more */
	char name[XS_SOURCE_COUNTERS][XS_COUNTER_NAME];
	/* the last values; they begin again at `wraps`, 0: never */
	uint64_t seen[XS_SOURCE_COUNTERS], wraps;
	uint64_t own;	  /* time of these, by the clock of who gave them, in a unit of its own */
	uint64_t sum;	  /* of an energy counter: what it has risen by since the first look */
	double scale;	  /* of a value; of a rate: of a unit of it in a unit of time */
	double per_joule; /* units of energy */
	double told[XS_SOURCE_COUNTERS]; /* what has not changed is not told again */
	bool was_told[XS_SOURCE_COUNTERS];
};

struct xs_sources {
	struct xs_source of[XS_SOURCES_MAX];
	uint32_t count;
	uint64_t interval; /* ns */
	const char *root;  /* in place of "/", for tests */
};

/* ---- source.c ---- */

/* One more; NULL: there are too many. */
struct xs_source *xs_source_new(struct xs_sources *sources, uint64_t every,
				void (*look)(struct xs_source *, uint64_t, uint64_t));
/* One more, or NULL where there are too many or the file, relative to the root, cannot be read. */
struct xs_source *xs_source_add(struct xs_sources *sources, const char *path, uint64_t every,
				void (*look)(struct xs_source *, uint64_t, uint64_t));
/* The text of that file of the source, with '\0'; the length, 0: it cannot be read any more. */
size_t xs_source_read(const struct xs_source *source, int which, char *text, size_t size);
/* Opens a file relative to the root; the descriptor, or -1 with errno. */
int xs_sources_open(const struct xs_sources *sources, const char *path);
/* The value of the source's counter is this one now. */
void xs_source_tell(struct xs_source *source, int which, double value);
/*
 * What a counter has risen by since it was seen, as `which` of the source, by time; tells it. The
 * times have any unit; `before` 0: this is the first look. Returns by how much, 0: unknown.
 */
uint64_t xs_source_tell_rate(struct xs_source *source, int which, uint64_t value, uint64_t time,
			     uint64_t before);
/* The same for energy: counter 0 is the power, counter 1 the energy since the first look. */
void xs_source_tell_energy(struct xs_source *source, uint64_t energy, uint64_t time,
			   uint64_t before);

/* ---- gpu.c ---- */

/* As the device is called in the traces of programs that use it. pci: domain, bus, device,
 * function. */
void xs_gpu_name(struct xs_gpu *gpu, const char *name, const uint32_t pci[4]);
/* One more source of the GPU; `what` lives on. */
struct xs_source *xs_gpu_source(struct xs_sources *sources, struct xs_gpu *gpu, const char *what,
				void *handle, uint64_t every,
				void (*look)(struct xs_source *, uint64_t, uint64_t));
/* Its counter's name: the GPU's, and what the format says. */
void xs_gpu_counter(struct xs_source *source, int which, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Energy that the GPU counts, at its own time in us. It may count in large steps. */
void xs_gpu_energy(struct xs_source *source, uint64_t energy, uint64_t us);
/* Rates of up to so many values, which the GPU has counted at its own time in us. */
void xs_gpu_rates(struct xs_source *source, const uint64_t *values, int count, uint64_t us);
/* For each reason that has come or gone a counter is told: names[bit], NULL: it has none. */
void xs_gpu_reasons(struct xs_source *source, int which, uint64_t reasons, const char *const *names,
		    uint32_t count);

enum xs_gpu_fault {
	XS_GPU_LATER,	/* there is no value just now */
	XS_GPU_MISSING, /* it does not have this */
	XS_GPU_DENIED,
	XS_GPU_LOST,
	XS_GPU_FAILED,
};
/* The function did not tell the source's value. Each thing is told once. */
void xs_gpu_fault(struct xs_source *source, enum xs_gpu_fault fault, const char *function,
		  uint32_t result);
/* The GPU's first looks are over: one line says what this user may not read. */
void xs_gpu_added(const struct xs_gpu *gpu, const char *how);

/* ---- host.c, uncore.c, level_zero.c, nvml.c ---- */

/* Processors, memory, network, energy. */
void xs_host_add(struct xs_sources *sources);
/* Memory controllers. */
void xs_uncore_add(struct xs_sources *sources);
/* GPUs. Their libraries are opened here: where there is none, there are no GPUs. */
void xs_level_zero_add(struct xs_sources *sources);
void xs_nvml_add(struct xs_sources *sources);

#endif
