/*
 * Which of sys.monitoring's ids we have. There are six, and all of them are the program's: whatever
 * it calls there with ours, we have left that id before, for another one that nobody has. So it
 * finds each id as it left it, whether it asks who has it, takes it, or clears it for itself. If it
 * takes all six, we are out.
 *
 * It shows in its calls of the module's functions. Each of these is replaced by one that looks the
 * same and calls it: name, text and module are its own.
 */
#include "python_stacks.h"

#include <string.h>

#include "shm.h"

typedef struct py_object *array_function(struct py_object *self, struct py_object *const *arguments,
					 intptr_t count);
typedef struct py_object *one_function(struct py_object *self, struct py_object *argument);

/* Those that have an id as their first argument. */
#define TOOL_FUNCTIONS(ONE, ARRAY) \
	ARRAY(use_tool_id)         \
	ONE(free_tool_id)          \
	ONE(get_tool)              \
	ARRAY(register_callback)   \
	ARRAY(set_events)          \
	ONE(get_events)            \
	ARRAY(set_local_events)    \
	ARRAY(get_local_events)
#define AT(name) AT_##name,
enum { TOOL_FUNCTIONS(AT, AT) FUNCTIONS };
#undef AT

static struct watched {
	struct py_method method;
	const void *before;	  /* in C */
	struct py_object *object; /* NULL: there is no such function */
} watched[FUNCTIONS];
static struct py_object *restart_events;

bool py_tool_disables, py_tool_listens;
static int own = -1; /* -1: we have none */
static bool is_moving;

bool py_worked(struct py_object *result)
{
	if (result)
		py_api.Py_DecRef(result);
	else
		py_api.PyErr_Clear();
	return result != NULL;
}

/* What the program does not hear of. */
#define CALL(name, ...)                                                                 \
	(watched[AT_##name].object                                                      \
		 ? py_api.PyObject_CallFunction(watched[AT_##name].object, __VA_ARGS__) \
		 : NULL)

static bool listen(int tool)
{
	int all = 0;

	for (unsigned i = 0; i < PY_LISTENERS; i++) {
		struct py_listener *of = &py_listeners[i];

		if (!of->number || !of->function)
			continue;
		of->before = CALL(register_callback, "iiO", tool, of->number, of->function);
		if (!of->before) { /* the program's audit hooks may forbid it */
			py_api.PyErr_Clear();
			return false;
		}
		all |= of->number;
	}
	return py_worked(CALL(set_events, "ii", tool, all));
}

/*
 * As if we had never had it: functions that were registered and have no tool stay so. Where events
 * were switched off for us, they would be for who has it next; to switch them on again is possible
 * for all tools together only.
 */
static void leave(int tool)
{
	(void)py_worked(CALL(set_events, "ii", tool, 0));
	for (unsigned i = 0; i < PY_LISTENERS; i++) {
		struct py_object *before = py_listeners[i].before;

		py_listeners[i].before = NULL;
		if (!before)
			continue;
		(void)py_worked(
			CALL(register_callback, "iiO", tool, py_listeners[i].number, before));
		py_api.Py_DecRef(before);
	}
	if (py_tool_disables && restart_events)
		(void)py_worked(py_api.PyObject_CallFunction(restart_events, NULL));
	py_tool_disables = false;
	(void)py_worked(CALL(free_tool_id, "i", tool));
}

/* The first that nobody has becomes ours. */
static void take_free_one(int but)
{
	/* first those that no kind of tool has for itself */
	static const int order[] = { 4, 3, 5, 2, 1, 0 };

	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (order[i] == but || !py_worked(CALL(use_tool_id, "is", order[i], "xstrace")))
			continue;
		if (listen(order[i]))
			own = order[i];
		else
			leave(order[i]);
		return;
	}
}

bool py_tools_take(void)
{
	int before = own;

	if (before >= 0)
		leave(before);
	own = -1;
	py_tool_listens = true;
	take_free_one(before);
	py_tool_listens = own >= 0;
	return own >= 0;
}

/* The program names a tool: an int, or what can be one. */
static void make_way(struct py_object *tool)
{
	struct py_object *number;

	if (own < 0 || is_moving)
		return;
	number = py_api.PyNumber_Index(tool);
	if (!number || py_api.PyLong_AsLong(number) != own) {
		(void)py_worked(number);
		py_api.PyErr_Clear();
		return;
	}
	py_api.Py_DecRef(number);
	is_moving = true; /* its audit hooks hear of it, and may do anything */
	if (!py_tools_take()) {
		xs_tell_unseen(XS_UNSEEN_PYTHON_TOOLS);
		py_leave_all();
	}
	is_moving = false;
}

#define ONE(name)                                                                              \
	static struct py_object *name(struct py_object *self, struct py_object *argument)      \
	{                                                                                      \
		make_way(argument);                                                            \
		return ((one_function *)(uintptr_t)watched[AT_##name].before)(self, argument); \
	}
#define ARRAY(name)                                                                               \
	static struct py_object *name(struct py_object *self, struct py_object *const *arguments, \
				      intptr_t count)                                             \
	{                                                                                         \
		if (count > 0)                                                                    \
			make_way(arguments[0]);                                                   \
		return ((array_function *)(uintptr_t)watched[AT_##name].before)(self, arguments,  \
										count);           \
	}
TOOL_FUNCTIONS(ONE, ARRAY)
#undef ONE
#undef ARRAY

static struct py_object *attribute(struct py_object *of, const char *name)
{
	struct py_object *value = py_api.PyObject_GetAttrString(of, name);

	if (!value)
		py_api.PyErr_Clear();
	return value;
}

static void watch(struct py_object *monitoring, struct watched *at, const char *name, int flags,
		  const void *function)
{
	struct py_object *self, *module, *object = attribute(monitoring, name);
	const struct py_method *method;
	const void *type;

	at->object = object; /* kept for ever */
	if (!object)
		return;
	memcpy(&type, (char *)object + XS_PYTHON_TYPE, sizeof(type));
	memcpy(&method, (char *)object + XS_PYTHON_METHOD, sizeof(method));
	if (type != py_api.function_of_c || method->flags != flags)
		return;
	at->before = method->function;
	at->method = *method;
	at->method.function = function;
	self = attribute(object, "__self__");
	module = attribute(object, "__module__");
	object = py_api.PyCFunction_NewEx(&at->method, self, module);
	if (object && py_api.PyObject_SetAttrString(monitoring, name, object))
		py_api.PyErr_Clear();
	(void)py_worked(object);
	(void)py_worked(module);
	(void)py_worked(self);
}

void py_tools_watch(struct py_object *monitoring)
{
	own = -1;
	restart_events = attribute(monitoring, "restart_events"); /* kept for ever */
#define ONE(name)   watch(monitoring, &watched[AT_##name], #name, PY_METHOD_ONE, name);
#define ARRAY(name) watch(monitoring, &watched[AT_##name], #name, PY_METHOD_ARRAY, name);
	TOOL_FUNCTIONS(ONE, ARRAY)
#undef ONE
#undef ARRAY
}
