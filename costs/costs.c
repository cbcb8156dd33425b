/*
 * Measures what each kind of event costs.
 */
#include "costs.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "probes.h"

enum { ROUNDS = 6, MOST_ROUNDS = 48, EVENTS = 128 };

static const struct xs_probe *const probes[XS_COST_COUNT] = {
	[XS_COST_TASK] = &xs_probe_task,	 [XS_COST_SPAN] = &xs_probe_span,
	[XS_COST_METADATA] = &xs_probe_metadata, [XS_COST_MARK] = &xs_probe_mark,
	[XS_COST_COUNTER] = &xs_probe_counter,	 [XS_COST_CALL] = &xs_probe_call,
	[XS_COST_VALUES] = &xs_probe_values,	 [XS_COST_MPI] = &xs_probe_mpi,
};

static void nothing(void)
{
}

/*
 * Some 50 ns of what programs do between events, of the C library's code. Measured in a loop of
 * their own, events cost a third less: the processor has learnt the loop by heart, and keeps all of
 * it.
 */
static __attribute__((noinline)) uint64_t work(uint64_t number)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%lu %s", number, "words");
	return strtoul(text, NULL, 10);
}

/* One round in ns; its ticks. */
static uint64_t time_of(void (*volatile one)(void), uint64_t *ret_ticks)
{
	static volatile uint64_t seed = 1234567;
	uint64_t ns, number = seed;

	xs_standin_rewind();
	ns = xs_clock_ns(CLOCK_MONOTONIC);
	*ret_ticks = xs_tick(xs_standin_use_tsc());
	for (int i = 0; i < EVENTS; i++) {
		number = work(number) % 10000000 + 1000000;
		one();
	}
	*ret_ticks = xs_tick(xs_standin_use_tsc()) - *ret_ticks;
	return xs_clock_ns(CLOCK_MONOTONIC) - ns;
}

/*
 * The least of all rounds: other work of the machine only adds to one. By turns, so that what
 * slows the machine for a while is no difference; more of them where the events seem to cost
 * nothing.
 */
static struct xs_cost measure(const struct xs_probe *probe)
{
	uint64_t alone = UINT64_MAX, best = UINT64_MAX, best_ticks = 0, ns, ticks;
	struct xs_cost cost = { 0 };

	if (!probe->one)
		return cost;
	xs_standin_rewind();
	if (probe->prepare)
		probe->prepare();
	for (int round = 0; round < ROUNDS || (best <= alone && round < MOST_ROUNDS); round++) {
		ns = time_of(nothing, &ticks);
		if (ns < alone)
			alone = ns;
		ns = time_of(probe->one, &ticks);
		if (ns >= best)
			continue;
		best = ns;
		best_ticks = ticks;
	}
	if (best <= alone)
		return cost;
	cost.ns = (double)(best - alone) / EVENTS;
	if (probe->inside && best_ticks) /* of the last round */
		cost.inside_ns = (double)probe->inside(xs_standin_data(), EVENTS) * (double)best /
				 (double)best_ticks / EVENTS;
	if (cost.inside_ns > cost.ns)
		cost.inside_ns = cost.ns;
	return cost;
}

struct xs_cost xs_cost_of(enum xs_cost_kind kind, const struct xs_options *options, bool use_tsc)
{
	static struct xs_cost known[XS_COST_COUNT];
	static bool is_known[XS_COST_COUNT];

	if (!is_known[kind] && xs_standin_open(options, use_tsc))
		known[kind] = measure(probes[kind]);
	is_known[kind] = true;
	return known[kind];
}
