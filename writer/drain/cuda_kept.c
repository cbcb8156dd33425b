/*
 * How far CUDA's buffers are read, beside the state of the rings: for --recover.
 */
#include "cuda.h"

#include <string.h>

bool xs_cuda_is_dirty(const struct xs_process *process)
{
	return process->cuda && process->cuda->dirty;
}

static struct xs_kept_activity *kept_of(const struct xs_process *process)
{
	return process->kept && process->cuda && process->cuda->dirty ? &process->kept->activity
								      : NULL;
}

void xs_cuda_save(struct xs_process *process)
{
	struct xs_kept_activity *kept = kept_of(process);
	uint32_t state;

	if (!kept)
		return;
	state = atomic_load_explicit(&kept->state, memory_order_relaxed);
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++)
		kept->consumed[state == XS_SAVED_0][i] = (uint64_t)process->cuda->buffer[i].turn
								 << 32 |
							 process->cuda->buffer[i].consumed;
	memcpy(kept->used[state == XS_SAVED_0], &process->cuda->used[XS_TEXT_USED_DEVICE],
	       sizeof(kept->used[0]));
	atomic_store_explicit(&kept->state,
			      state == XS_SAVED_0 ? XS_SAVED_0_NEXT_1 : XS_SAVED_1_NEXT_0,
			      memory_order_release);
}

static void settle(struct xs_kept_activity *kept)
{
	uint32_t state = atomic_load_explicit(&kept->state, memory_order_relaxed);

	if (state == XS_SAVED_0_NEXT_1)
		atomic_store_explicit(&kept->state, XS_SAVED_1, memory_order_release);
	else if (state == XS_SAVED_1_NEXT_0)
		atomic_store_explicit(&kept->state, XS_SAVED_0, memory_order_release);
}

void xs_cuda_settle(struct xs_process *process)
{
	struct xs_kept_activity *kept = kept_of(process);

	if (kept)
		settle(kept);
}

void xs_cuda_restore(struct xs_process *process)
{
	struct xs_kept_activity *kept = process->kept ? &process->kept->activity : NULL;
	uint32_t state;

	if ((!process->run->recovering && !process->run->cuts) || !kept)
		return;
	if (atomic_load(&process->kept->committed) & 1)
		settle(kept);
	state = atomic_load(&kept->state);
	if (state == XS_SAVED_0_NEXT_1 || state == XS_SAVED_1_NEXT_0)
		state = state == XS_SAVED_0_NEXT_1 ? XS_SAVED_0 : XS_SAVED_1;
	atomic_store(&kept->state, state);
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		uint64_t consumed = kept->consumed[state == XS_SAVED_1][i];

		process->cuda->buffer[i].turn = (uint32_t)(consumed >> 32);
		process->cuda->buffer[i].consumed = (uint32_t)consumed;
	}
	memcpy(&process->cuda->used[XS_TEXT_USED_DEVICE], kept->used[state == XS_SAVED_1],
	       sizeof(kept->used[0]));
	process->cuda->serial = process->kept->numbers.work;
}
