/*
 * Which call put a piece of work on a device: by the correlation id that both records have.
 *
 * The table has a fixed size. A call whose place is needed for a newer one is forgotten; its work,
 * if it comes later, is shown without its call.
 */
#include <stdlib.h>

#include "cuda_activity.h"
#include "device_record.h"

struct xs_cuda *xs_cuda_of(struct xs_process *process)
{
	if (!process->cuda)
		process->cuda = calloc(1, sizeof(*process->cuda));
	if (process->cuda && !process->cuda->calls)
		process->cuda->calls = calloc(XS_CUDA_CALLS, sizeof(*process->cuda->calls));
	return process->cuda && process->cuda->calls ? process->cuda : NULL;
}

static struct xs_cuda_call *place_of(const struct xs_cuda *cuda, uint32_t correlation)
{
	struct xs_cuda_call *call = &cuda->calls[correlation % XS_CUDA_CALLS];

	if (call->correlation != correlation)
		*call = (struct xs_cuda_call){ .correlation = correlation };
	return call;
}

/* A launch has the record of a kernel: within it the runtime may copy something, too. */
static uint32_t joined_of(const struct xs_cuda_call *call)
{
	uint32_t launches = call->kernels < call->launches ? call->kernels : call->launches;
	uint32_t rest = call->kernels - launches + call->others;

	return launches + (rest < call->awaited ? rest : call->awaited);
}

void xs_cuda_enqueued(struct xs_track *track, const struct xs_event *event, uint32_t size)
{
	const struct xs_enqueued_record *record = (const void *)event;
	struct xs_cuda *cuda;
	struct xs_cuda_call *call;
	uint32_t joined;

	if (size < sizeof(*record))
		return;
	cuda = xs_cuda_of(track->process);
	if (!cuda)
		return;
	call = place_of(cuda, record->correlation);
	joined = joined_of(call);
	call->tick = event->tick;
	call->host_ticks = record->host_ticks;
	call->tid = track->tid;
	call->name = event->name;
	call->launch = event->flags & XS_ENQUEUED_FLAG_LAUNCH;
	call->alone = event->flags & XS_ENQUEUED_FLAG_ALONE;
	call->several = call->known;
	call->known = true;
	if (call->launch)
		call->launches++;
	else if (event->flags & XS_ENQUEUED_FLAG_AWAITED)
		call->awaited++;
	else
		return;
	cuda->awaited++;
	cuda->joined += joined_of(call) - joined;
}

void xs_cuda_ended(struct xs_cuda *cuda, uint32_t correlation, bool kernel)
{
	struct xs_cuda_call *call = place_of(cuda, correlation);
	uint32_t joined = joined_of(call);

	if (kernel)
		call->kernels++;
	else
		call->others++;
	cuda->joined += joined_of(call) - joined;
}

struct xs_cuda_call *xs_cuda_call_of(const struct xs_cuda *cuda, uint32_t correlation)
{
	struct xs_cuda_call *call = &cuda->calls[correlation % XS_CUDA_CALLS];

	return call->known && call->correlation == correlation ? call : NULL;
}

void xs_cuda_external(struct xs_process *process, uint32_t correlation, uint8_t kind, uint64_t id)
{
	struct xs_cuda_call *call = place_of(process->cuda, correlation);

	call->external = (uint8_t)(kind + 1);
	call->external_id = id;
}

uint32_t xs_cuda_number(struct xs_process *process)
{
	uint32_t number = ++process->cuda->serial;

	if (process->kept && !process->run->recovering)
		process->kept->numbers.work = number;
	return number;
}

/* ---- what the traced process has told ---- */

uint32_t xs_cuda_text(const struct xs_cuda *cuda, enum xs_activity_text text)
{
	return __atomic_load_n(&cuda->file->text[text], __ATOMIC_RELAXED);
}

uint32_t xs_cuda_name_of(const struct xs_cuda *cuda, uint64_t pointer)
{
	for (uint32_t n = 0; pointer && n < XS_ACTIVITY_PROBES; n++) {
		const struct xs_activity_name *at =
			&cuda->file->name[xs_activity_place(pointer, n) & (XS_ACTIVITY_NAMES - 1)];
		uint64_t there = atomic_load_explicit(&at->pointer, memory_order_acquire);

		if (there == pointer)
			return atomic_load_explicit(&at->name, memory_order_relaxed);
		if (!there)
			return 0;
	}
	return 0;
}

static uint32_t name_of_object(const struct xs_cuda *cuda, uint64_t id)
{
	const struct xs_activity_object *object = xs_activity_object_of(cuda->file, id, false);

	return object ? atomic_load_explicit(&object->name, memory_order_relaxed) : 0;
}

struct xs_named xs_cuda_named(const struct xs_process *process,
			      const struct xs_device_record *record)
{
	const struct xs_cuda *cuda = process->cuda;
	uint32_t device = record->device % XS_ACTIVITY_DEVICES;
	uint64_t queue = record->queue_handle;
	struct xs_named named = { 0 };

	/* a ring says that there is CUDA, and there is none */
	if (!cuda || !cuda->file)
		return named;
	named.device =
		atomic_load_explicit(&cuda->file->device[device].given, memory_order_acquire);
	for (int i = 0; i < 2; i++)
		named.uuid[i] = atomic_load_explicit(&cuda->file->device[device].uuid[i],
						     memory_order_relaxed);
	/* pairs with the release in the collector's name_object() */
	if (atomic_load_explicit(&cuda->file->objects, memory_order_acquire)) {
		named.queue = name_of_object(cuda, queue);
		named.context = name_of_object(cuda, queue | XS_ACTIVITY_CONTEXT);
	}
	return named;
}
