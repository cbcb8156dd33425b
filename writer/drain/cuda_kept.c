/*
 * How far CUDA's buffers are read, beside the state of the rings: for --recover.
 */
#include "cuda.h"

#include <string.h>

#include "kept.h"

bool xs_cuda_is_dirty(const struct xs_process *process)
{
	return process->cuda && process->cuda->dirty;
}

void xs_cuda_save(struct xs_process *process, uint64_t turn)
{
	struct xs_cuda *cuda = process->cuda;
	struct xs_activity_saved *saved;

	if (!process->kept || !cuda || !cuda->dirty)
		return;
	saved = &process->kept->activity.saved[cuda->next_saved];
	xs_kept_begin_activity(saved, turn);
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++)
		saved->consumed[i] = (uint64_t)cuda->buffer[i].turn << 32 |
				     cuda->buffer[i].consumed;
	memcpy(saved->used, &cuda->used[XS_TEXT_USED_DEVICE], sizeof(saved->used));
	xs_kept_end_activity(saved);
	cuda->next_saved ^= 1;
}

void xs_cuda_restore(struct xs_process *process)
{
	struct xs_kept_activity *kept = process->kept ? &process->kept->activity : NULL;
	struct xs_cuda *cuda = process->cuda;
	const struct xs_activity_saved *saved;
	enum xs_kept_copy counts;

	if ((!process->run->recovering && !process->run->cuts) || !kept)
		return;
	cuda->serial = process->kept->numbers.work;
	/* a spoilt one is in no file that is believed */
	counts = xs_kept_take_activity(kept, process->turn);
	if (counts >= XS_KEPT_NEITHER)
		return;
	cuda->next_saved = counts == XS_KEPT_FIRST;
	saved = &kept->saved[counts];
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		cuda->buffer[i].turn = (uint32_t)(saved->consumed[i] >> 32);
		cuda->buffer[i].consumed = (uint32_t)saved->consumed[i];
	}
	memcpy(&cuda->used[XS_TEXT_USED_DEVICE], saved->used, sizeof(saved->used));
}
