/*
 * --on-demand: what a request for a trace says, as Kineto's configuration does.
 */
#ifndef XS_DEMAND_CONFIG_H
#define XS_DEMAND_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XS_DEMAND_ID 128u

struct xs_demand_config {
	char log_file[PATH_MAX]; /* as given; empty: not given */
	char trace_id[XS_DEMAND_ID];
	uint64_t duration;	   /* ns */
	uint64_t start_time;	   /* ms since 1970; 0: at once */
	uint64_t iterations;	   /* 0: by duration */
	int64_t start_iteration;   /* -1: by time */
	uint64_t roundup;	   /* 0: none */
	uint64_t types;		   /* a bit for each type of activity; 0: all */
	uint64_t interval;	   /* ns between two questions; UINT64_MAX: not given */
	bool enabled;		   /* is anything to be traced? */
	bool fabric, fabric_given; /* is the daemon to be asked? */
};

/*
 * Reads text of that length, which may hold anything. False: it is no configuration, and `error`
 * says why in a few words.
 */
bool xs_demand_parse(struct xs_demand_config *config, const char *text, size_t length, char *error,
		     size_t error_size);

/*
 * The path of process `pid`'s trace, of PATH_MAX bytes: as Kineto makes it of the log file. False:
 * the log file is not where traces on demand may be, and the path is the usual one.
 */
bool xs_demand_path(const struct xs_demand_config *config, int32_t pid, char *path);

#endif
