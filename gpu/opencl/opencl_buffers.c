/*
 * OpenCL's command buffers (cl_khr_command_buffer): one command of a queue that runs many. The
 * runtime has times of the whole alone, so it is one slice, whose name tells the kernels in it.
 *
 * Some runtimes (PoCL, Intel's for processors) enqueue the commands one by one and give the event
 * of a marker behind them, whose own times are a moment. So a marker of ours goes ahead: it ends
 * when the buffer may begin.
 */
#include "handles.h"
#include "opencl.h"

#define SHOWN 6u /* different kernels in a name */

struct buffer {
	cl_command_queue queue; /* its first one; NULL: not known */
	/* in the order in which they came first; 0: none */
	_Atomic uint32_t names[SHOWN], counts[SHOWN];
	_Atomic uint32_t more; /* launches of further kernels */
	_Atomic uint32_t name; /* of the whole, once it has run; 0: not made yet */
};

static struct xs_handles buffers = { .size = 1024 }; /* struct buffer * */

void xs_cl_buffer_made(cl_command_buffer_khr handle, cl_uint queue_count,
		       const cl_command_queue *list)
{
	_Atomic uint64_t *slot = xs_handle_add(&buffers, handle);
	struct buffer *buffer;

	if (!slot)
		return;
	/* a handle that comes again is another buffer */
	buffer = (void *)(uintptr_t)atomic_load_explicit(slot, memory_order_acquire);
	if (!buffer)
		buffer = xs_arena(sizeof(*buffer));
	if (!buffer)
		return;
	memset((void *)buffer, 0, sizeof(*buffer));
	buffer->queue = queue_count && list ? list[0] : NULL;
	atomic_store_explicit(slot, (uint64_t)(uintptr_t)buffer, memory_order_release);
}

static void add(_Atomic uint32_t *count)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

void xs_cl_buffer_kernel(cl_command_buffer_khr handle, cl_kernel kernel)
{
	struct buffer *buffer = xs_handle_get(&buffers, handle);
	const struct xs_cl_queue *queue = buffer ? xs_cl_queue_of(buffer->queue) : NULL;
	const struct xs_cl_kernel *known = queue ? xs_cl_kernel_of(kernel, queue) : NULL;

	if (!known)
		return;
	atomic_store_explicit(&buffer->name, 0, memory_order_relaxed);
	for (uint32_t i = 0; i < SHOWN; i++) {
		uint32_t name = 0;

		if (atomic_compare_exchange_strong(&buffer->names[i], &name, known->name) ||
		    name == known->name) {
			add(&buffer->counts[i]);
			return;
		}
	}
	add(&buffer->more);
}

cl_command_queue xs_cl_buffer_queue(cl_command_buffer_khr handle, cl_uint queue_count,
				    const cl_command_queue *list)
{
	const struct buffer *buffer;

	if (queue_count && list)
		return list[0];
	buffer = xs_handle_get(&buffers, handle);
	return buffer ? buffer->queue : NULL;
}

static struct xs_part part(const char *text)
{
	return (struct xs_part){ text, (uint32_t)strlen(text) };
}

/* " x" and the number; empty: 1. */
static struct xs_part times(char text[static 16], uint32_t count)
{
	char *end = text + 16, *o = end;

	if (count <= 1)
		return (struct xs_part){ text, 0 };
	do
		*--o = (char)('0' + count % 10);
	while (count /= 10);
	*--o = 'x';
	*--o = ' ';
	return (struct xs_part){ o, (uint32_t)(end - o) };
}

static uint32_t name_of(struct buffer *buffer)
{
	struct xs_part parts[3 * SHOWN + 4];
	char counts[SHOWN + 1][16];
	uint32_t more = atomic_load_explicit(&buffer->more, memory_order_relaxed), n = 0;

	parts[n++] = part("command buffer");
	for (uint32_t i = 0; i < SHOWN; i++) {
		uint32_t name = atomic_load_explicit(&buffer->names[i], memory_order_relaxed);

		if (!name)
			break;
		parts[n++] = part(i ? ", " : " (");
		parts[n++] = xs_text_of_name(name);
		parts[n++] = times(counts[i],
				   atomic_load_explicit(&buffer->counts[i], memory_order_relaxed));
	}
	if (more) {
		parts[n++] = part(", others");
		parts[n++] = times(counts[SHOWN], more);
	}
	if (n > 1)
		parts[n++] = part(")");
	return xs_name_parts(parts, n, 0);
}

void xs_cl_buffer(struct xs_cl_work *work, cl_command_buffer_khr handle, cl_uint wait_count,
		  const cl_event *waits)
{
	struct buffer *buffer = work->queue ? xs_handle_get(&buffers, handle) : NULL;

	if (!buffer)
		return;
	work->name = atomic_load_explicit(&buffer->name, memory_order_relaxed);
	if (!work->name) {
		work->name = name_of(buffer);
		atomic_store_explicit(&buffer->name, work->name, memory_order_relaxed);
	}
	if (xs_cl_target.clEnqueueMarkerWithWaitList(work->queue->handle, wait_count, waits,
						     &work->before))
		work->before = NULL;
}
