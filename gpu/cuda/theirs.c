/*
 * A program that takes CUPTI's records of activity for itself. Before CUPTI 13.3 a process has one
 * pair of callbacks for buffers, and whoever registers last has it, with the buffers of the one
 * before. If the program comes first, it keeps the place and CUDA is not traced. If we have it
 * already, we leave: what was recorded by then stays in the trace.
 *
 * A program that changes what CUPTI records, and has no callbacks, gets no record in any case: what
 * it turns off and we need goes on for us. A context's own settings supersede ours: then we leave.
 *
 * CUPTI has one clock for all subscribers. If the program comes first, it keeps its own, which we
 * read beside ours for each buffer. If it comes later, we leave: what has begun by one clock may
 * end by the other.
 */
#include <errno.h>

#include "front.h"
#include "lock.h"
#include "profiler.h"
#include "sys.h"

typedef CUptiResult register_function(CUpti_BuffersCallbackRequestFunc,
				      CUpti_BuffersCallbackCompleteFunc);
typedef CUptiResult kind_function(CUpti_ActivityKind);
typedef CUptiResult context_function(CUcontext, CUpti_ActivityKind);
typedef CUptiResult clock_function(CUpti_TimestampCallbackFunc);

/* Whose callbacks a libcupti has. */
enum owner {
	NOBODYS,
	THEIRS,
	BEGINNING, /* ours: we are about to subscribe */
	OURS,
	ENDING, /* a thread of the program's is ending ours */
	LEFT,	/* theirs, behind ours: CUPTI may have a buffer of ours still */
};

static _Atomic(struct xs_front *) place; /* that we have, or had */
static _Atomic(CUpti_BuffersCallbackRequestFunc) their_request;
static _Atomic(CUpti_BuffersCallbackCompleteFunc) their_complete;

bool xs_cuda_take_place(struct xs_front *front)
{
	uint32_t owner = NOBODYS;

	if (!front)
		return true;
	atomic_store(&place, front);
	if (!xs_cupti.several)
		return atomic_compare_exchange_strong(&front->owner, &owner, BEGINNING);
	atomic_store(&front->owner, BEGINNING);
	return true;
}

bool xs_cuda_is_clock_theirs(void)
{
	struct xs_front *front = atomic_load(&place);

	return front && atomic_load(&front->clock);
}

void xs_cuda_have_place(void)
{
	struct xs_front *front = atomic_load(&place);
	uint32_t owner = BEGINNING;

	if (front)
		(void)atomic_compare_exchange_strong(&front->owner, &owner, OURS);
}

/* Has each subscriber callbacks of its own there? */
static bool is_shared(const struct xs_front *front)
{
	return front == atomic_load(&place) && xs_cupti.several;
}

static void CUPTIAPI requested(uint8_t **ret_buffer, size_t *ret_size, size_t *ret_records)
{
	atomic_load (&their_request)(ret_buffer, ret_size, ret_records);
}

static void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *data, size_t size,
			       size_t valid)
{
	if (!data || !xs_cuda_take_back(data, valid))
		atomic_load (&their_complete)(context, stream, data, size, valid);
}

static void end_calls(void)
{
	static const CUpti_CallbackDomain all[] = { CUPTI_CB_DOMAIN_RUNTIME_API,
						    CUPTI_CB_DOMAIN_DRIVER_API,
						    CUPTI_CB_DOMAIN_RESOURCE };

	if (!xs_cupti.several)
		(void)xs_cupti.Unsubscribe(xs_cupti.subscriber);
	for (uint32_t i = 0; xs_cupti.several && i < sizeof(all) / sizeof(all[0]); i++)
		(void)xs_cupti.EnableDomain(0, xs_cupti.subscriber, all[i]);
}

/*
 * Nothing of ours is asked for any more, and CUPTI hands back what it has of ours: what it would
 * still write there the program would miss. Where our buffers cannot be flushed in time, the
 * program's callback does not get them either. A subscriber of several has buffers as long as it
 * has not unsubscribed.
 */
static void leave(struct xs_front *front, enum xs_unseen why)
{
	bool alive = xs_cuda_alive();
	struct xs_blocked blocked = xs_block();
	bool ends;

	atomic_store(&xs_cupti.stage, XS_CUDA_LEAVES);
	ends = xs_cuda_ranges_end() && xs_cupti.subscriber;
	if (ends)
		end_calls();
	xs_cuda_stop_activity(xs_cupti.several ? 0 : atomic_load(&front->kinds));
	if (alive)
		xs_cuda_flush_last();
	else
		(void)xs_cupti.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	atomic_store(&xs_cupti.stage, XS_CUDA_HAS_LEFT);
	if (ends && xs_cupti.several)
		(void)xs_cupti.Unsubscribe(xs_cupti.subscriber);
	if (alive)
		xs_tell_unseen(why);
	xs_unblock(blocked);
}

