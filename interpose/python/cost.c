/*
 * What tracing costs a call of a function, measured where nearly all of it is spent: in this
 * interpreter, before the program's own code runs. A function that does nothing is called in a
 * loop, without and with the tracing; records go into a ring that nobody reads.
 */
#include "python_stacks.h"

#include <string.h>

#define ROUNDS	      6
#define CALLS	      128u  /* in the text, too */
#define RING	      8192u /* two records a call, and the loop's own */
#define INPUT_OF_FILE 257   /* Py_file_input */

static const char text[] = "def one():\n pass\n"
			   "def measured():\n for _ in '0' * 128: one()\n";

bool py_cost_is_measured;
struct py_function *py_cost_function;

static struct py_object *globals, *loop; /* NULL: it cannot be measured */
static double alone_ns;

static void drop(struct py_object *object)
{
	if (object)
		py_api.Py_DecRef(object);
	else
		py_api.PyErr_Clear();
}

static void forget(void)
{
	if (globals)
		drop(globals);
	globals = loop = NULL;
}

/* Of all rounds the least: what else the machine does only adds to one. 0: it failed. */
static double time_of(unsigned char *data)
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t ns;
		struct py_object *result;

		if (data) {
			xs_tls.producer.head = 0;
			xs_tls.producer.limit = RING;
		}
		ns = xs_clock_ns(CLOCK_MONOTONIC);
		result = py_api.PyObject_CallObject(loop, NULL);
		ns = xs_clock_ns(CLOCK_MONOTONIC) - ns;
		drop(result);
		if (!result)
			return 0;
		if (ns < best)
			best = ns;
	}
	return (double)best / CALLS;
}

void py_cost_before(void)
{
	static bool is_known; /* from a former interpreter */
	struct py_object *code, *result = NULL;

	if (xs_paused() || is_known) /* what is not recorded costs less */
		return;
	is_known = true;
	globals = py_api.PyDict_New();
	code = globals ? py_api.Py_CompileString(text, "<xstrace>", INPUT_OF_FILE) : NULL;
	if (code)
		result = py_api.PyEval_EvalCode(code, globals, globals);
	if (result) /* not ours to keep: `globals` has it */
		loop = py_api.PyDict_GetItemString(globals, "measured");
	drop(result);
	if (code)
		drop(code);
	alone_ns = loop ? time_of(NULL) : 0;
	if (!alone_ns)
		forget();
}

/* From a call's begin to its end, of the last round: its records lie in turn within the loop's. */
static double inside_ns(const unsigned char *data, double ns)
{
	const struct xs_event *event = (const void *)data;
	uint64_t ticks = 0, whole = event[2 * CALLS + 1].tick - event[0].tick;

	for (uint32_t i = 1; i <= 2 * CALLS; i += 2) {
		if (event[i].kind != XS_BEGIN || event[i + 1].kind != XS_END)
			return 0;
		ticks += event[i + 1].tick - event[i].tick;
	}
	return whole ? (double)ticks / (double)whole * ns : 0;
}

static void measure(unsigned char *data)
{
	double ns = time_of(data), inside = ns ? inside_ns(data, ns) : 0, counted;

	if (!ns || !py_cost_function)
		return;
	py_cost_function->counted = true;
	counted = time_of(data);
	/* so that nothing is told of it */
	py_cost_function->calls = py_cost_function->untold = 0;
	ns -= alone_ns;
	counted -= alone_ns;
	xs_tell_function_costs(ns, inside < ns ? inside : ns, counted);
}

void py_cost_after(void)
{
	struct xs_producer own = xs_tls.producer;
	unsigned char *ring = loop ? xs_arena(XS_RING_HEADER + RING) : NULL;

	if (ring) {
		py_cost_is_measured = true;
		xs_ring_init(&xs_tls.producer, (void *)ring, ring + XS_RING_HEADER, RING,
			     XS_FULL_DROP);
		xs_tls.producer.key = atomic_load_explicit(&xs_gate->key, memory_order_relaxed);
		measure(ring + XS_RING_HEADER);
		xs_tls.producer = own;
		py_cost_is_measured = false;
	}
	forget();
}
