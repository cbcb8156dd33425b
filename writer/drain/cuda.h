/*
 * CUDA's activity in the drain process: the buffers of a traced process, from the first one to the
 * last. What their records mean is meaning/cuda_activity.h's.
 */
#ifndef XS_DRAIN_CUDA_H
#define XS_DRAIN_CUDA_H

#include "cuda_activity.h"

/* Before the process's rings are read: which buffers are full by now. */
void xs_cuda_look(struct xs_process *process);
/* Has somebody cut a buffer's file while it was mapped? */
bool xs_cuda_is_cut(const struct xs_process *process);
/* Is there something to read, now or later? */
bool xs_cuda_is_there(const struct xs_process *process);
/* After that: reads them. all: the process has ended. Returns the bytes read. */
uint64_t xs_cuda_read(struct xs_process *process, bool all);
/* The last step of a commit. */
void xs_cuda_release(struct xs_process *process);
/*
 * In the process that writes a dump, behind its history: what CUPTI has not handed back yet, and
 * whatever still waits for its call.
 */
void xs_cuda_read_newest(struct xs_process *process);
/* The process has ended and all is read: what is missing. */
void xs_cuda_finish(struct xs_process *process);
void xs_cuda_remove_files(const struct xs_process *process);
/* The buffers are not needed any more. */
void xs_cuda_unmap(struct xs_process *process);
void xs_cuda_free(struct xs_process *process);

/* ---- cuda_kept.c ---- */

/* The first step of a commit, see xs_process_commit(). */
bool xs_cuda_is_dirty(const struct xs_process *process);
void xs_cuda_save(struct xs_process *process, uint64_t turn);
/* Recovering: takes what the killed drain process has kept. */
void xs_cuda_restore(struct xs_process *process);

#endif
