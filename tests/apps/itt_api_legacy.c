/*
 * What the old header has: it and today's cannot be included together.
 */
#include <legacy/ittnotify.h>

#include "itt_api.h"

static char locks[4];

static void *named_thread(void *unused)
{
	(void)unused;
	fact("old_named", "%d", (int)gettid());
	__itt_thr_name_set("an old name, cut", 11);
	__itt_event_start(__itt_event_create("old event", 9));
	return NULL;
}

static void *ignored_thread(void *unused)
{
	(void)unused;
	__itt_thr_ignore();
	__itt_event_start(__itt_event_create("old event, ignored", 18));
	return NULL;
}

static void waits(void)
{
	uint64_t begin = now_ns();

	__itt_sync_set_name(&locks[0], "Mutex", "old", __itt_attr_mutex);
	__itt_notify_sync_prepare(&locks[0]);
	step();
	__itt_notify_sync_acquired(&locks[0]);
	fact("wait_old", "%ju", (uintmax_t)(now_ns() - begin));
	__itt_notify_sync_releasing(&locks[0]);
	__itt_notify_sync_name(&locks[1], "Lock, cut", 4, "older, cut", 5, __itt_attr_mutex);
	__itt_notify_sync_prepare(&locks[1]);
	step();
	__itt_notify_sync_cancel(&locks[1]);
}

static void legacy(void)
{
	__itt_frame frame = __itt_frame_create("old frames");
	__itt_state_t state;
	__itt_obj_state_t object;
	__itt_thr_state_t thread;

	__itt_frame_begin(frame);
	step();
	__itt_frame_end(frame);
	waits();
	elsewhere(named_thread, NULL);
	elsewhere(ignored_thread, NULL);
	/* nothing in the trace */
	__itt_memory_read(locks, sizeof(locks));
	__itt_memory_write(locks, sizeof(locks));
	__itt_memory_update(locks, sizeof(locks));
	state = __itt_state_get();
	state = __itt_state_set(state);
	object = __itt_obj_mode_set(__itt_obj_prop_watch, __itt_obj_state_set);
	thread = __itt_thr_mode_set(__itt_thr_prop_quiet, __itt_thr_state_set);
	fact("states", "%d %d %d", state, (int)object, (int)thread);
}

const struct scenario api_legacy[] = { { "legacy", legacy, false }, { 0 } };
