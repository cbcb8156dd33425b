/*
 * The table of APIs: all that the drain process must know of one, a row for each enum xs_source. No
 * other file asks which API a record came from.
 */
#ifndef XS_BACKENDS_H
#define XS_BACKENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device_record.h"

struct xs_api;
struct xs_device_record;
struct xs_named;
struct xs_process;
struct xs_function;

/* The columns of a backend's tables in reports, in characters, as unitrace has them. */
struct xs_layout {
	int calls, time, host_percent, device_percent, decimals;
	const char *queued; /* what the time between the call and the submission is called */
};

struct xs_backend {
	/* in names of tracks and in rows of JSON and CSV; NULL: the source names no functions */
	const char *label;
	/* reports: a table for each enum xs_device_type, with this title; all NULL: one table */
	const char *by_type[4];
	const char *const *names; /* of its functions, by number */
	/* functions beyond name_count are called as the string says that has the rest as its id */
	bool interned;
	/* its calls are recorded only if an option asks for them alone: they are in any trace */
	bool asked;
	const uint32_t *name_count;
	const struct xs_api *arguments; /* how -c shows its calls; NULL: it does not */
	const char *memory;		/* a letter for each enum xs_memory */
	struct xs_layout layout;
	uint32_t call_type; /* what kind of activity its calls are (activity_types.h) */
	uint8_t cost;	    /* enum xs_cost_kind of a call (costs.h) */
	uint8_t arrows;	    /* from 1, to 3: its own ones, in ids of arrows to its device work */
	bool groups;	    /* a launch is shown by its work groups; else by its work items */
	bool demangled;	    /* kernels have C++ names, shown as written in any case */
	bool quoted;	    /* kernels' names stand in quotes in text reports */
	bool numbered;	    /* several devices may have one name: its number is shown */
	bool detailed;	    /* -t shows shapes and sizes without -v, too */
	/* device tracks are engines, each of which serves several queues; else they are queues */
	bool engines;
	/* queues are streams: queue_handle is the context's number << 32 | the stream's */
	bool streams;
	/* what the program calls that on which the work ran, by now; NULL: it cannot say */
	struct xs_named (*named)(const struct xs_process *process,
				 const struct xs_device_record *record);
};

/* Never NULL: what a record names may be any number. */
const struct xs_backend *xs_backend_of(uint8_t source);

/* How a function of it is shown; NULL: no such function. *ret_api may be NULL. */
const struct xs_function *xs_function_of(uint8_t source, uint32_t function,
					 const struct xs_api **ret_api);

/*
 * Reports have a table for each group: a backend, or its devices of one type. Groups are numbered
 * in the order of the report: enum xs_source, then enum xs_device_type.
 */
#define XS_GROUPS (XS_SOURCE_COUNT * 4u)
size_t xs_group_of(uint8_t source, uint8_t type);
const struct xs_backend *xs_group_backend(size_t group);
const char *xs_group_title(size_t group);

#endif
