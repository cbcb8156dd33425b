/*
 * Commands: what was submitted (a node of the runtime's graph), and its way through the runtime's
 * scheduler to the device (a task). The work on the device itself is what OpenCL's, Level Zero's
 * and CUDA's backends tell of.
 */
#include <string.h>

#include "sycl.h"
#include "task_record.h"

#define NODE "memory_transfer_node::"

/* The ids of a command's slices; instances are unique in a process. */
#define ID_OF(instance, part) ((struct xs_id){ { (instance), 0x5850544900000000u | (part), 0 } })
enum part { PART_WAITING = 1, PART_TASK = 2 };

/*
 * When commands came that have not begun yet. One whose place is taken by another one just has no
 * slice of its waiting. 0: free, or being written.
 */
#define WAITING 4096u
struct waiting {
	_Atomic uint64_t instance, tick;
};
XS_TABLE(waiting_table, WAITING * sizeof(struct waiting));

static void wait_from(uint64_t instance, uint64_t tick)
{
	struct waiting *table = xs_table(&waiting_table), *place;

	if (!table || !instance)
		return;
	place = &table[instance % WAITING];
	atomic_store_explicit(&place->instance, 0, memory_order_relaxed);
	atomic_store_explicit(&place->tick, tick, memory_order_release);
	atomic_store_explicit(&place->instance, instance, memory_order_release);
}

/* Since when the command waits; 0: not known. It does not wait any more. */
static uint64_t waited_from(uint64_t instance)
{
	struct waiting *table = xs_table(&waiting_table), *place;
	uint64_t tick;

	if (!table || !instance)
		return 0;
	place = &table[instance % WAITING];
	if (atomic_load_explicit(&place->instance, memory_order_acquire) != instance)
		return 0;
	tick = atomic_load_explicit(&place->tick, memory_order_acquire);
	return atomic_compare_exchange_strong(&place->instance, &instance, 0) ? tick : 0;
}

/* Keys of arguments and names that are constants; had once. */
static struct constants {
	uint32_t file, line, queue, device, name, message, source, target;
	uint32_t graph, node, edge, queue_create, queue_destroy, diagnostics;
} names;
static _Atomic bool have_names;

static const struct constants *constants(void)
{
	/* pairs with the release below; two threads at once write the same */
	if (__builtin_expect(!atomic_load_explicit(&have_names, memory_order_acquire), 0)) {
		uint32_t domain = sycl_domain();

		names = (struct constants){
			.file = xs_name("source_file", 0),
			.line = xs_name("line", 0),
			.queue = xs_name("queue_id", 0),
			.device = xs_name("device", 0),
			.name = xs_name("name", 0),
			.message = xs_name("message", 0),
			.source = xs_name("source", 0),
			.target = xs_name("target", 0),
			.graph = xs_name("graph_create", domain),
			.node = xs_name("node_create", domain),
			.edge = xs_name("edge_create", domain),
			.queue_create = xs_name("queue_create", domain),
			.queue_destroy = xs_name("queue_destroy", domain),
			.diagnostics = xs_name("diagnostics", domain),
		};
		atomic_store_explicit(&have_names, true, memory_order_release);
	}
	return &names;
}

/*
 * What a command is called: its kernel, "memcpy" and the like (which comes as text with the task),
 * or as its payload says.
 */
static uint32_t name_of(const struct xpti_event *event, const struct sycl_facts *facts,
			enum sycl_prefix prefix, const char *text)
{
	const struct xpti_payload *payload;

	if (facts->kernel)
		return sycl_name_of(prefix, facts->kernel);
	if (text) /* as in "memory_transfer_node::memcpy" */
		return sycl_name(prefix, !strncmp(text, NODE, sizeof(NODE) - 1)
						 ? text + sizeof(NODE) - 1
						 : text);
	payload = sycl_payload_of(event);
	return sycl_name(prefix, payload ? payload->name : NULL);
}

static void put_place(struct sycl_args *args, const struct constants *key,
		      const struct xpti_event *event, const struct sycl_facts *facts)
{
	const struct xpti_payload *payload = sycl_payload_of(event);

	/* what no line of the program has made stands in "<unknown-file>" */
	if (payload && payload->file && payload->file[0] && payload->file[0] != '<') {
		sycl_arg_text(args, key->file, payload->file);
		sycl_arg_number(args, key->line, payload->line);
	}
	/* whose device the mark of its creation says */
	if (facts->has_queue)
		sycl_arg_number(args, key->queue, facts->queue);
	else if (facts->device)
		sycl_arg_name(args, key->device, facts->device);
}

void sycl_graph(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		uint64_t instance, const void *data)
{
	struct sycl_args args;

	(void)type, (void)parent, (void)event, (void)instance, (void)data;
	if (xs_recording() && sycl_args_begin(&args, XS_INSTANT, constants()->graph))
		sycl_args_end(&args);
}

