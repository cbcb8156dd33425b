/*
 * From 3.12 on: sys.monitoring (PEP 669), as a tool of our own beside the program's. What a
 * function that is not to be traced would tell is switched off, so that it costs nothing.
 */
#include "python_stacks.h"
#include "shm.h"

/* As in methodobject.h: what a function of C is made of. */
struct method {
	const char *name;
	struct py_object *(*function)(struct py_object *self, struct py_object *const *arguments,
				      intptr_t count);
	int flags;
	const char *text;
};
#define FASTCALL 0x80

static struct py_object *disable;

static struct py_object *done(bool is_traced)
{
	struct py_object *result = is_traced ? py_api.none : disable;

	py_api.Py_IncRef(result);
	return result;
}

static struct py_object *begins(struct py_object *self, struct py_object *const *arguments,
				intptr_t count)
{
	struct py_function *function = count > 0 ? py_function(arguments[0]) : NULL;

	(void)self;
	if (!function || !function->name)
		return done(false);
	py_enter(function);
	return done(true);
}

static struct py_object *ends(struct py_object *self, struct py_object *const *arguments,
			      intptr_t count)
{
	struct py_function *function = count > 0 ? py_function(arguments[0]) : NULL;

	(void)self;
	if (!function || !function->name)
		return done(false);
	py_leave(function);
	return done(true);
}

/* An exception goes through it: these two cannot be switched off. */
static struct py_object *is_thrown_in(struct py_object *self, struct py_object *const *arguments,
				      intptr_t count)
{
	struct py_function *function = count > 0 ? py_function(arguments[0]) : NULL;

	(void)self;
	if (function && function->name)
		py_enter(function);
	return done(true);
}

static struct py_object *is_left(struct py_object *self, struct py_object *const *arguments,
				 intptr_t count)
{
	struct py_function *function = count > 0 ? py_function(arguments[0]) : NULL;

	(void)self;
	if (function && function->name)
		py_leave(function);
	return done(true);
}

/* Their names tell a person who looks at them what they are. */
static struct method methods[] = {
	{ "xstrace_begins", begins, FASTCALL, NULL },
	{ "xstrace_ends", ends, FASTCALL, NULL },
	{ "xstrace_is_thrown_in", is_thrown_in, FASTCALL, NULL },
	{ "xstrace_is_left", is_left, FASTCALL, NULL },
};

static const struct {
	const char *event;
	unsigned method;
} events[] = {
	{ "PY_START", 0 }, { "PY_RESUME", 0 }, { "PY_RETURN", 1 },
	{ "PY_YIELD", 1 }, { "PY_THROW", 2 },  { "PY_UNWIND", 3 },
};

/* False, and no exception: it raised one. */
static bool worked(struct py_object *result)
{
	if (result)
		py_api.Py_DecRef(result);
	else
		py_api.PyErr_Clear();
	return result != NULL;
}

static long number_of(struct py_object *of, const char *name)
{
	struct py_object *object = py_api.PyObject_GetAttrString(of, name);
	long number = object ? py_api.PyLong_AsLong(object) : -1;

	if (!worked(object) || number < 0)
		py_api.PyErr_Clear();
	return number < 0 ? 0 : number;
}

static bool listen(struct py_object *monitoring, int tool)
{
	struct py_object *names = py_api.PyObject_GetAttrString(monitoring, "events");
	struct py_object *functions[4] = { NULL };
	int all = 0;

	if (!names) {
		py_api.PyErr_Clear();
		return false;
	}
	for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		functions[i] = py_api.PyCFunction_NewEx(&methods[i], NULL, NULL);
	for (unsigned i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		int event = (int)number_of(names, events[i].event);

		if (event && functions[events[i].method] &&
		    worked(py_api.PyObject_CallMethod(monitoring, "register_callback", "iiO", tool,
						      event, functions[events[i].method])))
			all |= event;
	}
	for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		(void)worked(functions[i]);
	(void)worked(names);
	return worked(py_api.PyObject_CallMethod(monitoring, "set_events", "ii", tool, all));
}

bool py_monitor_start(void)
{
	struct py_object *monitoring = py_api.PySys_GetObject("monitoring"); /* not ours to keep */

	if (!monitoring)
		return false;
	disable = py_api.PyObject_GetAttrString(monitoring, "DISABLE");
	if (!disable) {
		py_api.PyErr_Clear();
		return false;
	}
	/* of six, those that no kind of tool has for itself */
	for (int tool = 4; tool >= 3; tool--)
		if (worked(py_api.PyObject_CallMethod(monitoring, "use_tool_id", "is", tool,
						      "xstrace"))) {
			bool listens;

			py_cost_before();
			listens = listen(monitoring, tool);
			if (listens)
				py_cost_after();
			return listens;
		}
	xs_tell_unseen(XS_UNSEEN_PYTHON_PROFILER);
	return true; /* not to be tried again */
}
