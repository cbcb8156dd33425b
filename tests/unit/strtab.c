/*
 * Interned names: one id per name and scope, whoever asks, until the table is full.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "strtab.h"
#include "tap.h"

static struct xs_strings *table;

static void setup(void)
{
	table = mmap(NULL, XS_STRINGS_SIZE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
		abort();
	xs_strings_init(table);
}

static uint32_t intern(const char *text, uint32_t scope)
{
	return xs_intern(table, text, (uint32_t)strlen(text), scope);
}

/* NULL: no string. The length is what the reader may believe. */
static const struct xs_string *get(uint32_t id)
{
	uint32_t length = UINT32_MAX;
	const struct xs_string *string = xs_string(table, XS_STRINGS_SIZE, id, &length);

	CHECK(!string || length == string->length, "%u bytes and %u", length, string->length);
	return string;
}

static void is(uint32_t id, const char *text, uint32_t scope)
{
	const struct xs_string *string = get(id);

	CHECK(string && string->length == strlen(text) && !strcmp(string->text, text) &&
		      string->scope == scope,
	      "%u is \"%s\" in %u, not \"%s\" in %u", id, string ? string->text : "nothing",
	      string ? string->scope : 0, text, scope);
}

static void one_id_per_name(void)
{
	uint32_t a, b, c, empty;

	setup();
	/* a record may name an id that nobody has got: what is there is not taken for it */
	CHECK(!get(atomic_load(&table->used)), "an id before its time");
	errno = 4711;
	a = intern("a", 0), b = intern("b", 0), c = intern("a", a), empty = intern("", 0);
	CHECK(a && b && c && empty && a != b && a != c && b != c, "%u %u %u", a, b, c);
	CHECK(a > XS_STRING_FULL && empty > XS_STRING_FULL, "%u", a);
	CHECK(intern("a", 0) == a && intern("a", a) == c && intern("b", 0) == b &&
		      intern("", 0) == empty,
	      "found again");
	CHECK(xs_intern(table, "abc", 1, 0) == a, "the length counts, not the NUL");
	CHECK(xs_intern(table, "a\0b", 3, 0) != a &&
		      get(xs_intern(table, "a\0b", 3, 0))->length == 3,
	      "NUL is a character");
	is(a, "a", 0), is(b, "b", 0), is(c, "a", a), is(empty, "", 0);
	CHECK(errno == 4711, "errno is kept");
	CHECK(intern("b", 0xffffffff) != b, "scope");
}

/* Nothing that a wrong id says leads out of the table. */
static void wrong_ids(void)
{
	setup();
	(void)intern("x", 0);
	for (uint64_t id = 0; id < sizeof(*table) / 8; id++)
		if (id != XS_STRING_FULL)
			CHECK(!get((uint32_t)id), "%llu", (unsigned long long)id);
	for (uint32_t id = XS_STRINGS_SIZE / 8 - 4; id < XS_STRINGS_SIZE / 8 + 4; id++)
		(void)get(id);
	CHECK(!get(XS_STRINGS_SIZE / 8) && !get(XS_STRINGS_SIZE / 8 - 1) && !get(UINT32_MAX),
	      "behind the end");
	((uint32_t *)table)[XS_STRINGS_SIZE / 4 - 7] = 100; /* a length that does not fit */
	CHECK(!get(XS_STRINGS_SIZE / 8 - 4), "a string across the end");
	CHECK(!strcmp(get(XS_STRING_FULL)->text, "(too many names)") &&
		      get(XS_STRING_FULL)->length == 16,
	      "full");
}

static void long_names(void)
{
	static char text[XS_STRING_MAX + 100];
	uint32_t id;

	setup();
	memset(text, 'x', sizeof(text));
	id = xs_intern(table, text, XS_STRING_MAX, 0);
	CHECK(get(id) && get(id)->length == XS_STRING_MAX, "the longest");
	CHECK(xs_intern(table, text, XS_STRING_MAX + 1, 0) == id &&
		      xs_intern(table, text, sizeof(text), 0) == id,
	      "cut");
	for (uint32_t at = XS_STRING_MAX - 4; at <= XS_STRING_MAX; at++) {
		memset(text, 'x', sizeof(text));
		memcpy(text + at, "\xf0\x9f\x98\x80", 4);
		id = xs_intern(table, text, sizeof(text), 0);
		CHECK(get(id) && get(id)->length == (at == XS_STRING_MAX - 4 ? XS_STRING_MAX : at),
		      "cut at a character: %u, %u", at, get(id) ? get(id)->length : 0);
	}
	memset(text, '\x80', sizeof(text));
	id = xs_intern(table, text, sizeof(text), 0);
	CHECK(get(id), "no character at all");
}

/* ---- several at once ---- */

#define NAMES	5000u
#define THREADS 8u

struct worker {
	pthread_t thread;
	uint32_t number, *ids;
};

static void number_name(char *text, size_t size, uint32_t n)
{
	(void)snprintf(text, size, "name %u %.*s", n, (int)(n % 50),
		       "..................................................");
}

