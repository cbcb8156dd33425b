/*
 * What libxstrace.so offers to libxstrace-api (inside.c), and what that does where there is none
 * (nothing.c): the functions of include/xstrace/xstrace.h that record.
 */
#ifndef XS_LIBRARY_H
#define XS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XS_LIBRARY_VERSION 2u

struct xstrace_name;

/* An activity of the program's own, ready to be written. */
struct xs_own_activity {
	uint64_t start, end; /* ns of CLOCK_MONOTONIC */
	int64_t device, resource;
	uint64_t correlation;
	const char *name, *row; /* row: what its track is called; compared by address first */
	uint32_t name_length, type;
	/* metadata: texts, key after value after key, each with its NUL */
	const char *metadata;
	uint32_t metadata_count; /* pairs */
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
	void (*activities)(const struct xs_own_activity *activities, size_t count);
	/* key, text: the latter of any length */
	void (*about)(const char *key, const char *text, bool json);
};

/* Where nothing is traced. */
extern const struct xs_library xs_library_nothing;

#endif
