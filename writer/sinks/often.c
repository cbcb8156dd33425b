/*
 * What fills a large trace: functions that are called again and again, as by a program that polls.
 * They are counted once a trace has become large, and who made it is told of them and of
 * --exclude-calls.
 */
#include <stdlib.h>

#include "chrome.h"
#include "hash.h"
#include "text.h"

#define PLACES 64u /* a power of two */
#define SHOWN  3u
#define SHARE  5u     /* who makes a fifth of the calls is shown */
#define ENOUGH 10000u /* fewer calls than that say nothing of the others */

/* Of the functions of one place the one with most of its calls, and at least so many of them. */
struct place {
	uint32_t name;
	uint64_t calls;
};

struct xs_often {
	uint64_t calls;
	struct place places[PLACES];
};

void xs_often_count(struct xs_chrome *chrome, uint32_t name)
{
	const uint64_t key[1] = { name };
	struct place *place;

	if (!chrome->often)
		chrome->often = calloc(1, sizeof(*chrome->often));
	if (!chrome->often)
		return;
	chrome->often->calls++;
	place = &chrome->often->places[xs_hash(key, 1) % PLACES];
	if (place->name == name) {
		place->calls++;
	} else if (!place->calls) {
		*place = (struct place){ .name = name, .calls = 1 };
	} else {
		place->calls--;
	}
}

/* The one with most calls that is not shown yet; NULL: none makes enough of them. */
static struct place *most(struct xs_often *often)
{
	struct place *most = often->places;

	for (uint32_t i = 1; i < PLACES; i++)
		if (often->places[i].calls > most->calls)
			most = &often->places[i];
	return most->calls >= often->calls / SHARE ? most : NULL;
}

void xs_often_end(struct xs_run *run, struct xs_often *often)
{
	uint64_t calls = 0;
	char names[256];
	size_t n = 0, length;
	struct place *place;

	if (!often)
		return;
	for (uint32_t i = 0; often->calls >= ENOUGH && i < SHOWN && (place = most(often)); i++) {
		const char *name = xs_text_of(run, place->name, &length);

		if (n + length + 2 > sizeof(names))
			break;
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%.*s", n ? "," : "",
				      (int)length, name);
		calls += place->calls;
		place->calls = 0;
	}
	if (calls > often->calls / 2)
		xs_tell("[INFO] %llu %% of the calls in it are of %s. If these only poll: "
			"--exclude-calls %s leaves them out\n",
			(unsigned long long)(calls * 100 / often->calls), names, names);
	free(often);
}
