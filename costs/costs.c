/*
 * Measures what each kind of event costs.
 */
#include "costs.h"

#include "clock.h"
#include "probes.h"

enum { ROUNDS = 8, EVENTS = 256 };

static const struct xs_probe *const probes[XS_COST_COUNT] = {
	[XS_COST_TASK] = &xs_probe_task,	 [XS_COST_SPAN] = &xs_probe_span,
	[XS_COST_METADATA] = &xs_probe_metadata, [XS_COST_MARK] = &xs_probe_mark,
	[XS_COST_COUNTER] = &xs_probe_counter,	 [XS_COST_CALL] = &xs_probe_call,
	[XS_COST_VALUES] = &xs_probe_values,	 [XS_COST_MPI] = &xs_probe_mpi,
};

/* The least of all rounds: other work of the machine only adds to one. */
static struct xs_cost measure(const struct xs_probe *probe)
{
	struct xs_cost best = { 0 };

	for (int round = 0; probe->many && round < ROUNDS; round++) {
		uint64_t ns, ticks;

		xs_standin_rewind();
		ns = xs_clock_ns(CLOCK_MONOTONIC);
		ticks = xs_tick(xs_standin_use_tsc());
		probe->many(EVENTS);
		ticks = xs_tick(xs_standin_use_tsc()) - ticks;
		ns = xs_clock_ns(CLOCK_MONOTONIC) - ns;
		if (round && (double)ns >= best.ns * EVENTS)
			continue;
		best.ns = (double)ns / EVENTS;
		if (probe->inside && ticks)
			best.inside_ns = (double)probe->inside(xs_standin_data(), EVENTS) *
					 (double)ns / (double)ticks / EVENTS;
		if (best.inside_ns > best.ns)
			best.inside_ns = best.ns;
	}
	return best;
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
