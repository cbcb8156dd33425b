/*
 * What libxstrace.so offers to libxstrace-api (inside.c), and what that does where there is none
 * (nothing.c): the functions of include/xstrace/xstrace.h that record.
 */
#ifndef XS_LIBRARY_H
#define XS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XS_LIBRARY_VERSION 6u

struct xstrace_name;

/* A text of a list; `id` is the collector's, 0 at first. */
struct xs_own_text {
	const char *text;
	uint32_t length, id;
};

/* An activity of the program's own. */
struct xs_own_activity {
	uint64_t start, end; /* ns of the list's clock */
	int64_t device, resource;
	uint64_t correlation;
	uint32_t name; /* number in the list's names */
	uint16_t row;  /* in its rows: what its track is called */
	uint16_t type;
};

/*
 * What is known of an activity: `count` pairs, key after value after key, each with its NUL. Before
 * a value stands how it is to be read.
 */
enum xs_own_value { XS_OWN_TEXT = 't', XS_OWN_JSON = 'j' };

struct xs_own_metadata {
	char *text;
	uint32_t length, count;
};

struct xs_own_list {
	const struct xs_own_activity *activities;
	size_t count;
	struct xs_own_text *names, *rows;
	const struct xs_own_metadata *metadata; /* of the first metadata_count activities */
	size_t metadata_count;
	uint64_t clock; /* what its clock is ahead of CLOCK_MONOTONIC, ns */
};

/* A device that is sampled, as xstrace --device-list numbers it. */
struct xs_own_device {
	uint32_t number;
	const char *name;
	uint32_t bus[4]; /* domain, bus, device, function; all 0: not known */
	uint64_t frequency; /* 0: samples have times of the host */
	uint32_t bits;	    /* of its clock */
};

/* What a device has counted in a period of time. */
struct xs_own_sample {
	uint32_t device, name; /* number; id of the name */
	uint32_t columns;      /* id of what was counted */
	uint16_t count, part;
	uint64_t ticks; /* of the device's clock, when it began; of CUDA: ns of CLOCK_MONOTONIC */
	const uint64_t *uuid; /* of CUDA: two words; NULL: a device of Level Zero */
	const uint64_t *values;
	const uint8_t *types; /* enum xs_value_type */
};

struct xs_library {
	uint32_t version;
	void (*range_push)(const char *name);
	void (*range_push_name)(const struct xstrace_name *name);
	void (*range_pop)(void);
	void (*mark)(const char *name);
	void (*counter)(const char *name, double value);
	const struct xstrace_name *(*name)(const char *name);
	void *(*domain)(void);
	/*
	 * Where dynolog may ask for traces: how many steps have begun, with this one, once a trace
	 * that begins or ends with it has done that. Else 0.
	 */
	uint64_t (*count_step)(void);
	/* False: it is not recorded. */
	bool (*step)(const char *name);
	void (*step_end)(void);
	void (*external)(uint64_t id, uint64_t user_id);
	void (*thread_info)(void);
	void (*stop)(void); /* before recording ends: what backends still hold */
	void (*activities)(const struct xs_own_list *list);
	/* key, text: the latter of any length */
	void (*about)(const char *key, const char *text, bool json);
	/* for xstrace-metrics: ids of a device's name and of columns; 0: not recorded */
	uint32_t (*device)(const struct xs_own_device *device);
	uint32_t (*columns)(const char *text);
	/* Where the device's clock is: `read` gives its ticks. */
	void (*device_clock)(uint32_t number, bool (*read)(void *data, uint64_t *ret), void *data);
	void (*sample)(const struct xs_own_sample *sample);
	/* for xstrace-cpu: what the events of the mask have counted by now */
	void (*looked)(uint32_t events, const uint64_t *values);
};

/* Where nothing is traced. */
extern const struct xs_library xs_library_nothing;

#endif
