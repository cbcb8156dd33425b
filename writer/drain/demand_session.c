/*
 * Traces that a shell asks for, by --resume and --pause, in a run that a program has begun for
 * itself. That run has one process.
 */
#include "demand.h"
#include "demand_state.h"

bool xs_demand_session_asks(const struct xs_run *run)
{
	const struct xs_control *control = run->control;

	/* before there is a process, nobody can be asked */
	return run->demand && run->demand->for_session && run->demand->asked &&
	       atomic_load_explicit(&control->session_asks, memory_order_acquire) !=
		       atomic_load_explicit(&control->session_served, memory_order_relaxed);
}

static void answer(struct xs_control *control, uint32_t request, enum xs_session_answer answer)
{
	atomic_store_explicit(&control->session_answer, answer, memory_order_relaxed);
	atomic_store_explicit(&control->session_served, request, memory_order_release);
	xs_futex_wake(&control->session_served);
}

static bool records_own(const struct xs_control *control)
{
	return !(atomic_load_explicit(&control->paused, memory_order_relaxed) & XS_PAUSE_LIBRARY);
}

static bool begin(struct xs_run *run, struct xs_process **list, uint64_t now, uint32_t request)
{
	struct xs_asked *asked = run->demand->asked;
	enum xs_session_answer result = XS_SESSION_OTHER;
	bool changed = false;

	if (asked->state == XS_ASKED_ACTIVE && asked->by_session) {
		result = XS_SESSION_DONE_ALREADY;
	} else if (asked->state == XS_ASKED_IDLE && !records_own(run->control)) {
		asked->config = (struct xs_demand_config){ .start_iteration = -1 };
		asked->path[0] = '\0';
		asked->by_session = true;
		asked->by_steps = asked->fresh = false;
		asked->begin_step = asked->end_step = 0;
		asked->begin = now;
		asked->end = UINT64_MAX;
		asked->state = XS_ASKED_WAITING;
		changed = xs_demand_act(run, list, now);
		result = asked->state == XS_ASKED_ACTIVE ? XS_SESSION_DONE : XS_SESSION_OTHER;
		if (asked->state == XS_ASKED_WAITING)
			asked->state = XS_ASKED_IDLE; /* it is just calling exec */
	}
	answer(run->control, request, result);
	return changed;
}

static bool end(struct xs_run *run, struct xs_process **list, uint64_t now, uint32_t request)
{
	struct xs_asked *asked = run->demand->asked;
	enum xs_session_answer result = XS_SESSION_DONE_ALREADY;
	bool changed = false;

	if (asked->state == XS_ASKED_ACTIVE && asked->by_session) {
		run->control->session_trace[0] = '\0';
		asked->end = 0;
		changed = xs_demand_act(run, list, now);
		result = XS_SESSION_DONE;
	} else if (records_own(run->control)) {
		result = XS_SESSION_OTHER;
	}
	answer(run->control, request, result);
	return changed;
}

bool xs_demand_serve_session(struct xs_run *run, struct xs_process **list, uint64_t now)
{
	uint32_t request;

	if (!xs_demand_session_asks(run))
		return false;
	request = atomic_load_explicit(&run->control->session_asks, memory_order_acquire);
	return (request & 1 ? begin : end)(run, list, now, request);
}
