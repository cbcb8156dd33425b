/*
 * Streamers: a report for each period of the device's time, made when it is read, from the history
 * of which kernels ran when. A period is reported once no kernel that began in it is still running,
 * so that what a report says is the whole truth.
 */
#include "metrics.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNNING_MAX = 64, HISTORY_MAX = 1 << 16 };

struct past {
	uint64_t start, end, address;
	uint32_t groups;
};

struct streamer {
	struct streamer *next;
	struct metric_group *group;
	struct sg_event *event;
	uint64_t period, from; /* ticks; from: where the next report starts */
	uint64_t number;       /* of the next report of a stall */
	uint32_t notify;
	struct past *history;
	uint32_t first, count; /* of the history, a ring */
	pthread_t thread;
	bool stop;
};

_Atomic uint32_t sg_streamers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct streamer *streamers;
static struct {
	const struct sg_device *device;
	uint64_t start;
} running[RUNNING_MAX];

/* A kernel is about to start: a place for it to be passed to sg_stream_end(), or -1. */
int sg_stream_begin(const struct sg_device *device)
{
	uint64_t start;
	int place = -1;

	(void)pthread_mutex_lock(&lock);
	/*
	 * with the lock held: no period that it begins in can be taken for known before it has its
	 * place
	 */
	start = sg_device_ticks();
	for (int i = 0; i < RUNNING_MAX && place < 0; i++) {
		if (running[i].device)
			continue;
		running[i].device = device->root;
		running[i].start = start;
		place = i;
	}
	(void)pthread_mutex_unlock(&lock);
	return place;
}

void sg_stream_end(int place, const struct sg_device *device, const struct sg_cmd *cmd,
		   const struct sg_span *span)
{
	struct past past = { span->start, span->end,
			     (uint64_t)(uintptr_t)cmd->kernel->run & ~0xfull,
			     cmd->groups[0] * cmd->groups[1] * cmd->groups[2] };

	(void)pthread_mutex_lock(&lock);
	if (place >= 0)
		running[place].device = NULL;
	for (struct streamer *streamer = streamers; streamer; streamer = streamer->next) {
		if (streamer->group->device != device->root)
			continue;
		streamer->history[(streamer->first + streamer->count) % HISTORY_MAX] = past;
		if (streamer->count < HISTORY_MAX)
			streamer->count++;
		else
			streamer->first = (streamer->first + 1) % HISTORY_MAX;
	}
	(void)pthread_mutex_unlock(&lock);
}

/* Up to where reports can be made. */
static uint64_t known_until(const struct streamer *streamer)
{
	uint64_t until = sg_device_ticks();

	for (int i = 0; i < RUNNING_MAX; i++)
		if (running[i].device == streamer->group->device && running[i].start < until)
			until = running[i].start;
	return until;
}

static uint64_t overlap(const struct past *past, uint64_t start, uint64_t end)
{
	uint64_t from = past->start > start ? past->start : start,
		 to = past->end < end ? past->end : end;

	return to > from ? to - from : 0;
}

/* The report of the period from `start`; of stalls, none when nothing ran at its start. */
static bool report_make(struct streamer *streamer, uint64_t start, struct report *ret)
{
	uint64_t end = start + streamer->period;

	*ret = (struct report){ .start = start, .end = end };
	for (uint32_t i = 0; i < streamer->count; i++) {
		const struct past *past = &streamer->history[(streamer->first + i) % HISTORY_MAX];

		if (streamer->group->stalls) {
			if (past->start > start || past->end <= start)
				continue;
			ret->address = (past->address & 0xffffffff) + 8 * (streamer->number % 4);
			ret->launches = streamer->number++;
			return true;
		}
		ret->busy += overlap(past, start, end);
		if (past->end > start && past->end <= end) {
			ret->launches++;
			ret->groups += past->groups;
		}
	}
	if (ret->busy > streamer->period)
		ret->busy = streamer->period; /* several at once */
	return !streamer->group->stalls;
}

static void forget(struct streamer *streamer)
{
	while (streamer->count && streamer->history[streamer->first].end <= streamer->from) {
		streamer->first = (streamer->first + 1) % HISTORY_MAX;
		streamer->count--;
	}
}

