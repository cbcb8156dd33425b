/*
 * Calls of an API: what a wrapper does around one (interpose/generate.py), here around nothing.
 */
#include "probes.h"

#include "call_values.h"

static uint64_t durations(const unsigned char *data, uint32_t count)
{
	const struct xs_call_record *record = (const void *)data;
	uint64_t ticks = 0;

	for (uint32_t i = 0; i < count; i++)
		ticks += record[i].duration;
	return ticks;
}

static __attribute__((noinline)) int64_t wrapper(void)
{
	struct xs_call call;

	if (!xs_call_enter(&call, XS_SOURCE_LEVEL_ZERO, 1))
		return 0;
	xs_call_end(xs_call_header(XS_SOURCE_LEVEL_ZERO, 1, 0), 0, &call);
	return 0;
}

static void call(void)
{
	(void)wrapper();
}
const struct xs_probe xs_probe_call = { NULL, call, durations };

/* -c: four words in, two values of eight bytes out. */
static __attribute__((noinline)) void values_of(struct xs_call *call, const uint64_t *given)
{
	uint64_t *words = xs_args_begin(XS_FRAME_MARK(), call, XS_SOURCE_LEVEL_ZERO, 1, 4);
	struct xs_values values;

	if (words) {
		memcpy(words, given, 32);
		xs_args_end(call, 4);
	}
	if (!xs_values_begin(XS_FRAME_MARK(), &values, call, XS_SOURCE_LEVEL_ZERO, 1, 0))
		return;
	xs_values_one(&values, 1, &given[1], 8);
	xs_values_one(&values, 2, &given[2], 8);
	xs_values_end(&values);
}

static void give_values(void)
{
	static const uint64_t given[4] = { 1, 2, 3, 4 };
	struct xs_call of = { .tick = 0 };

	values_of(&of, given);
}
const struct xs_probe xs_probe_values = { NULL, give_values, NULL };
