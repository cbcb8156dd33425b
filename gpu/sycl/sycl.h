/*
 * SYCL's runtime, as its instrumentation (XPTI) tells of it: what the files of this backend know of
 * each other. Callbacks come on the program's threads, between two steps of its runtime: each
 * returns soon, takes little of the stack, and calls the framework for look-ups alone.
 */
#ifndef XS_SYCL_H
#define XS_SYCL_H

#include <handles.h>

#include "collector.h"
#include "task_record.h"
#include "xpti_abi.h"

/* ---- facts.c: what an event says of itself ---- */

/* The framework's functions that are needed later. NULL: it has none, and nothing is looked up. */
struct sycl_framework {
	xpti_lookup_object *lookup_object;
	xpti_register_string *register_string;
};
/* False: another framework of this process was there before. */
bool sycl_facts_init(const struct sycl_framework *framework);
/* This version may have other structures: what events point to is not read from here on. */
void sycl_facts_off(void);
bool sycl_facts_on(void);

/* Values of an event's metadata; those that it does not have are 0. */
struct sycl_facts {
	uint32_t kernel, device; /* interned */
	bool has_queue;
	uint64_t queue, pointer, size;
};
void sycl_facts_of(const struct xpti_event *event, struct sycl_facts *facts);
/* NULL: it has none. */
const struct xpti_payload *sycl_payload_of(const struct xpti_event *event);

/* The domain of all names below. */
uint32_t sycl_domain(void);
/* What a name begins with. */
enum sycl_prefix { SYCL_PLAIN, SYCL_SUBMIT, SYCL_WAITING, SYCL_PREFIXES };
/* The interned name of this text, without an address in brackets at its end. NULL: it has none. */
uint32_t sycl_name(enum sycl_prefix prefix, const char *text);
/* The same of an interned text. */
uint32_t sycl_name_of(enum sycl_prefix prefix, uint32_t text);

/* ---- write.c: records ---- */

struct sycl_args {
	struct xs_args_record *record;
	uint32_t length;
};
/* As itt_args_begin(): one record, which nothing interrupts; keys and names are had before. */
#define sycl_args_begin(...) sycl_args_begin_in(XS_FRAME_MARK(), __VA_ARGS__)
bool sycl_args_begin_in(uintptr_t mark, struct sycl_args *args, uint8_t kind, uint32_t name);
void sycl_args_end(struct sycl_args *args);
void sycl_arg_number(struct sycl_args *args, uint32_t key, uint64_t number);
void sycl_arg_text(struct sycl_args *args, uint32_t key, const char *text);
/* Of an interned text. */
void sycl_arg_name(struct sycl_args *args, uint32_t key, uint32_t name);

void sycl_begin(uint32_t name);
void sycl_end(void);
void sycl_counter(uint32_t name, uint64_t value);
/* A task or span with an id; tick 0: now. */
void sycl_keyed(uint8_t kind, uint8_t flags, uint32_t name, struct xs_id id, struct xs_id parent,
		uint64_t tick);

/* ---- sycl_wrap.c, which is generated: what -c shows of the Unified Runtime's functions ---- */

struct sycl_function {
	const char *name;
	uint32_t count; /* of its arguments, whose addresses are in `args` below */
	void (*given)(struct xs_call *call, void *const *args);
	void (*gave)(const struct xs_call *call, void *const *args); /* NULL: nothing */
};
extern const struct sycl_function sycl_functions[] __attribute__((visibility("hidden")));

/* ---- calls.c: the device of an allocation ---- */

/* An allocation begins on this thread. */
void sycl_call_allocates(void);
/*
 * What has the Unified Runtime been asked for since? The handle of its device, 0: not known. True:
 * memory of the host.
 */
bool sycl_call_allocated(uint64_t *ret_handle);

/* ---- memory.c ---- */

/* The address stands for this word from here on, 0: for none. Returns what it stood for. */
uint64_t sycl_exchange(struct xs_handles *handles, uint64_t address, uint64_t word);

/* ---- commands.c, memory.c, usm.c, calls.c: callbacks ---- */

xpti_callback sycl_graph, sycl_node, sycl_edge, sycl_task_begin, sycl_task_end, sycl_wait_begin,
	sycl_wait_end, sycl_barrier_begin, sycl_queue_create, sycl_queue_destroy, sycl_diagnostics;
xpti_callback sycl_alloc_begin, sycl_alloc_end, sycl_release_begin, sycl_release_end,
	sycl_buffer_create, sycl_buffer_destroy, sycl_accessor, sycl_image_create,
	sycl_image_destroy, sycl_image_accessor;
xpti_callback sycl_call_begin, sycl_call_end, sycl_function_begin, sycl_function_end;
void sycl_calls_init(void);
/* The Unified Runtime is of this version. */
void sycl_calls_version(unsigned major, unsigned minor);

#endif
