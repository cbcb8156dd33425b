/*
 * Whether this process records: ITT's pause and resume, PTI_ENABLE_COLLECTION, --iterations, and
 * what --trigger waits for.
 *
 * Reasons of the whole run (--pause, --delay, …) are one word in the control file, which every
 * event looks at; those of this process decide the gate. As unitrace has it: without --start-paused
 * neither ITT nor the environment has any effect, and ITT's word counts more. In a run with a name
 * neither counts: its --start-paused is a --pause before the first event, and the shell alone takes
 * it away.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "environment.h"
#include "lock.h"
#include "next.h"
#include "self.h"

#define EXPORT __attribute__((visibility("default")))

enum itt_word { ITT_SILENT, ITT_PAUSE, ITT_RESUME };

/* Inherited by children of fork, who begin as their parent stood. */
static struct {
	enum itt_word itt;
	bool detached, parsed;
	_Atomic bool enabled; /* as XS_ENV_ENABLE says */
	const char *iteration_name;
	uint64_t first, last; /* iterations to record */
	_Atomic uint64_t iteration;
	_Atomic bool iterated; /* the last one has ended */
	const char *trigger_task, *trigger_marker;
	uint64_t trigger_ns;
	char iteration_text[XS_PATH_MAX], trigger_text[XS_PATH_MAX];
} control;

static void parse(const struct xs_options *options)
{
	char *text = control.iteration_text, *mark;

	control.parsed = true;
	memcpy(text, options->iterations, sizeof(control.iteration_text));
	mark = strrchr(text, ':');
	if (mark) {
		char *end;

		*mark = '\0';
		control.iteration_name = text;
		control.first = control.last = strtoull(mark + 1, &end, 10);
		if (*end == '-')
			control.last = strtoull(end + 1, NULL, 10);
	}
	text = control.trigger_text;
	memcpy(text, options->trigger, sizeof(control.trigger_text));
	mark = strrchr(text, '>');
	if (!strncmp(text, "task:", 5) && mark && !xs_parse_time(mark + 1, &control.trigger_ns)) {
		*mark = '\0';
		control.trigger_task = text + 5;
	} else if (!strncmp(text, "marker:", 7)) {
		control.trigger_marker = text + 7;
	}
}

/*
 * As unitrace reads it, which looks for a 0 at the beginning and takes anything else for a yes; but
 * those are no words for yes.
 */
static bool is_yes(const char *value)
{
	static const char *const no[] = { "false", "off", "no" };

	if (!value || value[0] == '0')
		return false;
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (!strcasecmp(value, no[i]))
			return false;
	return true;
}

void xs_control_begin(const char *enable)
{
	atomic_store_explicit(&control.enabled, is_yes(enable), memory_order_relaxed);
}

/* What the program says itself. */
static bool paused_by_program(const struct xs_options *options)
{
	if (options->session[0])
		return false;
	if (control.detached || !options->start_paused)
		return control.detached;
	return control.itt == ITT_SILENT
		       ? !atomic_load_explicit(&control.enabled, memory_order_relaxed)
		       : control.itt == ITT_PAUSE;
}

uint32_t xs_gate_wanted(void)
{
	const struct xs_options *options = xs_options_of_run();
	uint64_t iteration = atomic_load_explicit(&control.iteration, memory_order_relaxed);
	bool paused, watching;

	if (!control.parsed)
		parse(options);
	paused = paused_by_program(options);
	if (control.iteration_name)
		paused |= iteration < control.first || iteration > control.last ||
			  atomic_load_explicit(&control.iterated, memory_order_relaxed);
	watching = control.iteration_name || control.trigger_task || control.trigger_marker;
	if (paused)
		return watching ? XS_GATE_PAUSED_SLOW : XS_GATE_PAUSED;
	if (watching || options->cpu_events_of_tasks || !xs_use_tsc ||
	    atomic_load_explicit(&xs_gate->shared, memory_order_relaxed))
		return XS_GATE_SLOW;
	return atomic_load_explicit(&xs_gate->key, memory_order_relaxed);
}

static struct xs_hook *_Atomic at_resume;

void xs_at_resume(struct xs_hook *hook)
{
	xs_hang(&at_resume, hook);
}

void xs_gate_update(void)
{
	struct xs_gate *gate = xs_gate;
	struct xs_entered entered;
	uint32_t was, wanted;

	if (!xs_joined())
		return;
	xs_enter(&entered);
	if (!xs_lock(&gate->control_lock)) {
		xs_leave(&entered);
		return;
	}
	was = atomic_load_explicit(&gate->open, memory_order_relaxed);
	wanted = xs_gate_wanted();
	if (was >= XS_GATE_PAUSED && wanted < XS_GATE_PAUSED)
		xs_pauses_end(xs_own_pauses(), xs_tick(xs_use_tsc));
	atomic_store_explicit(&gate->open, wanted, memory_order_release);
	if (was < XS_GATE_PAUSED && wanted >= XS_GATE_PAUSED)
		xs_pauses_begin(xs_own_pauses(), xs_tick(xs_use_tsc));
	xs_unlock(&gate->control_lock);
	xs_leave(&entered);
	if (was >= XS_GATE_PAUSED && wanted < XS_GATE_PAUSED)
		xs_call_hooks(&at_resume);
}

