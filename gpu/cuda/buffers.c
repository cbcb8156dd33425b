/*
 * The buffers that CUPTI fills with records of activity.
 *
 * They lie in files of the run directory, so that the drain process reads them where they are:
 * nothing is copied here, and what CUPTI has written is there even if the process is killed. A
 * buffer is all zero when it is handed out; so is what CUPTI has not written yet.
 */
#include <string.h>

#include "profiler.h"
#include "lock.h"
#include "sys.h"

static struct xs_activity_file *activity;
static bool waits;   /* --on-full */
static bool latency; /* asked for */

/* What we know of a buffer ourselves: the words in its file others can write, too. */
static struct slot {
	_Atomic(struct xs_activity_buffer *) buffer; /* NULL: not made yet */
	_Atomic bool handed;
} slots[XS_ACTIVITY_BUFFERS];
static _Atomic uint32_t slot_count, turns;

static unsigned char *data_of(struct xs_activity_buffer *buffer)
{
	return (unsigned char *)buffer + XS_ACTIVITY_HEADER;
}

struct xs_activity_file *xs_cuda_activity(void)
{
	struct xs_activity_file *file =
		xs_own_activity(0, sizeof(*file), offsetof(struct xs_activity_file, made_as));

	if (!file || !xs_shm_present(file, sizeof(*file)))
		return NULL;
	file->source = XS_SOURCE_CUDA;
	activity = file;
	return file;
}

/* ---- CUPTI's clock ---- */

/*
 * When we have left CUPTI to the program, it gets the clock that CUPTI has by itself: none of ours
 * can be taken back.
 *
 * Where reading the time stamp counter is a SIGSEGV, the kernel is asked (PR_SET_TSC), or nobody
 * (strict mode): nothing is recorded any more, but CUPTI goes on asking.
 */
static uint64_t CUPTIAPI our_clock(void)
{
	static _Atomic uint64_t last;
	uint64_t now;

	if (__builtin_expect(xs_is_off(), 0))
		return xs_is_sealed() ? atomic_load_explicit(&last, memory_order_relaxed)
				      : xs_true_ns();
	if (__builtin_expect(atomic_load_explicit(&xs_cupti.stage, memory_order_relaxed) ==
				     XS_CUDA_HAS_LEFT,
			     0))
		return xs_clock_ns(CLOCK_REALTIME);
	now = xs_clock_ns(CLOCK_MONOTONIC);
	atomic_store_explicit(&last, now, memory_order_relaxed);
	return now;
}

static void read_clock(struct xs_activity_pair *pair)
{
	pair->before = 0;
	if (activity->clock != XS_ACTIVITY_PAIRS || !xs_cupti.GetTimestamp)
		return;
	pair->before = our_clock();
	if (xs_cupti.GetTimestamp(&pair->cupti))
		pair->before = 0;
	pair->after = our_clock();
}

/* ---- buffers ---- */

/* Slot number n gets its file. False: there is no memory. */
static bool make(uint32_t n)
{
	struct xs_activity_buffer *buffer =
		xs_own_activity(n + 1, XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES,
				offsetof(struct xs_activity_buffer, made_as));

	if (!buffer)
		return false;
	atomic_store_explicit(&slots[n].buffer, buffer, memory_order_release);
	atomic_fetch_or_explicit(&activity->made, 1ull << n, memory_order_release);
	return true;
}

static struct slot *try_take(void)
{
	uint32_t count = atomic_load_explicit(&slot_count, memory_order_acquire);

	for (uint32_t i = 0; i < count; i++) {
		struct xs_activity_buffer *buffer =
			atomic_load_explicit(&slots[i].buffer, memory_order_acquire);

		/* pairs with the release in the drain process */
		if (buffer &&
		    atomic_load_explicit(&buffer->state, memory_order_acquire) == XS_BUFFER_EMPTY &&
		    !atomic_exchange(&slots[i].handed, true))
			return &slots[i];
	}
	return NULL;
}

/* A new slot; NULL: there are enough, or there is no memory. */
static struct slot *take_new(void)
{
	uint32_t count = atomic_load(&slot_count);

	do {
		if (count >= XS_ACTIVITY_BUFFERS)
			return NULL;
	} while (!atomic_compare_exchange_weak(&slot_count, &count, count + 1));
	atomic_store(&slots[count].handed, true);
	return make(count) ? &slots[count] : NULL;
}

/* A tenth of a second each: a drain process that is just held up comes in that time. */
#define WAITS 10u

/* Does the drain process have one, which it can give back? All others are CUPTI's. */
static bool may_come(void)
{
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		struct xs_activity_buffer *buffer = atomic_load(&slots[i].buffer);

		if (buffer &&
		    atomic_load_explicit(&buffer->state, memory_order_relaxed) != XS_BUFFER_HANDED)
			return true;
	}
	return false;
}

