/* Events: how often one was recorded is counted, so that one that is recorded anew is waited for.
 */
#include "driver.h"

#include <sched.h>
#include <stdlib.h>

static _Atomic uint32_t last_id;
static _Atomic uint64_t last_sync;

CUresult impl_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	struct sc_event *event;

	if (!sc_current())
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	event = calloc(1, sizeof(*event));
	event->id = atomic_fetch_add(&last_id, 1) + 1;
	event->flags = Flags;
	event->context = sc_current();
	*phEvent = (CUevent)event;
	return CUDA_SUCCESS;
}

CUresult impl_cuEventDestroy_v2(CUevent hEvent)
{
	if (!hEvent)
		return CUDA_ERROR_INVALID_HANDLE;
	/* its recording may still be on its way: the object stays */
	return CUDA_SUCCESS;
}

bool sc_event_done(const struct sc_event *event)
{
	return atomic_load(&event->done) >= atomic_load(&event->asked);
}

CUresult impl_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	struct sc_event *event = (struct sc_event *)hEvent;
	struct sc_cmd cmd = { .kind = SC_RECORD, .stream = sc_stream_of(hStream), .event = event };

	(void)flags;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (cmd.stream && cmd.stream->capture) {
		event->captured = cmd.stream->capture;
		return CUDA_SUCCESS;
	}
	event->stream = cmd.stream;
	event->captured = NULL;
	event->sync_id = atomic_fetch_add(&last_sync, 1) + 1;
	cmd.recording = atomic_fetch_add(&event->asked, 1) + 1;
	return sc_submit(&cmd);
}

CUresult impl_cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return impl_cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult impl_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct sc_event *event = (struct sc_event *)hEvent;
	struct sc_cmd cmd = { .kind = SC_WAIT, .stream = sc_stream_of(hStream), .event = event };
	struct sc_synced synced = { .type = 2, .stream = cmd.stream, .event = event };
	CUresult ret;

	(void)Flags;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (cmd.stream && event->captured) { /* the other stream joins the capture */
		cmd.stream->capture = event->captured;
		return CUDA_SUCCESS;
	}
	cmd.recording = atomic_load(&event->asked);
	synced.start = sc_now();
	ret = sc_submit(&cmd);
	synced.end = sc_now();
	if (!ret) {
		synced.context = cmd.stream->context;
		SC_TELL(synced, &synced);
	}
	return ret;
}

CUresult impl_cuEventSynchronize(CUevent hEvent)
{
	struct sc_event *event = (struct sc_event *)hEvent;
	struct sc_synced synced = { .type = 1, .event = event };

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	synced.context = event->context;
	synced.stream = event->stream;
	synced.start = sc_now();
	while (!sc_event_done(event) && !event->context->device->lost)
		sched_yield();
	synced.end = sc_now();
	SC_TELL(synced, &synced);
	return event->context->device->lost ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

CUresult impl_cuEventQuery(CUevent hEvent)
{
	if (!hEvent)
		return CUDA_ERROR_INVALID_HANDLE;
	return sc_event_done((struct sc_event *)hEvent) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult impl_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	const struct sc_event *first = (struct sc_event *)hStart, *last = (struct sc_event *)hEnd;

	if (!first || !last || !first->asked || !last->asked)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!sc_event_done(first) || !sc_event_done(last))
		return CUDA_ERROR_NOT_READY;
	*pMilliseconds = (float)((double)(int64_t)(last->time_ns - first->time_ns) / 1e6);
	return CUDA_SUCCESS;
}

CUresult impl_cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return impl_cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}
