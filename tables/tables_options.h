/*
 * The command line of xstrace-tables.
 */
#ifndef XT_TABLES_OPTIONS_H
#define XT_TABLES_OPTIONS_H

#include <stddef.h>

#define XT_IN_PART 1 /* exit status: something of the trace is in no table, and was said */
#define XT_FAILED  125

struct xt_options {
	const char *trace, *output;
	size_t memory; /* bytes */
	unsigned threads, window_log;
	int progress; /* descriptor; -1: none */
};

/* 0: go on; else 1 more than the exit status. */
int xt_options_parse(int argc, char **argv, struct xt_options *options);

#endif