/*
 * If the drain process is behind, it gets some time, once: what finds no buffer is lost then, until
 * there is one again. A program whose drain process never comes does not wait for each record.
 */
static struct slot *take(void)
{
	static _Atomic bool in_vain;
	bool may_wait = waits && !atomic_load_explicit(&in_vain, memory_order_relaxed);
	uint32_t rounds = 0, tries = 0;
	struct slot *slot;

	do {
		slot = try_take();
		if (!slot)
			slot = take_new();
		if (!slot)
			xs_doorbell_ring(xs_bell);
		if (slot || !may_wait)
			continue;
		may_wait = may_come();
		if (xs_wait_a_bit(&rounds))
			continue;
		rounds = 0;
		may_wait &= ++tries < WAITS && !xs_is_sealed();
	} while (!slot && may_wait);
	atomic_store_explicit(&in_vain, !slot, memory_order_relaxed);
	return slot;
}

/* Threads of CUPTI's that are about to get a buffer of ours. */
static _Atomic uint32_t asking;

static void hand_out(uint8_t **ret_buffer, size_t *ret_size)
{
	/* pairs with xs_cuda_stop_activity(), which has stored the stage before */
	bool may = !atomic_load(&xs_cupti.stage) && xs_cuda_own_process();
	struct slot *slot = may ? take() : NULL;
	struct xs_activity_buffer *buffer = slot ? atomic_load(&slot->buffer) : NULL;

	if (!buffer)
		return;
	if (!xs_shm_present(buffer, XS_ACTIVITY_HEADER + XS_ACTIVITY_BYTES)) {
		atomic_store(&slot->handed, false);
		return;
	}
	buffer->turn = atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed) + 1;
	read_clock(&buffer->pair);
	atomic_store_explicit(&buffer->state, XS_BUFFER_HANDED, memory_order_release);
	*ret_buffer = data_of(buffer);
	*ret_size = XS_ACTIVITY_BYTES;
}

static void CUPTIAPI requested(uint8_t **ret_buffer, size_t *ret_size, size_t *ret_records)
{
	*ret_buffer = NULL;
	*ret_size = *ret_records = 0;
	atomic_fetch_add(&asking, 1);
	hand_out(ret_buffer, ret_size);
	atomic_fetch_sub(&asking, 1);
}

static void count_dropped(CUcontext context, uint32_t stream)
{
	size_t dropped = 0;
	CUptiResult result;

	if (atomic_load(&xs_cupti.stage) == XS_CUDA_HAS_LEFT) /* the number is the program's */
		return;
	result = xs_cupti.several && xs_cupti.later.dropped
			 ? xs_cupti.later.dropped(xs_cupti.subscriber, context, stream, &dropped)
			 : xs_cupti.ActivityGetNumDroppedRecords(context, stream, &dropped);

	if (!result && dropped)
		atomic_fetch_add_explicit(&activity->dropped, dropped, memory_order_relaxed);
}

static void publish(struct slot *slot, size_t valid)
{
	struct xs_activity_buffer *buffer = atomic_load(&slot->buffer);

	valid = valid < XS_ACTIVITY_BYTES ? valid : XS_ACTIVITY_BYTES;
	xs_cuda_learn_names(activity, data_of(buffer), valid);
	read_clock(&buffer->pair);
	atomic_store_explicit(&buffer->valid, valid, memory_order_relaxed);
	/* pairs with the acquire in the drain process: from here on it has the buffer */
	atomic_store_explicit(&buffer->state, XS_BUFFER_FULL, memory_order_release);
	atomic_store(&slot->handed, false);
	xs_doorbell_ring(xs_bell);
}

bool xs_cuda_take_back(const uint8_t *data, size_t valid)
{
	for (uint32_t i = 0; i < XS_ACTIVITY_BUFFERS; i++) {
		struct xs_activity_buffer *buffer = atomic_load(&slots[i].buffer);

		if (!buffer || data_of(buffer) != data || !atomic_load(&slots[i].handed))
			continue;
		if (xs_cuda_own_process()) /* in a child it is its parent's */
			publish(&slots[i], valid);
		return true;
	}
	return false;
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
			       size_t valid)
{
	(void)size;
	if (!data || !xs_cuda_own_process())
		return;
	(void)xs_cuda_take_back(data, valid);
	count_dropped(context, stream);
	xs_cuda_resumed(); /* by a handler, which could not ask for it */
}

/* The same as above, as CUPTI calls a subscriber. */
static void CUPTIAPI requested_of(uint8_t **ret_buffer, size_t *ret_size, size_t *ret_records,
				  void *info)
{
	(void)info;
	requested(ret_buffer, ret_size, ret_records);
}

static void CUPTIAPI completed_of(uint8_t *data, size_t size, size_t valid, void *info)
{
	(void)info;
	completed(NULL, 0, data, size, valid);
}

