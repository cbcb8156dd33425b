/* SYCL's buffers: as marks, and a counter of what is in use, which is kept while nothing is
 * recorded, too. */
#include "sycl.h"

static struct xs_handles buffers = { .size = 256 };
static _Atomic uint64_t buffer_bytes;

static uint32_t buffer_name(void)
{
	static _Atomic uint32_t name;

	if (!atomic_load_explicit(&name, memory_order_relaxed))
		atomic_store_explicit(&name, xs_name("SYCL buffers in use (bytes)", 0),
				      memory_order_relaxed);
	return atomic_load_explicit(&name, memory_order_relaxed);
}

uint64_t sycl_exchange(struct xs_handles *handles, uint64_t address, uint64_t word)
{
	const void *key = (const void *)(uintptr_t)address;
	_Atomic uint64_t *value = word ? xs_handle_add(handles, key) : xs_handle_find(handles, key);
	uint64_t before;

	if (!value)
		return 0;
	before = atomic_exchange(value, word);
	if (!word)
		xs_handle_remove(handles, key);
	return before;
}

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
	before = sycl_exchange(&buffers, buffer->user, bytes + 1);
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
	before = sycl_exchange(&buffers, buffer->user, 0);
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
