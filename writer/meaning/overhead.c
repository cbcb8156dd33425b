#include "overhead.h"

#include <sys/resource.h>

#include "track.h"

#define MOST_COUNTED 0x3fffffffffull /* so that no sum overflows */
#define MOST_TICKS   0xffffffffffffull

enum row {
	ROW_MARK,
	ROW_TASK,
	ROW_FUNCTION,
	ROW_COUNTED,
	ROW_SPAN,
	ROW_METADATA,
	ROW_COUNTER,
	ROW_CALL,
	ROW_VALUES,
	ROW_MPI,
	ROW_COMMAND,
	ROW_STACK,
	ROWS,
	NO_ROW = ROWS
};
_Static_assert(ROWS == XS_OVERHEAD_KINDS, "there is room for all");

/* Costs that are not measured here: nobody has, or the process itself. */
enum { UNKNOWN = -1, TOLD = -2 };

static const struct {
	const char *kind;
	int cost;	  /* enum xs_cost_kind, or one of the above */
	uint32_t records; /* of one event */
} rows[ROWS] = {
	[ROW_MARK] = { "mark", XS_COST_MARK, 1 },
	[ROW_TASK] = { "task", XS_COST_TASK, 2 },
	[ROW_FUNCTION] = { "function", TOLD, 1 }, /* their records are a task's */
	[ROW_COUNTED] = { "counted", TOLD, 1 },
	[ROW_SPAN] = { "span", XS_COST_SPAN, 2 },
	[ROW_METADATA] = { "metadata", XS_COST_METADATA, 1 },
	[ROW_COUNTER] = { "counter", XS_COST_COUNTER, 1 },
	[ROW_CALL] = { "call", XS_COST_CALL, 1 },
	[ROW_VALUES] = { "values", XS_COST_VALUES, 1 },
	[ROW_MPI] = { "mpi", XS_COST_MPI, 1 },
	[ROW_COMMAND] = { "command", UNKNOWN, 1 },
	[ROW_STACK] = { "stack", UNKNOWN, 1 },
};

/* Where records count, by their kind; a record that is not named here is a mark's like. */
static const uint8_t row_of[XS_KINDS_COUNTED] = {
	[0] = NO_ROW,
	[XS_PAD] = NO_ROW,
	[XS_THREAD] = NO_ROW,
	[XS_LOST_ENDS] = NO_ROW,
	[XS_LOST_BEGINS] = NO_ROW,
	[XS_CPU] = NO_ROW,	/* its cost is in the task's */
	[XS_COMMANDS] = NO_ROW, /* each command of it counts as XS_DEVICE */
	[XS_CALL_OUT] = NO_ROW, /* its cost is in the XS_CALL_IN's */
	[XS_SAMPLE] = NO_ROW,	/* another program's */
	[XS_BEGIN] = ROW_TASK,
	[XS_END] = ROW_TASK,
	[XS_TASK] = ROW_TASK,
	[XS_EVENT_BEGIN] = ROW_TASK,
	[XS_EVENT_END] = ROW_TASK,
	[XS_OPEN] = ROW_SPAN,
	[XS_CLOSE] = ROW_SPAN,
	[XS_ARGS] = ROW_METADATA,
	[XS_RELATION] = ROW_METADATA,
	[XS_COUNTER] = ROW_COUNTER,
	[XS_CALL] = ROW_CALL,
	[XS_CALL_IN] = ROW_VALUES,
	[XS_MPI] = ROW_MPI,
	[XS_DEVICE] = ROW_COMMAND,
	[XS_STACK] = ROW_STACK,
};

static xs_cost_function *measured_by;

void xs_overhead_measured_by(xs_cost_function *function)
{
	measured_by = function;
}

struct xs_cost xs_overhead_cost(const struct xs_run *run, enum xs_cost_kind kind)
{
	return measured_by ? measured_by(kind, run->options, run->use_tsc) : (struct xs_cost){ 0 };
}

/* What its threads have measured themselves. */
static void add_measured(const struct xs_process *process, bool commands, struct xs_overhead *ret)
{
	uint64_t ticks = 0, first = process->run->clock.first.tick;

	for (uint32_t i = 0; i < process->track_count; i++) {
		const struct xs_ring *ring = process->tracks[i]->ring;

		ret->waits += atomic_load_explicit(&ring->blocked, memory_order_relaxed);
		ret->waited_ns += atomic_load_explicit(&ring->blocked_ns, memory_order_relaxed);
		ticks += atomic_load_explicit(&ring->commands_ticks, memory_order_relaxed);
	}
	if (commands)
		ret->commands_ns = xs_process_ns(process, first + (ticks & MOST_TICKS)) -
				   xs_process_ns(process, first);
}

/* Calls of Python's functions, which the process has counted and measured itself. */
static void count_functions(const struct xs_process *process, uint64_t *counts,
			    struct xs_cost *costs)
{
	const struct xs_process_file *file = process->file;
	const struct xs_function_costs *told = &file->function_costs;
	uint64_t begun = counts[ROW_TASK] / 2;

	counts[ROW_FUNCTION] = atomic_load_explicit(&file->functions, memory_order_relaxed);
	if (counts[ROW_FUNCTION] > begun) /* it is not done with what is told here */
		counts[ROW_FUNCTION] = begun;
	counts[ROW_TASK] -= 2 * counts[ROW_FUNCTION];
	counts[ROW_COUNTED] = atomic_load_explicit(&file->counted_functions, memory_order_relaxed) &
			      MOST_COUNTED;
	costs[ROW_FUNCTION].ns = atomic_load_explicit(&told->ns, memory_order_relaxed) / 256.;
	costs[ROW_FUNCTION].inside_ns =
		atomic_load_explicit(&told->inside_ns, memory_order_relaxed) / 256.;
	costs[ROW_COUNTED].ns =
		atomic_load_explicit(&told->counted_ns, memory_order_relaxed) / 256.;
}

void xs_overhead_of(const struct xs_process *process, struct xs_overhead *ret)
{
	uint64_t counts[ROWS + 1] = { 0 }; /* the last: of no row */
	struct xs_cost told[ROWS] = { 0 }; /* by the process */
	struct rusage usage;

	*ret = (struct xs_overhead){ .drain_ns = xs_clock_ns(CLOCK_PROCESS_CPUTIME_ID) };
	for (uint32_t kind = 0; kind < XS_KINDS_COUNTED; kind++)
		counts[row_of[kind]] += process->kinds[kind];
	count_functions(process, counts, told);
	for (uint32_t row = 0; row < ROWS; row++) {
		struct xs_overhead_row *out = &ret->rows[ret->row_count];

		if (!counts[row])
			continue;
		*out = (struct xs_overhead_row){ .kind = rows[row].kind,
						 .count = (counts[row] + rows[row].records - 1) /
							  rows[row].records };
		out->cost =
			rows[row].cost < 0
				? told[row]
				: xs_overhead_cost(process->run, (enum xs_cost_kind)rows[row].cost);
		out->measured = out->cost.ns > 0;
		ret->events_ns += (uint64_t)((double)out->count * out->cost.ns);
		ret->row_count++;
	}
	add_measured(process, counts[ROW_COMMAND], ret);
	ret->start_ns = process->launch_ns +
			atomic_load_explicit(&process->file->start_ns, memory_order_relaxed);
	if (!getrusage(RUSAGE_SELF, &usage))
		ret->drain_peak = (uint64_t)usage.ru_maxrss << 10;
}