bool xs_cuda_alive(void)
{
	return activity && xs_cuda_own_process() && !activity->off &&
	       atomic_load(&xs_cupti.stage) != XS_CUDA_HAS_LEFT;
}

void xs_cuda_flush_some(void)
{
	(void)xs_cupti.ActivityFlushAll(0);
}

void xs_cuda_flush(void)
{
	xs_cuda_stalls_look(true);
	(void)xs_cupti.ActivityFlushAll(0);
	(void)xs_cupti.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	count_dropped(NULL, 0);
}

/* ---- what is asked for ---- */

static CUptiResult next_record(uint8_t *data, size_t size, CUpti_Activity **record)
{
	return xs_cupti.several && xs_cupti.later.next_record
		       ? xs_cupti.later.next_record(xs_cupti.subscriber, data, size, record)
		       : xs_cupti.ActivityGetNextRecord(data, size, record);
}

/*
 * How long a record of each kind is, in this very libcupti: in memory that is full of the kind's
 * number every place could be a record's begin, so the second one begins where the first ends.
 */
static void measure(void)
{
	static _Alignas(16) uint32_t sample[1024];

	for (uint32_t kind = 1; kind < XS_ACTIVITY_KINDS; kind++) {
		CUpti_Activity *first = NULL, *second;
		ptrdiff_t size;

		for (uint32_t i = 0; i < sizeof(sample) / sizeof(sample[0]); i++)
			sample[i] = kind;
		if (next_record((uint8_t *)sample, sizeof(sample), &first) || !first)
			continue;
		second = first;
		if (next_record((uint8_t *)sample, sizeof(sample), &second))
			continue;
		size = (char *)second - (char *)first;
		if (size >= 8 && size <= 2048 && size % 8 == 0)
			atomic_store_explicit(&activity->size[kind], (uint16_t)size,
					      memory_order_relaxed);
	}
}

/* theirs: the program has registered one. */
static void choose_clock(bool theirs)
{
	activity->clock = XS_ACTIVITY_PAIRS;
	if (xs_cupti.ActivityRegisterTimestampCallback && !theirs &&
	    !xs_cupti.ActivityRegisterTimestampCallback(our_clock))
		activity->clock = XS_ACTIVITY_MONOTONIC;
}

/* Beside work on devices; without them the trace has less. */
static void enable_more(void)
{
	static const CUpti_ActivityKind kinds[] = {
		CUPTI_ACTIVITY_KIND_OVERHEAD,	 CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
		CUPTI_ACTIVITY_KIND_CUDA_EVENT,	 CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
		CUPTI_ACTIVITY_KIND_JIT,	 CUPTI_ACTIVITY_KIND_MEMORY2,
		CUPTI_ACTIVITY_KIND_MEMORY_POOL,
	};

	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		(void)xs_cuda_enable(kinds[i]);
	xs_cuda_enable_managed();
}

CUptiResult xs_cuda_enable_activity(const struct xs_options *options, bool their_clock)
{
	static const CUpti_ActivityKind work[] = { CUPTI_ACTIVITY_KIND_DEVICE,
						   CUPTI_ACTIVITY_KIND_MEMCPY,
						   CUPTI_ACTIVITY_KIND_MEMCPY2,
						   CUPTI_ACTIVITY_KIND_MEMSET };
	CUptiResult result;

	if (!xs_want_device(options))
		return CUPTI_SUCCESS;
	waits = options->on_full == XS_FULL_BLOCK;
	measure();
	result = xs_cupti.several ? xs_cupti.later.register_callbacks(xs_cupti.subscriber,
								      (void *)requested_of,
								      (void *)completed_of)
				  : xs_cupti.ActivityRegisterCallbacks(requested, completed);
	if (result)
		return result;
	choose_clock(their_clock);
	latency = options->kernel_submission && xs_cupti.ActivityEnableLatencyTimestamps;
	if (latency)
		(void)xs_cupti.ActivityEnableLatencyTimestamps(1);
	result = xs_cuda_enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	if (result)
		return result;
	for (uint32_t i = 0; i < sizeof(work) / sizeof(work[0]); i++)
		(void)xs_cuda_enable(work[i]);
	if (options->chrome_kernel || options->chrome_device)
		enable_more();
	return CUPTI_SUCCESS;
}

void xs_cuda_stop_activity(uint64_t but)
{
	uint32_t rounds = 0, tries = 0;

	/* as long as one of them waits for the drain process; a handler may have left one */
	while (atomic_load(&asking) && tries <= WAITS) {
		if (xs_wait_a_bit(&rounds))
			continue;
		rounds = 0;
		tries++;
	}
	xs_cuda_disable(but);
	if (latency)
		(void)xs_cupti.ActivityEnableLatencyTimestamps(0);
}
