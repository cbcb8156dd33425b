/* The buffers of the sessions: records are written where the client wants them, and full buffers
 * are handed back by a thread of CUPTI's own. Records may be late, cut, dropped, or out of order
 * when that is asked for. */
#include "profiler.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* FULL_MAX: when so many wait for the worker, who fills one more hands them back */
enum { LATE_MAX = 4096, RECORD_MAX = 512, FULL_MAX = 8 };

struct su_session su_sessions[SU_SESSIONS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* of buffers, and of what is late */
static pthread_mutex_t handing = PTHREAD_MUTEX_INITIALIZER; /* one hands back at a time */
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static struct su_buffer *full, **full_end = &full;
static uint32_t full_count;
static __thread bool hands_back;
static bool working;
static _Atomic uint64_t counted;

static struct {
	uint64_t due;
	unsigned kind;
	const struct sc_context *context;
	uint64_t record[RECORD_MAX / 8];
} *late;
static unsigned late_count;

static uint64_t monotonic_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Where a record has its times; 0: it has none that come later. */
static size_t times_of(unsigned kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		return offsetof(CUpti_ActivityKernel9, start);
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		return offsetof(CUpti_ActivityMemcpy6, start);
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		return offsetof(CUpti_ActivityMemcpyPtoP4, start);
	case CUPTI_ACTIVITY_KIND_MEMSET:
		return offsetof(CUpti_ActivityMemset4, start);
	default:
		return 0;
	}
}

#define RESERVED 0x80000000u /* in a kind: its times are still to come */

/* with the lock held, as all that follows; what has run is told */
static void process(struct su_buffer *buffer)
{
	if (buffer->told)
		memcpy(buffer->at, buffer->told, buffer->used);
}

static void retire(struct su_session *session)
{
	struct su_buffer *buffer = session->current;

	if (!buffer)
		return;
	process(buffer);
	session->current = NULL;
	*full_end = buffer;
	full_end = &buffer->next;
	full_count++;
	(void)pthread_cond_signal(&wake);
}

static void request(struct su_session *session)
{
	CUpti_BufferCallbackRequestInfo info = { .structSize = sizeof(info) };
	struct su_buffer *buffer;
	uint8_t *at = NULL;
	size_t size = 0, records = 0;

	if (session->request_v2)
		session->request_v2(&at, &size, &records, &info);
	else if (session->request)
		session->request(&at, &size, &records);
	if (!at)
		return;
	buffer = calloc(1, sizeof(*buffer));
	buffer->session = session;
	buffer->at = at;
	buffer->told = malloc(size);
	buffer->size = size;
	buffer->records_max = records;
	session->current = buffer;
}

/*
 * What has run is told when the buffer is full, or when the client asks; until then there is a
 * record without times, as CUPTI makes it in the call.
 */
static void put_reserved(struct su_buffer *buffer, unsigned kind, const void *record, size_t size)
{
	uint8_t *at = buffer->at + buffer->used;
	size_t times = times_of(kind);

	memcpy(at, record, size);
	if (buffer->told)
		memcpy(buffer->told + buffer->used, record, size);
	if (buffer->told && times) {
		memset(at + times, 0, 2 * sizeof(uint64_t));
		kind |= RESERVED;
		memcpy(at, &kind, sizeof(kind));
	}
}

static void put(struct su_session *session, unsigned kind, const void *record, size_t size)
{
	struct su_buffer *buffer = session->current;
	bool cut = sc_config.cut_every && ++session->puts % sc_config.cut_every == 0;

	if (buffer && (buffer->used + size > buffer->size ||
		       (buffer->records_max && buffer->records == buffer->records_max)))
		retire(session);
	if (!session->current)
		request(session);
	buffer = session->current;
	if (!buffer || buffer->used + size > buffer->size) {
		atomic_fetch_add(&session->dropped, 1);
		sc_log_note("dropped kind %u: no buffer", kind);
		retire(session);
		return;
	}
	put_reserved(buffer, kind, record, size);
	buffer->used += size;
	buffer->records++;
	if (cut)
		retire(session);
}

static bool session_wants(const struct su_session *session, unsigned kind,
			  const struct sc_context *context)
{
	for (unsigned i = 0; context && i < 16 && session->contexts[i].context; i++) {
		if (session->contexts[i].context != context)
			continue;
		if (session->contexts[i].on >> kind & 1)
			return true;
		if (session->contexts[i].off >> kind & 1)
			return false;
	}
	return session->kind[kind];
}

bool su_wants(unsigned kind, const struct sc_context *context)
{
	for (unsigned i = 0; i < SU_SESSIONS; i++)
		if (session_wants(&su_sessions[i], kind, context))
			return true;
	return false;
}

static void put_to_all(unsigned kind, const struct sc_context *context, const void *record)
{
	size_t size = su_size(kind);

	for (unsigned i = 0; i < SU_SESSIONS; i++)
		if (session_wants(&su_sessions[i], kind, context))
			put(&su_sessions[i], kind, record, size);
}

