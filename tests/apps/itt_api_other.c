/*
 * What steers the recording, names and waits of threads, and what a tracer has nothing to say
 * about.
 */
#define INTEL_ITTNOTIFY_API_PRIVATE
#include "itt_app.h"
#include "itt_api.h"

#define name(text) (__itt_string_handle_create(text))

/* ---- recording ---- */

static __itt_domain *controlled;

static void *task_elsewhere(void *handle)
{
	finished_task(controlled, (__itt_string_handle *)handle);
	return NULL;
}

static void control(void)
{
	controlled = __itt_domain_create("control");
	finished_task(controlled, name("before"));
	__itt_resume();
	finished_task(controlled, name("resumed"));
	elsewhere(task_elsewhere, name("resumed elsewhere"));
	task_begin(controlled, name("open at pause"));
	step();
	__itt_pause();
	step();
	finished_task(controlled, name("paused"));
	elsewhere(task_elsewhere, name("paused elsewhere"));
	task_end(controlled);
	__itt_resume_scoped(__itt_collection_scope_host);
	finished_task(controlled, name("resumed scoped"));
	__itt_pause_scoped(__itt_collection_scope_host);
	finished_task(controlled, name("paused scoped"));
}

static void detach(void)
{
	__itt_domain *domain = __itt_domain_create("detach");

	controlled = domain;
	finished_task(domain, name("attached"));
	__itt_detach();
	finished_task(domain, name("detached"));
	elsewhere(task_elsewhere, name("detached elsewhere"));
	__itt_resume();
	finished_task(domain, name("resumed"));
}

/* ---- threads ---- */

static __itt_domain *threaded;

static void *named_thread(void *unused)
{
	(void)unused;
	fact("named", "%d", (int)gettid());
	__itt_thread_set_name("a named thread");
	finished_task(threaded, name("named"));
	return NULL;
}

/* byte 64 is the second one of a letter */
#define LONG_NAME \
	"64 bytes of a thread's name are listed: end inside of a letter é: é and more behind it"

static void *long_named_thread(void *unused)
{
	(void)unused;
	fact("long_named", "%d", (int)gettid());
	__itt_thread_set_name(LONG_NAME);
	finished_task(threaded, name("long-named"));
	return NULL;
}

static void *ignored_thread(void *unused)
{
	(void)unused;
	fact("ignored", "%d", (int)gettid());
	finished_task(threaded, name("not yet ignored"));
	__itt_thread_ignore();
	finished_task(threaded, name("ignored"));
	__itt_marker(threaded, __itt_null, name("ignored"), __itt_scope_global);
	return NULL;
}

static void threads(void)
{
	threaded = __itt_domain_create("threads");
	elsewhere(named_thread, NULL);
	elsewhere(long_named_thread, NULL);
	elsewhere(ignored_thread, NULL);
	finished_task(threaded, name("behind"));
}

/* ---- waits ---- */

static char locks[8];

static void timed_wait(int lock, const char *key, bool cancel)
{
	uint64_t begin = now_ns();

	__itt_sync_prepare(&locks[lock]);
	step();
	if (cancel)
		__itt_sync_cancel(&locks[lock]);
	else
		__itt_sync_acquired(&locks[lock]);
	printf("fact: %s %ju\n", key, (uintmax_t)(now_ns() - begin));
}

static void *wait_elsewhere(void *unused)
{
	(void)unused;
	fact("waiter", "%d", (int)gettid());
	timed_wait(0, "wait_elsewhere", false);
	return NULL;
}

static void sync_objects(void)
{
	uint64_t begin;

	__itt_sync_create(&locks[0], "Mutex", "first", __itt_attr_mutex);
	timed_wait(0, "wait_first", false);
	elsewhere(wait_elsewhere, NULL);
	__itt_sync_releasing(&locks[0]);
	timed_wait(0, "wait_cancelled", true);
	__itt_sync_rename(&locks[0], "renamed");
	timed_wait(0, "wait_renamed", false);
	__itt_sync_destroy(&locks[0]);
	timed_wait(0, "wait_destroyed", false);
	timed_wait(1, "wait_unnamed", false);
	fact("address_0", "%p", (void *)&locks[0]);
	fact("address_1", "%p", (void *)&locks[1]);

	__itt_sync_create(&locks[2], "Barrier", "user's", __itt_attr_barrier);
	begin = now_ns();
	__itt_fsync_prepare(&locks[2]);
	step();
	__itt_fsync_acquired(&locks[2]);
	fact("wait_fsync", "%ju", (uintmax_t)(now_ns() - begin));
	__itt_fsync_releasing(&locks[2]);
	__itt_fsync_prepare(&locks[2]);
	step();
	__itt_fsync_cancel(&locks[2]);
}

/* ---- nothing ---- */

static void silent(void)
{
	__itt_domain *domain = __itt_domain_create("silent");
	static char range[64];
	__itt_caller caller;
	__itt_pt_region region;
	const char *version;

	task_begin(domain, name("around"));
	caller = __itt_stack_caller_create();
	__itt_stack_callee_enter(caller);
	__itt_stack_callee_leave(caller);
	__itt_stack_caller_destroy(caller);
	__itt_suppress_push(__itt_suppress_all_errors);
	__itt_suppress_mark_range(__itt_suppress_range, __itt_suppress_all_errors, range,
				  sizeof(range));
	__itt_suppress_clear_range(__itt_suppress_range, __itt_suppress_all_errors, range,
				   sizeof(range));
	__itt_suppress_pop();
	__itt_enable_attach();
	region = __itt_pt_region_create("region");
	version = __itt_api_version();
	fact("values", "%d %s", region, version ? version : "-");
	task_end(domain);
}

const struct scenario api_other[] = {
	{ "control", control, true },	 { "detach", detach, true },  { "threads", threads, false },
	{ "sync", sync_objects, false }, { "silent", silent, false }, { 0 },
};
