/*
 * What every traced program shares: a clock, a way to give up, threads, and how results are said.
 *
 * A program says what its trace must hold in lines that a test reads:
 *
 *	expected: <n> <kind>[ <name>]	exactly n; a line without a name is the total of its kind
 *	atleast:  <n> <kind>[ <name>]	how a run ends decides the rest
 *	atmost:   <n> <kind>[ <name>]
 *	process:  <pid>			the lines up to the next "process:" are about this process
 *
 * Kinds: tasks (finished ITT tasks, name "domain::task"), open (tasks never ended), threads (that
 * traced), and the device's: kernels, reads, writes, copies, fills, maps, unmaps, markers,
 * barriers, migrations, and commands for all of them together.
 */
#ifndef XSTRACE_TESTS_APP_H
#define XSTRACE_TESTS_APP_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* 99 is no status that a program here ends with on purpose */
static inline _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	_exit(99);
}

static inline pthread_t start_thread(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, body, arg);
	if (errno)
		die("pthread_create");
	return thread;
}

#endif