static void put_late(uint64_t until)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < late_count; i++) {
		if (late[i].due <= until)
			put_to_all(late[i].kind, late[i].context, late[i].record);
		else
			late[kept++] = late[i];
	}
	late_count = kept;
}

/* true: it waits, for its time or for others to pass it */
static bool delay(unsigned kind, const struct sc_context *context, const void *record)
{
	uint64_t order = atomic_load(&counted);
	bool passed = sc_config.out_of_order && order % sc_config.out_of_order == 0;

	if (!sc_config.late_ms && !passed)
		return false;
	if (!late)
		late = calloc(LATE_MAX, sizeof(*late));
	if (late_count == LATE_MAX)
		put_late(UINT64_MAX);
	late[late_count].due = monotonic_ms() + (sc_config.late_ms ? sc_config.late_ms : 5);
	late[late_count].kind = kind;
	late[late_count].context = context;
	memcpy(late[late_count++].record, record, su_size(kind));
	return true;
}

static void *work(void *arg)
{
	(void)arg;
	for (;;) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 5000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		(void)pthread_mutex_lock(&lock);
		if (!full)
			(void)pthread_cond_timedwait(&wake, &lock, &until);
		put_late(monotonic_ms());
		(void)pthread_mutex_unlock(&lock);
		su_hand_back();
	}
	return NULL;
}

static void ensure_worker(void)
{
	pthread_t thread;

	if (working)
		return;
	working = true;
	if (!pthread_create(&thread, NULL, work, NULL))
		(void)pthread_detach(thread);
}

void su_start_worker(void)
{
	(void)pthread_mutex_lock(&lock);
	ensure_worker();
	(void)pthread_mutex_unlock(&lock);
}

void su_put(unsigned kind, const struct sc_context *context, const void *record)
{
	bool many;

	(void)pthread_mutex_lock(&lock);
	ensure_worker(); /* in a child of fork, it has gone */
	if (sc_config.drop_every &&
	    (atomic_fetch_add(&counted, 1) + 1) % sc_config.drop_every == 0) {
		for (unsigned i = 0; i < SU_SESSIONS; i++)
			if (session_wants(&su_sessions[i], kind, context))
				atomic_fetch_add(&su_sessions[i].dropped, 1);
		sc_log_note("dropped kind %u: as asked for", kind);
	} else {
		if (!sc_config.drop_every)
			atomic_fetch_add(&counted, 1);
		if (!delay(kind, context, record))
			put_to_all(kind, context, record);
	}
	many = full_count >= FULL_MAX && !hands_back;
	(void)pthread_mutex_unlock(&lock);
	if (many)
		su_hand_back();
}

static void hand_back(struct su_buffer *buffer)
{
	struct su_session *session = buffer->session;
	CUpti_BufferCallbackCompleteInfo info = { .structSize = sizeof(info),
						  .threadId = sc_thread() };
	CUpti_ActivityOverhead3 overhead = {
		.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
		.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH,
		.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD,
	};
	bool told = su_wants(CUPTI_ACTIVITY_KIND_OVERHEAD, NULL);

	overhead.objectId.pt.processId = sc_pid;
	overhead.objectId.pt.threadId = sc_thread();
	overhead.start = sc_now();
	if (session->complete_v2)
		session->complete_v2(buffer->at, buffer->size, buffer->used, &info);
	else if (session->complete)
		session->complete(NULL, 0, buffer->at, buffer->size, buffer->used);
	overhead.end = sc_now();
	if (told &&
	    buffer->records > 1) /* else a buffer with nothing else would be handed back for it */
		su_put(CUPTI_ACTIVITY_KIND_OVERHEAD, NULL, &overhead);
	free(buffer->told);
	free(buffer);
}

/* hands back what is full, in its order */
void su_hand_back(void)
{
	(void)pthread_mutex_lock(&handing);
	hands_back = true;
	for (;;) {
		struct su_buffer *buffer;

		(void)pthread_mutex_lock(&lock);
		buffer = full;
		if (buffer) {
			full = buffer->next;
			full_count--;
			if (!full)
				full_end = &full;
		}
		(void)pthread_mutex_unlock(&lock);
		if (!buffer)
			break;
		hand_back(buffer);
	}
	hands_back = false;
	(void)pthread_mutex_unlock(&handing);
}

void su_flush_all(bool forced)
{
	(void)pthread_mutex_lock(&lock);
	if (forced)
		put_late(UINT64_MAX);
	for (unsigned i = 0; i < SU_SESSIONS; i++)
		retire(&su_sessions[i]);
	(void)pthread_mutex_unlock(&lock);
	su_hand_back();
}

static void before_fork(void)
{
	(void)pthread_mutex_lock(&handing);
	(void)pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	(void)pthread_mutex_unlock(&lock);
	(void)pthread_mutex_unlock(&handing);
}

/* what was to be handed back is the parent's */
static void in_child(void)
{
	working = false;
	full = NULL;
	full_end = &full;
	late_count = 0;
	for (unsigned i = 0; i < SU_SESSIONS; i++)
		su_sessions[i].current = NULL;
	in_parent();
}

void su_watch_fork(void)
{
	(void)pthread_atfork(before_fork, in_parent, in_child);
}
