/*
 * Texts by a format of printf(), against printf() itself: conversions at random, in rooms of all
 * sizes.
 */
#include <pthread.h>

#include "format.h"
#include "tap.h"

enum { ROOM = 3000, ROUNDS = 200000 };

static char ours[ROOM + 1], wanted[ROOM + 1];
static uint64_t seed = 88172645463325252u;

static uint32_t below(uint32_t most)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16) % most;
}

/* As printf() has it, as far as the room goes; of a text that is cut, that it is. */
static void __attribute__((format(printf, 2, 3))) same(size_t room, const char *format, ...)
{
	va_list values, again;
	bool cut = false;
	size_t length;
	int all;

	va_start(values, format);
	va_copy(again, values);
	all = vsnprintf(wanted, room + 1, format, values);
	memset(ours, '#', sizeof(ours));
	length = itt_format(ours, room, format, again, &cut);
	va_end(again);
	va_end(values);
	CHECK(length <= room && ours[room] == '#', "%s: %zu of %zu bytes", format, length, room);
	CHECK(cut == (all > (int)room), "%s in %zu: cut %d, length %d", format, room, cut, all);
	if (all <= (int)room)
		CHECK(length == (size_t)all && !memcmp(ours, wanted, length),
		      "%s: '%.*s', not '%s'", format, (int)length, ours, wanted);
}

static double some_double(void)
{
	uint64_t bits = (uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX);
	double value;

	switch (below(5)) {
	case 0:
		memcpy(&value, &bits, sizeof(value));
		return value;
	case 1:
		return (double)below(2000000) / 1000 - 1000;
	case 2:
		return (double)below(100000) / 8;
	case 3:
		return (below(2) ? 1e-5 : -1e-5) * below(1000);
	default:
		return 0.5 * below(20) * (below(3) ? 1 : 1e15); /* ties, and zeros */
	}
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static char format[64];

/* Flags, width and precision of a conversion, which gets that end. */
static const char *some_format(const char *end)
{
	int at = 0;

	format[at++] = '<';
	format[at++] = '%';
	for (const char *flag = "-+ #0"; *flag; flag++)
		if (!below(4))
			format[at++] = *flag;
	if (below(2))
		at += sprintf(format + at, "%u", below(40));
	if (below(2))
		at += sprintf(format + at, ".%u", below(below(8) ? 25 : 400));
	(void)sprintf(format + at, "%s>", end);
	return format;
}

static size_t some_room(void)
{
	return below(10) ? ROOM : below(60);
}

static void floats(void)
{
	static const char *const ends[] = { "e", "f", "g", "E", "F", "G" };

	for (int i = 0; i < ROUNDS; i++)
		same(some_room(), some_format(ends[below(6)]), some_double());
}

static void long_doubles(void)
{
	for (int i = 0; i < ROUNDS / 4; i++)
		same(some_room(), some_format(below(2) ? "Lf" : "Lg"), (long double)some_double());
	same(ROOM, "%Lf %Lg %Lf", 1.0L / 0.0L, -1.0L / 0.0L, 0.0L);
}

static void hexadecimal(void)
{
	static const double values[] = { 0, 1, -255.5, 0.1, 1.5, 2.5, 3.14159, 1e300, 1e-300 };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		same(ROOM, "%a %A %.0a %.1a %.3a %.13a %.20a %+30a %-30a| %030a", values[i],
		     values[i], values[i], values[i], values[i], values[i], values[i], values[i],
		     values[i], values[i]);
}

static void integers(void)
{
	static const char *const ends[] = { "d", "u", "x", "X", "o", "hd", "hhd", "hu", "hhx" };
	static const char *const longs[] = {
		"ld", "lu", "lld", "zu", "jd", "td", "lx", "qd", "zo"
	};
	long value;

	for (int i = 0; i < ROUNDS; i++) {
		value = below(3) ? (long)((uint64_t)below(UINT32_MAX) << 32 | below(UINT32_MAX))
				 : 0;
		if (below(2))
			same(some_room(), some_format(ends[below(9)]), (int)value);
		else
			same(some_room(), some_format(longs[below(9)]), value);
	}
}

static void texts(void)
{
	static const char *const some[] = { "", "x", "hello",
					    "much longer than all of the others" };

	for (int i = 0; i < ROUNDS; i++)
		switch (below(4)) {
		case 0:
			same(some_room(), some_format("c"), (int)('A' + below(26)));
			break;
		case 1:
			same(some_room(), some_format("p"), (void *)(uintptr_t)(1 + below(9999)));
			break;
		default:
			same(some_room(), some_format("s"), some[below(4)]);
		}
	same(ROOM, "%p|%10p|%-10p|%s|%.3s|%.6s|%%", NULL, NULL, NULL, (char *)NULL, (char *)NULL,
	     (char *)NULL);
}

static void sizes_as_arguments(void)
{
	for (int i = 0; i < 1000; i++)
		same(ROOM, "%*d|%-*d|%.*f|%*.*s|%.*d", (int)below(40) - 20, 7, (int)below(20), 8,
		     (int)below(30) - 5, 2.0 / 3, (int)below(20), (int)below(9) - 2, "text",
		     (int)below(30) - 5, 0);
}

static size_t text_of(char *text, const char *how, ...)
{
	size_t length;
	va_list values;
	bool cut;

	va_start(values, how);
	length = itt_format(text, ROOM, how, values, &cut);
	va_end(values);
	return length;
}

enum { BEFORE = 64 };
static char shared[BEFORE + ROOM];
static _Atomic bool enough;

static void *scribble(void *unused)
{
	while (!enough)
		memset(shared + BEFORE, '0', 200);
	return unused;
}

/* The text lies in a ring: a child with fewer rights may write there, too. */
static void changes(void)
{
	pthread_t thread;

	memset(shared, '0', BEFORE);
	if (pthread_create(&thread, NULL, scribble, NULL))
		abort();
	for (int i = 0; i < ROUNDS / 4; i++) {
		size_t length = text_of(shared + BEFORE, "%.80g", 0.0001 / (1 + below(9)));

		CHECK(length <= 90, "%zu bytes", length);
		for (size_t at = 0; at < BEFORE; at++)
			CHECK(shared[at] == '0', "written %zu bytes before", BEFORE - at);
	}
	enough = true;
	(void)pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("floating-point numbers", floats);
	tap_run("long doubles", long_doubles);
	tap_run("in hexadecimal", hexadecimal);
	tap_run("integers", integers);
	tap_run("texts, characters and pointers", texts);
	tap_run("widths and precisions as arguments", sizes_as_arguments);
	tap_run("memory that others write into", changes);
	return tap_done();
}
