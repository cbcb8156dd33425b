/* Streams: each has a worker of its own, which executes commands in their order; with SOFTCUDA_SYNC
 * they are executed in the call that submits them. The default stream waits for the others of its
 * context, and they for it. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { RING = 256 };
enum { STREAM_CREATED = 3, STREAM_DESTROY_STARTING = 4 }; /* as CUPTI's resource callbacks */

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_id;

struct sc_stream *sc_stream_make(struct sc_context *context, unsigned flags, int priority)
{
	struct sc_stream *stream = calloc(1, sizeof(*stream));

	stream->context = context;
	stream->flags = flags;
	stream->priority = priority;
	(void)pthread_mutex_init(&stream->lock, NULL);
	(void)pthread_cond_init(&stream->more, NULL);
	(void)pthread_cond_init(&stream->less, NULL);
	(void)pthread_mutex_lock(&streams_lock);
	last_id += last_id == 7 ? 6 : last_id ? 1 : 7; /* 7, 13, 14 ...: as is usual */
	stream->id = last_id;
	stream->next = context->streams;
	context->streams = stream;
	(void)pthread_mutex_unlock(&streams_lock);
	SC_TELL(resource, STREAM_CREATED, context, stream, NULL);
	return stream;
}

static void *work(void *arg)
{
	struct sc_stream *stream = arg;

	(void)pthread_mutex_lock(&stream->lock);
	for (;;) {
		while (stream->head == stream->tail && !stream->leaving)
			(void)pthread_cond_wait(&stream->more, &stream->lock);
		if (stream->head == stream->tail)
			break;
		(void)pthread_mutex_unlock(&stream->lock);
		sc_execute(&stream->ring[stream->tail % RING]);
		(void)pthread_mutex_lock(&stream->lock);
		stream->tail++;
		(void)pthread_cond_broadcast(&stream->less);
	}
	(void)pthread_mutex_unlock(&stream->lock);
	return NULL;
}

bool sc_stream_idle(struct sc_stream *stream)
{
	bool idle;

	(void)pthread_mutex_lock(&stream->lock);
	idle = stream->head == stream->tail;
	(void)pthread_mutex_unlock(&stream->lock);
	return idle;
}