/*
 * True: the callbacks are the program's own. Another thread may be about to begin or to end ours:
 * it is waited for, unless it was left by a jump.
 */
static bool make_room(struct xs_front *front, enum xs_unseen why)
{
	uint32_t owner, rounds = 0, tries = 0;

	do {
		owner = NOBODYS;
		if (atomic_compare_exchange_strong(&front->owner, &owner, THEIRS) ||
		    owner == THEIRS)
			return true;
		owner = OURS;
		if (atomic_compare_exchange_strong(&front->owner, &owner, ENDING)) {
			/* what CUPTI has in a child of fork is of its parent */
			if (xs_cuda_own_process() || xs_is_sealed())
				leave(front, why);
			atomic_store(&front->owner, LEFT);
			return false;
		}
		if (owner != LEFT && !xs_wait_a_bit(&rounds)) {
			rounds = 0;
			tries++;
		}
	} while (owner != LEFT && tries < 30);
	return false;
}

CUptiResult xs_cuda_register_theirs(struct xs_front *front,
				    CUpti_BuffersCallbackRequestFunc request,
				    CUpti_BuffersCallbackCompleteFunc complete)
{
	uint32_t owner = THEIRS;
	int error = errno;
	register_function *real;
	CUptiResult result;
	bool own;

	*(void **)&real = atomic_load(&front->real[XS_FRONT_REGISTER]);
	if (!request || !complete /* which it refuses */ || is_shared(front))
		return real(request, complete);
	own = make_room(front, XS_UNSEEN_CUDA_THEIRS);
	errno = error;
	if (own) {
		result = real(request, complete);
		if (result)
			(void)atomic_compare_exchange_strong(&front->owner, &owner, NOBODYS);
		return result;
	}
	atomic_store(&their_request, request);
	atomic_store(&their_complete, complete);
	return real(requested, completed);
}

/* The real function, and what the program has enabled by itself: that stays when we leave. */
CUptiResult xs_cuda_enable_theirs(struct xs_front *front, enum xs_front_function function,
				  CUpti_ActivityKind kind)
{
	kind_function *real;
	CUptiResult result;

	*(void **)&real = atomic_load(&front->real[function]);
	result = real(kind);
	if (!result && (uint32_t)kind < 64)
		atomic_fetch_or(&front->kinds, 1ull << kind);
	return result;
}

/* Does CUPTI tell us of this kind, because of what we have asked of that very libcupti? */
static bool is_needed(struct xs_front *front, CUpti_ActivityKind kind)
{
	return front == atomic_load(&place) && !xs_cupti.several && !atomic_load(&xs_cupti.stage) &&
	       xs_cuda_has_enabled(kind);
}

/* What we need is turned off when we leave: who does that looks at the kinds after the stage. */
CUptiResult xs_cuda_disable_theirs(struct xs_front *front, CUpti_ActivityKind kind)
{
	uint64_t bit = (uint32_t)kind < 64 ? 1ull << kind : 0;
	uint64_t before = atomic_fetch_and(&front->kinds, ~bit);
	kind_function *real;
	CUptiResult result;

	if (is_needed(front, kind))
		return CUPTI_SUCCESS;
	*(void **)&real = atomic_load(&front->real[XS_FRONT_DISABLE]);
	result = real(kind);
	if (result)
		atomic_fetch_or(&front->kinds, before & bit);
	return result;
}

CUptiResult xs_cuda_disable_context_theirs(struct xs_front *front, CUcontext context,
					   CUpti_ActivityKind kind)
{
	context_function *real;
	int error = errno;

	if (context && is_needed(front, kind))
		(void)make_room(front, XS_UNSEEN_CUDA_CHANGED);
	errno = error;
	*(void **)&real = atomic_load(&front->real[XS_FRONT_CONTEXT]);
	return real(context, kind);
}

CUptiResult xs_cuda_clock_theirs(struct xs_front *front, CUpti_TimestampCallbackFunc clock)
{
	CUpti_TimestampCallbackFunc before, now = clock;
	int error = errno;
	clock_function *real;
	CUptiResult result;

	*(void **)&real = atomic_load(&front->real[XS_FRONT_CLOCK]);
	if (!clock) /* which it refuses */
		return real(clock);
	/* who takes the place looks at the clock afterwards */
	before = atomic_exchange(&front->clock, clock);
	if (before != clock && front == atomic_load(&place))
		(void)make_room(front, XS_UNSEEN_CUDA_CHANGED);
	errno = error;
	result = real(clock);
	if (result)
		(void)atomic_compare_exchange_strong(&front->clock, &now, before);
	return result;
}
