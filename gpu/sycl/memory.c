/*
 * Memory of SYCL: USM allocations and buffers, as slices, counters of what is in use, and at the
 * end what was never freed. What is in use is kept while nothing is recorded, too.
 */
#include <handles.h>

#include "sycl.h"

/* address -> bytes + 1 */
static struct xs_handles usm = { .size = 1024 }, buffers = { .size = 256 };
static _Atomic uint64_t usm_bytes, usm_count, buffer_bytes;

static uint32_t usm_name(void)
{
	static _Atomic uint32_t name;

	if (!atomic_load_explicit(&name, memory_order_relaxed))
		atomic_store_explicit(&name, xs_name("SYCL USM in use (bytes)", 0),
				      memory_order_relaxed);
	return atomic_load_explicit(&name, memory_order_relaxed);
}

static uint32_t buffer_name(void)
{
	static _Atomic uint32_t name;

	if (!atomic_load_explicit(&name, memory_order_relaxed))
		atomic_store_explicit(&name, xs_name("SYCL buffers in use (bytes)", 0),
				      memory_order_relaxed);
	return atomic_load_explicit(&name, memory_order_relaxed);
}

/* The address stands for so many bytes from here on; -1: for none. Returns what it stood for. */
static uint64_t exchange(struct xs_handles *handles, uint64_t address, int64_t bytes)
{
	const void *key = (const void *)(uintptr_t)address;
	_Atomic uint64_t *value = bytes < 0 ? xs_handle_find(handles, key)
					    : xs_handle_add(handles, key);
	uint64_t before;

	if (!value)
		return 0;
	before = atomic_exchange(value, (uint64_t)(bytes + 1));
	if (bytes < 0)
		xs_handle_remove(handles, key);
	return before;
}

static void tell_usm(void)
{
	uint64_t bytes = atomic_load_explicit(&usm_bytes, memory_order_relaxed);

	xs_tell_unfreed(atomic_load_explicit(&usm_count, memory_order_relaxed), bytes);
	if (xs_recording())
		sycl_counter(usm_name(), bytes);
}

static void usm_allocated(uint64_t address, uint64_t bytes)
{
	uint64_t before;

	if (!address || bytes > INT64_MAX - 1)
		return;
	before = exchange(&usm, address, (int64_t)bytes);
	if (!before)
		atomic_fetch_add_explicit(&usm_count, 1, memory_order_relaxed);
	/* its release was not told, if it was known */
	atomic_fetch_add_explicit(&usm_bytes, bytes - (before ? before - 1 : 0),
				  memory_order_relaxed);
	tell_usm();
}

static void usm_released(uint64_t address)
{
	uint64_t before = address ? exchange(&usm, address, -1) : 0;

	if (!before)
		return;
	atomic_fetch_sub_explicit(&usm_count, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&usm_bytes, before - 1, memory_order_relaxed);
	tell_usm();
}

static void begin(const char *name)
{
	if (xs_recording())
		sycl_begin(sycl_name(SYCL_PLAIN, name));
}

/*
 * Memory that the runtime makes for a buffer comes without an event, and is the buffer's; USM comes
 * with one.
 */
void sycl_alloc_begin(uint16_t type, const struct xpti_event *parent,
		      const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)instance, (void)data;
	begin(event ? "mem_alloc" : "mem_alloc (buffer)");
}

void sycl_alloc_end(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		    uint64_t instance, const void *data)
{
	struct sycl_facts facts;

	(void)type, (void)parent, (void)instance, (void)data;
	sycl_end();
	if (!event)
		return;
	sycl_facts_of(event, &facts);
	usm_allocated(facts.pointer, facts.size);
}

void sycl_release_begin(uint16_t type, const struct xpti_event *parent,
			const struct xpti_event *event, uint64_t instance, const void *data)
{
	struct sycl_facts facts;

	(void)type, (void)parent, (void)instance, (void)data;
	if (event) {
		/* before another thread can be given the same address */
		sycl_facts_of(event, &facts);
		usm_released(facts.pointer);
	}
	begin(event ? "mem_release" : "mem_release (buffer)");
}

void sycl_release_end(uint16_t type, const struct xpti_event *parent,
		      const struct xpti_event *event, uint64_t instance, const void *data)
{
	(void)type, (void)parent, (void)event, (void)instance, (void)data;
	sycl_end();
}

/* ---- buffers ---- */

/* What the buffer's elements need; 0: that cannot be. */
static uint64_t bytes_of(const struct xpti_buffer *buffer)
{
	uint64_t bytes = buffer->element_size;

	for (uint32_t i = 0; i < buffer->dimensions && i < 3; i++)
		if (__builtin_mul_overflow(bytes, buffer->range[i], &bytes))
			return 0;
	return bytes < 1ull << 62 ? bytes : 0;
}

static void mark_buffer(const char *name, const struct xpti_event *event, uint64_t handle,
			const char *what, uint64_t number)
{
	const struct xpti_payload *payload = sycl_payload_of(event);
	uint32_t id = xs_name(name, sycl_domain()), buffer = xs_name("buffer", 0),
		 key = xs_name(what, 0), file = xs_name("source_file", 0),
		 line = xs_name("line", 0);
	struct sycl_args args;

	if (!sycl_args_begin(&args, XS_INSTANT, id))
		return;
	sycl_arg_number(&args, buffer, handle);
	sycl_arg_number(&args, key, number);
	if (payload && payload->file && payload->file[0] && payload->file[0] != '<') {
		sycl_arg_text(&args, file, payload->file);
		sycl_arg_number(&args, line, payload->line);
	}
	sycl_args_end(&args);
}

void sycl_buffer_create(uint16_t type, const struct xpti_event *parent,
			const struct xpti_event *event, uint64_t instance, const void *data)
{
	const struct xpti_buffer *buffer = data;
	uint64_t bytes, before;

	(void)type, (void)parent, (void)instance;
	if (!buffer || !buffer->user || !sycl_facts_on())
		return;
	bytes = bytes_of(buffer);
	before = exchange(&buffers, buffer->user, (int64_t)bytes);
	atomic_fetch_add_explicit(&buffer_bytes, bytes - (before ? before - 1 : 0),
				  memory_order_relaxed);
	if (!xs_recording())
		return;
	mark_buffer("buffer_create", event, buffer->user, "bytes", bytes);
	sycl_counter(buffer_name(), atomic_load_explicit(&buffer_bytes, memory_order_relaxed));
}

void sycl_buffer_destroy(uint16_t type, const struct xpti_event *parent,
			 const struct xpti_event *event, uint64_t instance, const void *data)
{
	const struct xpti_buffer *buffer = data;
	uint64_t before;

	(void)type, (void)parent, (void)event, (void)instance;
	if (!buffer || !buffer->user || !sycl_facts_on())
		return;
	before = exchange(&buffers, buffer->user, -1);
	if (!before)
		return;
	atomic_fetch_sub_explicit(&buffer_bytes, before - 1, memory_order_relaxed);
	if (!xs_recording())
		return;
	mark_buffer("buffer_destroy", NULL, buffer->user, "bytes", before - 1);
	sycl_counter(buffer_name(), atomic_load_explicit(&buffer_bytes, memory_order_relaxed));
}

void sycl_accessor(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		   uint64_t instance, const void *data)
{
	const struct xpti_accessor *accessor = data;

	(void)type, (void)parent, (void)instance;
	if (accessor && sycl_facts_on() && xs_recording())
		mark_buffer("accessor", event, accessor->buffer, "mode", accessor->mode);
}
