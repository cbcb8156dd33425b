/* SYCL's buffers and images: as marks; of buffers a counter of what is in use, which is kept while
 * nothing is recorded, too. */
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

#define KEYS_MAX 5u

/* Of a buffer or an image (`what`); the first `count` of the keys stand for as many numbers. */
static void mark(const char *name, const char *what, const struct xpti_event *event,
		 uint64_t handle, const char *const *keys, const uint64_t *numbers, uint32_t count)
{
	const struct xpti_payload *payload = sycl_payload_of(event);
	uint32_t id = xs_name(name, sycl_domain()), object = xs_name(what, 0),
		 file = xs_name("source_file", 0), line = xs_name("line", 0), key[KEYS_MAX] = { 0 };
	struct sycl_args args;

	for (uint32_t i = 0; i < count; i++)
		key[i] = xs_name(keys[i], 0);
	if (!sycl_args_begin(&args, XS_INSTANT, id))
		return;
	sycl_arg_number(&args, object, handle);
	for (uint32_t i = 0; i < count; i++)
		sycl_arg_number(&args, key[i], numbers[i]);
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
	mark("buffer_create", "buffer", event, buffer->user, (const char *const[]){ "bytes" },
	     &bytes, 1);
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
	before--;
	mark("buffer_destroy", "buffer", NULL, buffer->user, (const char *const[]){ "bytes" },
	     &before, 1);
	sycl_counter(buffer_name(), atomic_load_explicit(&buffer_bytes, memory_order_relaxed));
}

void sycl_accessor(uint16_t type, const struct xpti_event *parent, const struct xpti_event *event,
		   uint64_t instance, const void *data)
{
	const struct xpti_accessor *accessor = data;

	(void)type, (void)parent, (void)instance;
	if (accessor && sycl_facts_on() && xs_recording())
		mark("accessor", "buffer", event, accessor->buffer, (const char *const[]){ "mode" },
		     (uint64_t[]){ accessor->mode }, 1);
}

/* ---- images ---- */

void sycl_image_create(uint16_t type, const struct xpti_event *parent,
		       const struct xpti_event *event, uint64_t instance, const void *data)
{
	static const char *const keys[] = { "format", "sampled", "width", "height", "depth" };
	const struct xpti_image *image = data;
	uint32_t dimensions;

	(void)type, (void)parent, (void)instance;
	if (!image || !sycl_facts_on() || !xs_recording())
		return;
	dimensions = image->dimensions < 3 ? image->dimensions : 3;
	mark("image_create", "image", event, image->user, keys,
	     (uint64_t[]){ image->format, image->filtering.there != 0, image->range[0],
			   image->range[1], image->range[2] },
	     2 + dimensions);
}

void sycl_image_destroy(uint16_t type, const struct xpti_event *parent,
			const struct xpti_event *event, uint64_t instance, const void *data)
{
	const struct xpti_image *image = data;

	(void)type, (void)parent, (void)event, (void)instance;
	if (image && sycl_facts_on() && xs_recording())
		mark("image_destroy", "image", NULL, image->user, NULL, NULL, 0);
}

void sycl_image_accessor(uint16_t type, const struct xpti_event *parent,
			 const struct xpti_event *event, uint64_t instance, const void *data)
{
	static const char *const keys[] = { "mode" };
	const struct xpti_image_accessor *accessor = data;

	(void)type, (void)parent, (void)instance;
	if (accessor && sycl_facts_on() && xs_recording())
		mark("image_accessor", "image", event, accessor->image, keys,
		     (uint64_t[]){ accessor->mode.value }, accessor->mode.there != 0);
}
