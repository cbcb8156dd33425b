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
/* The usual one. */
void xs_demand_usual_path(int32_t pid, char *path);

/* ---- demand_place.c ---- */

/* How much of the path is the directory in which traces may be; 0: it does not lie there. */
size_t xs_demand_base(const char *path);
/*
 * Does each directory between that and the file belong to this user or root, so that nobody else
 * can put another one into its place, or a link?
 */
bool xs_demand_is_safe(const char *path);
/* Is nothing there, or a trace of this user? */
bool xs_demand_may_replace(const char *path);

#endif
