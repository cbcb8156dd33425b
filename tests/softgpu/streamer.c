/*
 * Streamers: a report for each period of the device's time, made when it is read, from the history
 * of which kernels ran when. A period is reported once no kernel that began in it is still running,
 * so that what a report says is the whole truth.
 *
 * The history lies in memory that all processes share which SOFTGPU_SHM names the same file: a
 * streamer of one sees what the others execute.
 */
#include "metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RUNNING_MAX = 64, HISTORY_MAX = 1 << 16 };

struct past {
	uint64_t start, end, address;
	uint32_t device, groups;
};

/* What the processes share; a file of zeros is one in which nothing has happened. */
struct shared {
	_Atomic uint32_t made, streamers;
	pthread_mutex_t lock;
	struct {
		uint64_t start;
		uint32_t device; /* from 1; 0: none */
		pid_t pid;
	} running[RUNNING_MAX];
	uint64_t count; /* of the history, ever */
	struct past history[HISTORY_MAX];
};
static struct shared *shared;

struct streamer {
	struct metric_group *group;
	struct sg_event *event;
	uint64_t period, from;	/* ticks; from: where the next report starts */
	uint64_t first, number; /* in the history; of the next report of a stall */
	uint64_t reports;	/* so far */
	uint32_t notify;
	pthread_t thread;
	bool stop;
};

static void lock_shared(void)
{
	/* a process that was killed left the history as it is: each entry is whole */
	if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD)
		(void)pthread_mutex_consistent(&shared->lock);
}

static void unlock_shared(void)
{
	(void)pthread_mutex_unlock(&shared->lock);
}

static void make_shared(void)
{
	pthread_mutexattr_t attributes;

	(void)pthread_mutexattr_init(&attributes);
	(void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	(void)pthread_mutex_init(&shared->lock, &attributes);
	atomic_store(&shared->made, 1);
}

/* SOFTGPU_SHM; memory of its own where it is not given. False: the file cannot be used. */
bool sg_stream_start(const char *path)
{
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	void *map;

	if (path && (fd < 0 || flock(fd, LOCK_EX) || ftruncate(fd, sizeof(*shared))))
		return false;
	map = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		   path ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);
	if (map == MAP_FAILED)
		return false;
	shared = map;
	if (!atomic_load(&shared->made))
		make_shared();
	if (path) {
		(void)flock(fd, LOCK_UN); /* which the mapping would hold on to */
		close(fd);
	}
	return true;
}

bool sg_streaming(void)
{
	return atomic_load_explicit(&shared->streamers, memory_order_relaxed);
}

/* A kernel is about to start: a place for it to be passed to sg_stream_end(), or -1. */
int sg_stream_begin(const struct sg_device *device)
{
	uint64_t start;
	int place = -1;

	lock_shared();
	/*
	 * with the lock held: no period that it begins in can be taken for known before it has its
	 * place
	 */
	start = sg_device_ticks();
	for (int i = 0; i < RUNNING_MAX && place < 0; i++) {
		if (shared->running[i].device)
			continue;
		shared->running[i].device = (uint32_t)device->root->id + 1;
		shared->running[i].start = start;
		shared->running[i].pid = getpid();
		place = i;
	}
	unlock_shared();
	return place;
}

void sg_stream_end(int place, const struct sg_device *device, const struct sg_cmd *cmd,
		   const struct sg_span *span)
{
	lock_shared();
	if (place >= 0)
		shared->running[place].device = 0;
	shared->history[shared->count % HISTORY_MAX] = (struct past){
		span->start, span->end, (uint64_t)(uintptr_t)cmd->kernel->run & ~0xfull,
		(uint32_t)device->root->id, cmd->groups[0] * cmd->groups[1] * cmd->groups[2]
	};
	shared->count++;
	unlock_shared();
}

