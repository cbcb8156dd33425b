/*
 * What stands in, in the drain process, for the parts of a traced process that the collector's hot
 * code uses: its variables, a ring that is never full, memory, names. Nothing here is reached in a
 * traced program.
 */
#include "blocked.h"
#include "probes.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "call_values.h"
#include "clock.h"
#include "self.h"
#include "stack.h"

#define RING (128u << 10) /* 256 events of any kind, and the greatest record */

/* ---- state.c ---- */

__thread struct xs_tls xs_tls __attribute__((tls_model("initial-exec")));
static struct xs_gate gate;
struct xs_gate *xs_gate = &gate;
static const _Atomic uint32_t not_paused;
const _Atomic uint32_t *xs_run_paused = &not_paused;
struct xs_doorbell *xs_bell;
bool xs_use_tsc;
bool xs_log_calls;
uint32_t xs_stack_depth;

/* for mpi.c, which is compiled as libxstrace-mpi.so is */
#define COMPANION(of) __attribute__((alias(of), visibility("default")))
extern __thread struct xs_tls xs_companion_tls
	__attribute__((tls_model("initial-exec"))) COMPANION("xs_tls");
extern struct xs_gate *xs_companion_gate COMPANION("xs_gate");
extern const _Atomic uint32_t *xs_companion_paused COMPANION("xs_run_paused");
extern bool xs_companion_use_tsc COMPANION("xs_use_tsc");

static const struct xs_options *the_options;
#define KEY 1u /* of the process, which has no other */
static struct xs_ring *ring;
static struct xs_counters counters;

bool xs_standin_open(const struct xs_options *options, bool use_tsc)
{
	if (ring)
		return true;
	ring = aligned_alloc(64, XS_RING_HEADER + RING);
	if (!ring)
		return false;
	memset(ring, 0, XS_RING_HEADER + RING);
	the_options = options;
	xs_use_tsc = use_tsc;
	if (options->cpu_events_of_tasks)
		xs_counters_open(&counters, options->cpu_events_of_tasks & XS_CPU_HARDWARE);
	/* as xs_gate_wanted() has it for such options */
	atomic_store(&gate.key, KEY);
	atomic_store(&gate.open, use_tsc && !options->cpu_events_of_tasks ? KEY : XS_GATE_SLOW);
	return true;
}

void xs_standin_rewind(void)
{
	xs_ring_init(&xs_tls.producer, ring, (unsigned char *)ring + XS_RING_HEADER, RING,
		     XS_FULL_DROP);
	xs_tls.producer.limit = RING;
	xs_tls.producer.key = KEY;
	atomic_store(&ring->call, 0);
}

const unsigned char *xs_standin_data(void)
{
	return xs_tls.producer.data;
}

bool xs_standin_use_tsc(void)
{
	return xs_use_tsc;
}

/* ---- what is rare, and does not happen here ---- */

bool xs_thread_attach(void)
{
	return false;
}

void xs_watch_begin(const void *domain_object, const char *domain, const char *name)
{
	(void)domain_object, (void)domain, (void)name;
}

void xs_watch_end(const void *domain_object)
{
	(void)domain_object;
}

void xs_watch_marker(const char *domain, const char *name)
{
	(void)domain, (void)name;
}

uint64_t xs_life_began_tick(void)
{
	return 0;
}

void *itt_function_handle(void *function);
void *itt_function_handle(void *function)
{
	(void)function;
	return NULL;
}

uint64_t itt_tick_of(const void *domain, unsigned long long time);
uint64_t itt_tick_of(const void *domain, unsigned long long time)
{
	(void)domain;
	return time;
}

uint32_t xs_stack_frames(uint64_t *frames, uint32_t room, bool *ret_more)
{
	(void)frames, (void)room;
	*ret_more = false;
	return 0;
}

/* tasks that are named by a function's address: a static program has no loader to ask */
int dladdr(const void *address, Dl_info *info)
{
	(void)address, (void)info;
	return 0;
}

/* ---- options, names, memory ---- */

const struct xs_options *xs_collector_options(void)
{
	return the_options;
}

const struct xs_options *xs_options_of_run(void)
{
	return the_options;
}

struct xs_counters *xs_slot_counters(struct xs_slot *slot)
{
	(void)slot;
	return &counters;
}

uint32_t xs_name_parts(const struct xs_part *parts, uint32_t count, uint32_t scope)
{
	static uint32_t last = XS_STRING_FULL;

	(void)parts, (void)count, (void)scope;
	return ++last;
}

void xs_count_unnamed(void)
{
}

uint32_t xs_name(const char *text, uint32_t scope)
{
	(void)text;
	return xs_name_parts(NULL, 0, scope);
}

void *xs_arena(size_t size)
{
	return calloc(1, size);
}

void *xs_table_make(struct xs_table *table)
{
	void *memory = xs_arena(table->size);

	atomic_store(&table->memory, memory);
	return memory;
}

/* Here nobody asks the loader for the names of functions. */
struct xs_blocked xs_block(void)
{
	return (struct xs_blocked){ 0 };
}

bool xs_is_blocked(struct xs_blocked blocked)
{
	(void)blocked;
	return false;
}

void xs_unblock(struct xs_blocked before)
{
	(void)before;
}
