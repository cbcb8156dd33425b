/*
 * Test programs in C speak TAP, which Meson reads: tap_run() for each test function, CHECK()
 * inside, tap_done() at the end. Each test is a process of its own: one that crashes is one that
 * failed. With arguments (tap_main()) only tests whose names hold one of them are run.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned tap_count, tap_failures;
static char **tap_wanted;

/* One line about a failure, the first twenty of a test. */
#define CHECK(condition, ...) \
	((condition) ? true : tap_complain(__FILE__, __LINE__, #condition, "" __VA_ARGS__))

static bool __attribute__((format(printf, 4, 5), unused)) tap_complain(const char *file, int line,
								       const char *condition,
								       const char *format, ...)
{
	va_list args;

	if (tap_failures++ < 20) {
		printf("# %s:%d: %s: ", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line,
		       condition);
		va_start(args, format);
		(void)vprintf(format, args);
		va_end(args);
		printf("\n");
	}
	return false;
}

static bool tap_selected(const char *name)
{
	for (char **wanted = tap_wanted; wanted && *wanted; wanted++)
		if (strstr(name, *wanted))
			return true;
	return !tap_wanted || !*tap_wanted;
}

static inline void tap_run(const char *name, void (*test)(void))
{
	int status = -1;
	pid_t pid;

	if (!tap_selected(name))
		return;
	(void)fflush(stdout);
	pid = fork();
	if (!pid) {
		(void)prctl(PR_SET_PDEATHSIG, 9); /* a time limit ends the test too */
		test();
		(void)fflush(stdout);
		exit(tap_failures > 0);
	}
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		printf("# signal %d\n", WTERMSIG(status));
	printf("%sok %u - %s\n", status ? "not " : "", ++tap_count, name);
}

static inline void tap_main(char **argv)
{
	tap_wanted = argv + 1;
}

static inline void tap_skip(const char *name, const char *why)
{
	printf("ok %u - %s # SKIP %s\n", ++tap_count, name, why);
}

static inline int tap_done(void)
{
	printf("1..%u\n", tap_count);
	return 0;
}

/* Numbers that are the same in every run. */
static inline unsigned tap_random(unsigned long long *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(*state >> 33);
}

#endif
