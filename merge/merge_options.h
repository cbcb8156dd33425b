/*
 * The command line of xstrace-merge.
 */
#ifndef XM_MERGE_OPTIONS_H
#define XM_MERGE_OPTIONS_H

#include <stdbool.h>

#define XM_FAILED 125 /* exit status: nothing could be done */

struct xm_options {
	const char *output, *report; /* NULL: none */
	bool no_sync, perfetto, kineto;
	unsigned window_log; /* of .zst inputs */
	unsigned wait;	     /* seconds, for traces that are still being written */
};

/* optind is then that of the first input. 0: go on, else the exit status + 1. */
int xm_options_parse(int argc, char **argv, struct xm_options *options);

#endif