/* Up to where reports can be made. */
static uint64_t known_until(const struct streamer *streamer)
{
	uint64_t until = sg_device_ticks();

	until -= until < sg_config.late ? until : sg_config.late;
	for (int i = 0; i < RUNNING_MAX; i++) {
		if (shared->running[i].device != (uint32_t)streamer->group->device->id + 1)
			continue;
		if (kill(shared->running[i].pid, 0) < 0 && errno == ESRCH)
			shared->running[i].device = 0; /* it was killed */
		else if (shared->running[i].start < until)
			until = shared->running[i].start;
	}
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
	for (uint64_t i = streamer->first; i < shared->count; i++) {
		const struct past *past = &shared->history[i % HISTORY_MAX];

		if (past->device != (uint32_t)streamer->group->device->id)
			continue;
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
	if (shared->count - streamer->first > HISTORY_MAX)
		streamer->first = shared->count - HISTORY_MAX;
	while (streamer->first < shared->count &&
	       shared->history[streamer->first % HISTORY_MAX].end <= streamer->from)
		streamer->first++;
}

static uint64_t available(const struct streamer *streamer)
{
	uint64_t until = known_until(streamer);

	return until > streamer->from ? (until - streamer->from) / streamer->period : 0;
}

/* The device has room for so many reports: the oldest are gone. */
static bool overflow(struct streamer *streamer)
{
	uint64_t count = available(streamer);

	if (!sg_config.room || count <= sg_config.room)
		return false;
	streamer->from += (count - sg_config.room) * streamer->period;
	forget(streamer);
	return true;
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
		lock_shared();
		stop = streamer->stop;
		ready = streamer->notify && available(streamer) >= streamer->notify;
		unlock_shared();
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
	if (!(((struct metric_group *)group)->sampling &
	      ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED))
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	if (!atomic_load(&((struct metric_group *)group)->active))
		return ZE_RESULT_NOT_READY;
	(void)usleep(sg_config.open_us);
	streamer = calloc(1, sizeof(*streamer));
	if (!streamer)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	streamer->group = (struct metric_group *)group;
	streamer->event = (struct sg_event *)event;
	streamer->notify = desc->notifyEveryNReports;
	streamer->period = sg_ticks_of(desc->samplingPeriod);
	streamer->from = sg_device_ticks();
	if (event && !thread_start(streamer)) {
		free(streamer);
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	}
	lock_shared();
	streamer->first = shared->count;
	unlock_shared();
	atomic_fetch_add(&shared->streamers, 1);
	*ret = (zet_metric_streamer_handle_t)streamer;
	return SG_OK;
}

ze_result_t sg_zetMetricStreamerClose(zet_metric_streamer_handle_t handle)
{
	struct streamer *streamer = (struct streamer *)handle;

	SG_ENTER();
	SG_HANDLE(handle);
	atomic_fetch_sub(&shared->streamers, 1);
	lock_shared();
	streamer->stop = true;
	unlock_shared();
	if (streamer->event)
		(void)pthread_join(streamer->thread, NULL);
	free(streamer);
	return SG_OK;
}

ze_result_t sg_zetMetricStreamerReadData(zet_metric_streamer_handle_t handle, uint32_t most,
					 size_t *size, uint8_t *data)
{
	struct streamer *streamer = (struct streamer *)handle;
	uint64_t count;
	size_t used = 0;
	bool dropped;

	SG_ENTER_WITH(handle, size);
	lock_shared();
	dropped = overflow(streamer);
	count = available(streamer);
	if (count > most)
		count = most;
	if (!*size || !data) {
		*size = count * sizeof(struct report);
		dropped = false;
	} else {
		for (; count && used + sizeof(struct report) <= *size; count--) {
			struct report report;

			if (sg_config.drop && ++streamer->reports % sg_config.drop == 0) {
				dropped = true;
			} else if (report_make(streamer, streamer->from, &report)) {
				memcpy(data + used, &report, sizeof(report));
				used += sizeof(report);
			}
			streamer->from += streamer->period;
			forget(streamer);
		}
		*size = used;
	}
	unlock_shared();
	return dropped ? ZE_RESULT_WARNING_DROPPED_DATA : SG_OK;
}
