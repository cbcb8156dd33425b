/*
 * Test programs in C speak TAP, which Meson reads: tap_run() for each test function, CHECK() inside, tap_done() at the end.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned tap_count, tap_failures;

/* One line about a failure, the first twenty of a test. */
#define CHECK(condition, ...) ((condition) ? true : tap_complain(__FILE__, __LINE__, #condition, "" __VA_ARGS__))

static bool __attribute__((format(printf, 4, 5), unused))
tap_complain(const char *file, int line, const char *condition, const char *format, ...)
{
	va_list args;

	if (tap_failures++ < 20) {
		printf("# %s:%d: %s: ", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, condition);
		va_start(args, format);
		(void)vprintf(format, args);
		va_end(args);
		printf("\n");
	}
	return false;
}

static void tap_end(const char *name, const char *directive)
{
	printf("%sok %u - %s%s\n", tap_failures ? "not " : "", ++tap_count, name, directive);
	(void)fflush(stdout);
}

static inline void tap_run(const char *name, void (*test)(void))
{
	tap_failures = 0;
	test();
	tap_end(name, "");
}

/* A test of something that is known not to work yet: `why` says where the fault is. */
static inline void tap_todo(const char *name, void (*test)(void), const char *why)
{
	char directive[256];

	(void)snprintf(directive, sizeof(directive), " # TODO %s", why);
	tap_failures = 0;
	test();
	tap_end(name, directive);
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