void xs_control_itt(bool resume)
{
	control.itt = resume ? ITT_RESUME : ITT_PAUSE;
	xs_gate_update();
}

void xs_control_detach(void)
{
	control.detached = true;
	xs_gate_update();
}

/* ---- --iterations and --trigger: what the long way of ITT's events tells ---- */

static bool is_called(const char *wanted, const char *domain, const char *name)
{
	size_t n;

	if (!wanted)
		return false;
	if (!strcmp(wanted, name))
		return true;
	n = strlen(domain);
	return !strncmp(wanted, domain, n) && !strncmp(wanted + n, "::", 2) &&
	       !strcmp(wanted + n + 2, name);
}

/* A task of the domain begins. True: it is the one whose end is waited for from now on. */
static bool watch(struct xs_watch *watch, const void *domain, bool wanted)
{
	if (watch->depth && watch->domain == domain) {
		watch->depth++;
		return false;
	}
	if (watch->depth || !wanted)
		return false;
	*watch = (struct xs_watch){ domain, 1 };
	return true;
}

void xs_watch_begin(const void *domain_object, const char *domain, const char *name)
{
	bool last = false;

	if (is_called(control.iteration_name, domain, name)) {
		last = atomic_fetch_add_explicit(&control.iteration, 1, memory_order_relaxed) + 1 ==
		       control.last;
		xs_gate_update();
	}
	(void)watch(&xs_tls.iteration, domain_object, last);
	if (watch(&xs_tls.trigger, domain_object, is_called(control.trigger_task, domain, name)))
		xs_tls.trigger_ns = xs_clock_ns(CLOCK_MONOTONIC);
}

/* A task of the domain ends: is it the one? */
static bool watched(struct xs_watch *watch, const void *domain)
{
	return watch->depth && watch->domain == domain && !--watch->depth;
}

void xs_watch_end(const void *domain_object)
{
	if (watched(&xs_tls.iteration, domain_object)) {
		atomic_store_explicit(&control.iterated, true, memory_order_relaxed);
		xs_gate_update();
	}
	if (watched(&xs_tls.trigger, domain_object) &&
	    xs_clock_ns(CLOCK_MONOTONIC) - xs_tls.trigger_ns > control.trigger_ns)
		xs_request_dump();
}

void xs_watch_marker(const char *domain, const char *name)
{
	if (is_called(control.trigger_marker, domain, name))
		xs_request_dump();
}

/* ---- the environment: what the application does to it is seen as it happens ---- */

static struct {
	_Atomic(void *) setenv, unsetenv, putenv, clearenv;
} real;

__attribute__((constructor)) static void find_early(void)
{
	(void)xs_next(&real.setenv, "setenv");
	(void)xs_next(&real.unsetenv, "unsetenv");
	(void)xs_next(&real.putenv, "putenv");
	(void)xs_next(&real.clearenv, "clearenv");
}

static bool is_ours(const char *assignment)
{
	const size_t n = sizeof(XS_ENV_ENABLE) - 1;

	return !strncmp(assignment, XS_ENV_ENABLE, n) && (!assignment[n] || assignment[n] == '=');
}

/* From what the call was given: another thread may be changing the environment by now. */
static void changed(const char *value)
{
	xs_control_begin(value);
	xs_gate_update();
}

/* It may have been there already. */
static void added(void)
{
	void *map;
	char *const *environment = xs_environment_begin(&map);

	changed(xs_environment_value(environment, XS_ENV_ENABLE));
	xs_environment_end(map);
}

EXPORT int setenv(const char *name, const char *value, int overwrite)
{
	int (*function)(const char *, const char *, int) = xs_next(&real.setenv, "setenv");
	int result = function(name, value, overwrite);

	if (!result && is_ours(name) && overwrite)
		changed(value);
	else if (!result && is_ours(name))
		added();
	return result;
}

EXPORT int unsetenv(const char *name)
{
	int (*function)(const char *) = xs_next(&real.unsetenv, "unsetenv");
	int result = function(name);

	if (!result && is_ours(name))
		changed(NULL);
	return result;
}

EXPORT int putenv(char *assignment)
{
	int (*function)(char *) = xs_next(&real.putenv, "putenv");
	int result = function(assignment);
	const char *mark = !result && is_ours(assignment) ? strchr(assignment, '=') : NULL;

	if (!result && is_ours(assignment))
		changed(mark ? mark + 1 : NULL); /* without a mark it is taken out */
	return result;
}

EXPORT int clearenv(void)
{
	int (*function)(void) = xs_next(&real.clearenv, "clearenv");
	int result = function();

	if (!result)
		changed(NULL);
	return result;
}