/* The same names, each in an order of its own. */
static void *work(void *data)
{
	static const uint32_t strides[THREADS] = { 1, 3, 7, 11, 4999, 4997, 4993, 4987 };
	struct worker *worker = data;
	char text[96];

	for (uint32_t i = 0; i < NAMES; i++) {
		uint32_t n = i * strides[worker->number % THREADS] % NAMES;

		number_name(text, sizeof(text), n);
		worker->ids[n] = intern(text, n % 3);
	}
	return NULL;
}

static void from_threads(void)
{
	static uint32_t ids[THREADS][NAMES];
	struct worker workers[THREADS];
	char text[96];

	setup();
	for (uint32_t i = 0; i < THREADS; i++) {
		workers[i].number = i;
		workers[i].ids = ids[i];
		CHECK(!pthread_create(&workers[i].thread, NULL, work, &workers[i]), "thread");
	}
	for (uint32_t i = 0; i < THREADS; i++)
		(void)pthread_join(workers[i].thread, NULL);
	for (uint32_t n = 0; n < NAMES; n++) {
		number_name(text, sizeof(text), n);
		is(ids[0][n], text, n % 3);
		for (uint32_t i = 1; i < THREADS; i++)
			CHECK(ids[i][n] == ids[0][n], "name %u: %u and %u", n, ids[0][n],
			      ids[i][n]);
	}
}

static void from_processes(void)
{
	uint32_t(*ids)[NAMES] = mmap(NULL, sizeof(*ids) * 4, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct worker worker = { .number = 0 };
	char text[96];
	int status;

	setup();
	for (uint32_t i = 0; i < 3; i++) {
		if (!fork()) {
			worker.number = i;
			worker.ids = ids[i];
			(void)work(&worker);
			_exit(0);
		}
	}
	worker.number = 3;
	worker.ids = ids[3];
	(void)work(&worker);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(wait(&status) > 0 && !status, "status %d", status);
	for (uint32_t n = 0; n < NAMES; n++) {
		number_name(text, sizeof(text), n);
		is(ids[3][n], text, n % 3);
		for (uint32_t i = 0; i < 3; i++)
			CHECK(ids[i][n] == ids[3][n], "name %u", n);
	}
	munmap(ids, sizeof(*ids) * 4);
}

/* ---- full ---- */

static void full_by_count(void)
{
	char text[32];
	uint32_t first, fitting = 0;

	setup();
	first = intern("0", 0);
	for (uint32_t n = 0; n < XS_STRINGS_COUNT + 100; n++) {
		(void)snprintf(text, sizeof(text), "%u", n);
		fitting += intern(text, 0) != XS_STRING_FULL;
	}
	CHECK(fitting == XS_STRINGS_COUNT, "%u of %u", fitting, XS_STRINGS_COUNT);
	CHECK(intern("0", 0) == first, "old names are still found");
	(void)snprintf(text, sizeof(text), "%u", XS_STRINGS_COUNT - 1);
	is(intern(text, 0), text, 0);
	CHECK(intern("new", 0) == XS_STRING_FULL, "no new ones");
}

static void full_by_size(void)
{
	static char text[XS_STRING_MAX];
	uint32_t n = 0, id, small = 0;

	setup();
	memset(text, 'x', sizeof(text));
	for (;; n++) {
		memcpy(text, &n, sizeof(n));
		id = xs_intern(table, text, sizeof(text), 0);
		if (id == XS_STRING_FULL)
			break;
		CHECK(get(id) && get(id)->length == sizeof(text), "name %u", n);
	}
	CHECK(n > (XS_STRINGS_SIZE - sizeof(*table)) / (XS_STRING_MAX + 64) - 2, "%u large names",
	      n);
	/*
	 * what is left is good for small ones; then it is over, and nothing is written behind the
	 * end (a guard page would tell)
	 */
	for (uint32_t i = 0; i < 20000; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%u", i);
		small += intern(name, 1) != XS_STRING_FULL;
	}
	CHECK(small > 0 && small < 20000, "%u small names", small);
	n = 0;
	memcpy(text, &n, sizeof(n));
	id = xs_intern(table, text, sizeof(text), 0);
	CHECK(id != XS_STRING_FULL && get(id), "old names are still found");
}

/* /dev/shm is full: no SIGBUS. */
static void no_memory(void)
{
	static char text[1000];
	int fd = memfd_create("strings", MFD_CLOEXEC);
	uint32_t n = 0;

	CHECK(fd >= 0 && !ftruncate(fd, sizeof(*table) + (200 << 10)), "memfd");
	table = mmap(NULL, XS_STRINGS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	xs_strings_init(table);
	memset(text, 'x', sizeof(text));
	for (; n < 10000; n++) {
		memcpy(text, &n, sizeof(n));
		if (xs_intern(table, text, sizeof(text), 0) == XS_STRING_FULL)
			break;
	}
	CHECK(n > 60 && n < 210, "%u names", n);
	CHECK(intern("x", 0) == XS_STRING_FULL || get(intern("x", 0)), "goes on");
	close(fd);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("one id per name and scope", one_id_per_name);
	tap_run("wrong ids", wrong_ids);
	tap_run("long names", long_names);
	tap_run("from eight threads", from_threads);
	tap_run("from four processes", from_processes);
	tap_run("full by count", full_by_count);
	tap_run("full by size", full_by_size);
	tap_run("no memory", no_memory);
	return tap_done();
}