static uint64_t available(const struct streamer *streamer)
{
	uint64_t until = known_until(streamer);

	return until > streamer->from ? (until - streamer->from) / streamer->period : 0;
}

/* Tells the program that there is something to read. */
static void *notify(void *arg)
{
	struct streamer *streamer = arg;
	bool stop = false;

	while (!stop) {
		const struct timespec pause = { 0, 500000 };
		bool ready;

		(void)nanosleep(&pause, NULL);
		(void)pthread_mutex_lock(&lock);
		stop = streamer->stop;
		ready = streamer->notify && available(streamer) >= streamer->notify;
		(void)pthread_mutex_unlock(&lock);
		if (ready && !stop && !sg_event_ready(streamer->event)) {
			uint64_t now = sg_device_ticks();

			sg_event_signal(streamer->event,
					&(struct sg_span){ .start = now, .end = now }, 0, 0);
		}
	}
	return NULL;
}

static bool thread_start(struct streamer *streamer)
{
	sigset_t all, before;
	bool started;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	started = !pthread_create(&streamer->thread, NULL, notify, streamer);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

ze_result_t sg_zetMetricStreamerOpen(zet_context_handle_t context, zet_device_handle_t device,
				     zet_metric_group_handle_t group,
				     zet_metric_streamer_desc_t *desc, ze_event_handle_t event,
				     zet_metric_streamer_handle_t *ret)
{
	struct streamer *streamer;

	SG_ENTER_WITH(context && device && group, desc && ret);
	if (((struct metric_group *)group)->sampling !=
	    ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	if (!atomic_load(&((struct metric_group *)group)->active))
		return ZE_RESULT_NOT_READY;
	streamer = calloc(1, sizeof(*streamer));
	if (!streamer || !(streamer->history = malloc(HISTORY_MAX * sizeof(*streamer->history)))) {
		free(streamer);
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	}
	streamer->group = (struct metric_group *)group;
	streamer->event = (struct sg_event *)event;
	streamer->notify = desc->notifyEveryNReports;
	streamer->period = sg_ticks_of(desc->samplingPeriod);
	streamer->from = sg_device_ticks();
	if (event && !thread_start(streamer)) {
		free(streamer->history);
		free(streamer);
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	}
	(void)pthread_mutex_lock(&lock);
	streamer->next = streamers;
	streamers = streamer;
	(void)pthread_mutex_unlock(&lock);
	atomic_fetch_add(&sg_streamers, 1);
	*ret = (zet_metric_streamer_handle_t)streamer;
	return SG_OK;
}

ze_result_t sg_zetMetricStreamerClose(zet_metric_streamer_handle_t handle)
{
	struct streamer *streamer = (struct streamer *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	atomic_fetch_sub(&sg_streamers, 1);
	(void)pthread_mutex_lock(&lock);
	streamer->stop = true;
	for (struct streamer **at = &streamers; *at; at = &(*at)->next) {
		if (*at == streamer) {
			*at = streamer->next;
			break;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	if (streamer->event)
		(void)pthread_join(streamer->thread, NULL);
	free(streamer->history);
	free(streamer);
	return SG_OK;
}

ze_result_t sg_zetMetricStreamerReadData(zet_metric_streamer_handle_t handle, uint32_t most,
					 size_t *size, uint8_t *data)
{
	struct streamer *streamer = (struct streamer *)handle;
	uint64_t count;
	size_t used = 0;

	SG_ENTER_WITH(handle, size);
	(void)pthread_mutex_lock(&lock);
	count = available(streamer);
	if (count > most)
		count = most;
	if (!*size || !data) {
		*size = count * sizeof(struct report);
	} else {
		for (; count && used + sizeof(struct report) <= *size; count--) {
			struct report report;

			if (report_make(streamer, streamer->from, &report)) {
				memcpy(data + used, &report, sizeof(report));
				used += sizeof(report);
			}
			streamer->from += streamer->period;
			forget(streamer);
		}
		*size = used;
	}
	(void)pthread_mutex_unlock(&lock);
	return SG_OK;
}
