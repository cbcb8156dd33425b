/*
 * From 3.12 on: sys.monitoring (PEP 669), as a tool of our own beside the program's (tools.c). What
 * a function that is not to be traced would tell is switched off, so that it costs nothing.
 */
#include "python_stacks.h"

#include <string.h>

#include "shm.h"

static struct py_object *disable;

static struct py_object *done(bool is_traced)
{
	struct py_object *result = is_traced ? py_api.none : disable;

	if (__builtin_expect(!is_traced, 0))
		py_tool_disables = true;
	py_api.Py_IncRef(result);
	return result;
}

/*
 * count: its highest bit says something else. From 3.13 on an extension may tell of functions of
 * its own, with any object in the code's place (PyMonitoring_FirePyStartEvent()); they are not
 * shown.
 */
static struct py_function *function_of(struct py_object *const *arguments, size_t count)
{
	const void *type;

	if (!(count << 1) || !py_tool_listens)
		return NULL;
	memcpy(&type, (const char *)arguments[0] + XS_PYTHON_TYPE, sizeof(type));
	return type == py_api.code ? py_function(arguments[0]) : NULL;
}

/*
 * As any function of C it would be called by one that counts the level of recursion, and where the
 * program is at its limit fails instead of ours (PEP 590). It is of the same kind as ours.
 */
static void call_directly(struct py_object *function, const struct py_method *method)
{
	const char *type;
	uint64_t offset;

	memcpy(&type, (char *)function + XS_PYTHON_TYPE, sizeof(type));
	memcpy(&offset, type + XS_PYTHON_VECTORCALL, sizeof(offset));
	memcpy((char *)function + offset, &method->function, sizeof(method->function));
}

static struct py_object *begins(struct py_object *self, struct py_object *const *arguments,
				size_t count, const struct py_object *names)
{
	struct py_function *function = function_of(arguments, count);

	(void)self, (void)names;
	if (!function || !function->name)
		return done(false);
	py_enter(function);
	return done(true);
}

static struct py_object *ends(struct py_object *self, struct py_object *const *arguments,
			      size_t count, const struct py_object *names)
{
	struct py_function *function = function_of(arguments, count);

	(void)self, (void)names;
	if (!function || !function->name)
		return done(false);
	py_leave(function);
	return done(true);
}

/* An exception goes through it: these two cannot be switched off. */
static struct py_object *is_thrown_in(struct py_object *self, struct py_object *const *arguments,
				      size_t count, const struct py_object *names)
{
	struct py_function *function = function_of(arguments, count);

	(void)self, (void)names;
	if (function && function->name)
		py_enter(function);
	return done(true);
}

static struct py_object *is_left(struct py_object *self, struct py_object *const *arguments,
				 size_t count, const struct py_object *names)
{
	struct py_function *function = function_of(arguments, count);

	(void)self, (void)names;
	if (function && function->name)
		py_leave(function);
	return done(true);
}

/* Their names tell a person who looks at them what they are. */
static struct py_method methods[] = {
	{ "xstrace_begins", begins, PY_METHOD_ARRAY | PY_METHOD_NAMES, NULL },
	{ "xstrace_ends", ends, PY_METHOD_ARRAY | PY_METHOD_NAMES, NULL },
	{ "xstrace_is_thrown_in", is_thrown_in, PY_METHOD_ARRAY | PY_METHOD_NAMES, NULL },
	{ "xstrace_is_left", is_left, PY_METHOD_ARRAY | PY_METHOD_NAMES, NULL },
};

struct py_listener py_listeners[PY_LISTENERS] = {
	{ .event = "PY_START", .method = &methods[0] },
	{ .event = "PY_RESUME", .method = &methods[0] },
	{ .event = "PY_RETURN", .method = &methods[1] },
	{ .event = "PY_YIELD", .method = &methods[1] },
	{ .event = "PY_THROW", .method = &methods[2] },
	{ .event = "PY_UNWIND", .method = &methods[3] },
};

static int number_of(struct py_object *of, const char *name)
{
	struct py_object *object = py_api.PyObject_GetAttrString(of, name);
	long number = object ? py_api.PyLong_AsLong(object) : -1;

	if (!py_worked(object) || number < 0)
		py_api.PyErr_Clear();
	return number < 0 ? 0 : (int)number;
}

static bool make_listeners(struct py_object *monitoring)
{
	struct py_object *names = py_api.PyObject_GetAttrString(monitoring, "events");

	for (unsigned i = 0; names && i < PY_LISTENERS; i++) {
		struct py_listener *listener = &py_listeners[i];

		listener->number = number_of(names, listener->event);
		/* kept for ever */
		listener->function = py_api.PyCFunction_NewEx(listener->method, NULL, NULL);
		if (listener->function)
			call_directly(listener->function, listener->method);
		else
			py_api.PyErr_Clear();
	}
	return py_worked(names);
}

bool py_monitor_start(void)
{
	struct py_object *monitoring = py_api.PySys_GetObject("monitoring"); /* not ours to keep */

	if (!monitoring)
		return false;
	disable = py_api.PyObject_GetAttrString(monitoring, "DISABLE");
	if (!disable || !make_listeners(monitoring)) {
		py_api.PyErr_Clear();
		return false;
	}
	py_tools_watch(monitoring);
	py_cost_before();
	if (py_tools_take())
		py_cost_after();
	else
		xs_tell_unseen(XS_UNSEEN_PYTHON_TOOLS);
	return true; /* not to be tried again */
}