void sycl_node(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
	       uint64_t instance, const void *data)
{
	const struct constants *key;
	struct sycl_facts facts;
	struct sycl_args args;
	uint32_t name;

	(void)type, (void)parent, (void)data;
	if (!xs_recording())
		return;
	wait_from(instance, xs_tick(xs_use_tsc));
	key = constants();
	sycl_facts_of(event, &facts);
	name = name_of(event, &facts, SYCL_PLAIN, NULL);
	if (!sycl_args_begin(&args, XS_INSTANT, key->node))
		return;
	sycl_arg_name(&args, key->name, name); /* its task says the rest */
	sycl_args_end(&args);
}

void sycl_edge(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
	       uint64_t instance, const void *data)
{
	const struct xpti_payload *payload;
	const struct constants *key;
	struct sycl_args args;
	uint32_t name;

	(void)type, (void)parent, (void)instance, (void)data;
	if (!event || !xs_recording())
		return;
	key = constants();
	payload = sycl_payload_of(event);
	name = sycl_name(SYCL_PLAIN, payload ? payload->name : NULL);
	if (!sycl_args_begin(&args, XS_INSTANT, key->edge))
		return;
	sycl_arg_name(&args, key->name, name);
	sycl_arg_number(&args, key->source, event->source);
	sycl_arg_number(&args, key->target, event->target);
	sycl_args_end(&args);
}

/* ---- tasks ---- */

/*
 * The slices of its waiting and of its task, which an arrow joins. Apart: the frame of the callback
 * stays small.
 */
static __attribute__((noinline)) void show_task(const struct xpti_event *event,
						const struct sycl_facts *facts, uint64_t instance,
						const char *text)
{
	static const struct xs_id none;
	const struct constants *key = constants();
	uint64_t from = waited_from(instance);
	struct xs_id parent = from ? ID_OF(instance, PART_WAITING) : none;
	struct sycl_args args;

	if (from) {
		uint32_t name = name_of(event, facts, SYCL_WAITING, text);

		sycl_keyed(XS_OPEN, XS_SPAN_COMMAND, name, parent, none, from);
		sycl_keyed(XS_CLOSE, XS_SPAN_COMMAND, sycl_domain(), parent, none, 0);
	}
	sycl_keyed(XS_TASK, 0, name_of(event, facts, SYCL_SUBMIT, text), ID_OF(instance, PART_TASK),
		   parent, 0);
	if (!sycl_args_begin(&args, XS_ARGS, sycl_domain()))
		return;
	put_place(&args, key, event, facts);
	sycl_args_end(&args);
}

void sycl_task_begin(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		     uint64_t instance, const void *data)
{
	struct sycl_facts facts;

	(void)type, (void)parent;
	if (!xs_recording())
		return;
	sycl_facts_of(event, &facts);
	show_task(event, &facts, instance, data);
}

void sycl_task_end(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		   uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event, (void)instance, (void)data;
	sycl_end();
}

/* ---- waits, queues, what went wrong ---- */

void sycl_wait_begin(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		     uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event, (void)instance;
	if (xs_recording())
		sycl_begin(sycl_name(SYCL_PLAIN, data ? data : "wait"));
}

void sycl_wait_end(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		   uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event, (void)instance, (void)data;
	sycl_end();
}

void sycl_barrier_begin(uint16_t type, const struct xpti_event *parent,
			const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event, (void)instance;
	if (xs_recording())
		sycl_begin(sycl_name(SYCL_PLAIN, data ? data : "barrier"));
}

static void show_queue(const struct xpti_event *event, uint32_t name)
{
	const struct constants *key = constants();
	struct sycl_facts facts;
	struct sycl_args args;

	sycl_facts_of(event, &facts);
	if (!sycl_args_begin(&args, XS_INSTANT, name))
		return;
	sycl_arg_number(&args, key->queue, facts.queue);
	sycl_arg_name(&args, key->device, facts.device);
	sycl_args_end(&args);
}

void sycl_queue_create(uint16_t type, const struct xpti_event *parent,
		       const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)instance, (void)data;
	if (xs_recording())
		show_queue(event, constants()->queue_create);
}

void sycl_queue_destroy(uint16_t type, const struct xpti_event *parent,
			const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)instance, (void)data;
	if (xs_recording())
		show_queue(event, constants()->queue_destroy);
}

void sycl_diagnostics(uint16_t type, const struct xpti_event *parent,
		      const struct xpti_event *event, uint64_t instance, const void *data)
{
	const struct constants *key;
	struct sycl_args args;

	(void)type, (void)parent, (void)event, (void)instance;
	if (!xs_recording())
		return;
	key = constants();
	if (!sycl_args_begin(&args, XS_INSTANT, key->diagnostics))
		return;
	sycl_arg_text(&args, key->message, data);
	sycl_args_end(&args);
}
