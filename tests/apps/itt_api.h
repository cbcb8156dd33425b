/*
 * Scenarios of itt_api: each drives a few entry points of docs/ITT.md with known values, in a
 * domain of the scenario's own name, and says what only it knows in lines "fact: <key> <value>".
 * What the trace must hold is in tests/test_itt_api.py, beside the checks.
 */
#ifndef XSTRACE_TESTS_ITT_API_H
#define XSTRACE_TESTS_ITT_API_H

#include "app.h"

/* Long enough to be seen in a slice's duration, whatever the machine does meanwhile. */
#define STEP_MS 2

struct scenario {
	const char *name;
	void (*run)(void);
	bool alone; /* changes the whole process: not part of "all" */
};

extern const struct scenario api_spans[], api_data[], api_other[], api_legacy[];

#define fact(key, format, ...) printf("fact: " key " " format "\n", __VA_ARGS__)

static inline void step(void)
{
	sleep_ms(STEP_MS);
}

/* Runs it on another thread, to the end. */
static inline void elsewhere(void *(*body)(void *), void *arg)
{
	pthread_join(start_thread(body, arg), NULL);
}

#endif