CUresult sc_stream_drain(struct sc_stream *stream)
{
	(void)pthread_mutex_lock(&stream->lock);
	while (stream->head != stream->tail)
		(void)pthread_cond_wait(&stream->less, &stream->lock);
	(void)pthread_mutex_unlock(&stream->lock);
	return stream->context->device->lost ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

void sc_stream_end(struct sc_stream *stream)
{
	struct sc_stream **link = &stream->context->streams;

	SC_TELL(resource, STREAM_DESTROY_STARTING, stream->context, stream, NULL);
	(void)pthread_mutex_lock(&stream->lock);
	stream->leaving = true;
	(void)pthread_cond_signal(&stream->more);
	(void)pthread_mutex_unlock(&stream->lock);
	if (stream->working)
		(void)pthread_join(stream->worker, NULL);
	(void)pthread_mutex_lock(&streams_lock);
	while (*link && *link != stream)
		link = &(*link)->next;
	if (*link)
		*link = stream->next;
	(void)pthread_mutex_unlock(&streams_lock);
	/* another thread may be looking at the stream, to wait for it: only its ring goes */
	free(stream->ring);
	stream->ring = NULL;
}

/* 0, 1 and 2 are the default streams */
struct sc_stream *sc_stream_of(CUstream handle)
{
	struct sc_context *context = sc_current();

	if ((uintptr_t)handle > 2)
		return (struct sc_stream *)handle;
	return context ? context->null_stream : NULL;
}

/* what the default stream and the others wait for, before a command of theirs is taken */
static void wait_for_others(struct sc_stream *stream)
{
	struct sc_context *context = stream->context;

	if (stream == context->null_stream) {
		for (struct sc_stream *at = context->streams; at; at = at->next)
			if (at != stream && !(at->flags & CU_STREAM_NON_BLOCKING))
				(void)sc_stream_drain(at);
	} else if (!(stream->flags & CU_STREAM_NON_BLOCKING)) {
		(void)sc_stream_drain(context->null_stream);
	}
}

/* arguments go with the command, if their sizes are known; else it must be executed now */
bool sc_keep_args(struct sc_cmd *kept)
{
	unsigned at = 0;

	if (kept->kind != SC_KERNEL)
		return true;
	if (!kept->function->sized)
		return !kept->function->run;
	for (unsigned i = 0; i < kept->function->info.arg_count; i++) {
		unsigned size = kept->function->info.arg_sizes[i];

		at = (at + 7) / 8 * 8;
		if (at + size > sizeof(kept->arg_bytes))
			return false;
		memcpy(&kept->arg_bytes[at], kept->args[i], size);
		kept->arg_at[i] = &kept->arg_bytes[at];
		at += size;
	}
	kept->args = kept->arg_at;
	return true;
}

static void enqueue(struct sc_stream *stream, const struct sc_cmd *cmd)
{
	struct sc_cmd *kept;

	(void)pthread_mutex_lock(&stream->lock);
	if (!stream->working) {
		stream->ring = calloc(RING, sizeof(*stream->ring));
		stream->working = !pthread_create(&stream->worker, NULL, work, stream);
	}
	while (stream->head - stream->tail == RING)
		(void)pthread_cond_wait(&stream->less, &stream->lock);
	kept = &stream->ring[stream->head % RING];
	*kept = *cmd;
	if (kept->kind == SC_KERNEL && kept->args == cmd->arg_at)
		kept->args = kept->arg_at;
	if (sc_keep_args(kept)) {
		stream->head++;
		(void)pthread_cond_signal(&stream->more);
		(void)pthread_mutex_unlock(&stream->lock);
		return;
	}
	while (stream->head != stream->tail)
		(void)pthread_cond_wait(&stream->less, &stream->lock);
	(void)pthread_mutex_unlock(&stream->lock);
	sc_execute((struct sc_cmd *)(uintptr_t)cmd);
}

CUresult sc_submit(struct sc_cmd *cmd)
{
	struct sc_stream *stream = cmd->stream;

	if (!stream)
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	cmd->context = stream->context;
	if (stream->capture)
		return sc_capture(stream, cmd);
	if (stream->context->device->lost)
		return CUDA_ERROR_LAUNCH_FAILED;
	if (sc_slow()) {
		cmd->corr = sc_correlation();
		cmd->thread = sc_thread();
		cmd->queued = cmd->submitted = sc_now();
	}
	if (sc_config.sync) {
		sc_execute(cmd);
		return CUDA_SUCCESS;
	}
	wait_for_others(stream);
	enqueue(stream, cmd);
	return CUDA_SUCCESS;
}

CUresult impl_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	if (!sc_current())
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	*phStream = (CUstream)sc_stream_make(sc_current(), flags, priority);
	return CUDA_SUCCESS;
}

CUresult impl_cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return impl_cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult impl_cuStreamDestroy_v2(CUstream hStream)
{
	if ((uintptr_t)hStream <= 2)
		return CUDA_ERROR_INVALID_HANDLE;
	sc_stream_end((struct sc_stream *)hStream);
	return CUDA_SUCCESS;
}

CUresult impl_cuStreamSynchronize(CUstream hStream)
{
	struct sc_stream *stream = sc_stream_of(hStream);
	struct sc_synced synced = { .type = 3, .stream = stream };
	CUresult ret;

	if (!stream)
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	if (stream->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	synced.context = stream->context;
	synced.start = sc_now();
	ret = sc_stream_drain(stream);
	synced.end = sc_now();
	synced.result = (int)ret;
	SC_TELL(synced, &synced);
	return ret;
}

CUresult impl_cuStreamQuery(CUstream hStream)
{
	struct sc_stream *stream = sc_stream_of(hStream);

	if (!stream)
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	return sc_stream_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult impl_cuStreamGetPriority(CUstream hStream, int *priority)
{
	struct sc_stream *stream = sc_stream_of(hStream);

	*priority = stream ? stream->priority : 0;
	return CUDA_SUCCESS;
}

CUresult impl_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	struct sc_stream *stream = sc_stream_of(hStream);

	*flags = stream ? stream->flags : 0;
	return CUDA_SUCCESS;
}

CUresult impl_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	struct sc_stream *stream = sc_stream_of(hStream);

	*pctx = stream ? (CUcontext)stream->context : NULL;
	return stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult impl_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct sc_cmd cmd = {
		.kind = SC_HOST, .stream = sc_stream_of(hStream), .host = fn, .host_data = userData
	};

	return sc_submit(&cmd);
}
