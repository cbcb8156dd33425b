/*
 * Up to 3.11: a profile function of each thread's.
 *
 * It is of one thread, so who makes threads is watched: when _thread.start_new_thread() returns,
 * the new thread is in the interpreter's list and has not run yet, because its maker has the
 * interpreter's lock. Threads that C has made come with the next one.
 *
 * A program's own profiler (sys.setprofile(), cProfile) takes our place in the thread that sets it,
 * and keeps it.
 */
#include "python_stacks.h"

#include <string.h>

#include "shm.h"

enum {
	EVENT_CALL,
	EVENT_EXCEPTION,
	EVENT_LINE,
	EVENT_RETURN,
	EVENT_C_CALL,
	EVENT_C_EXCEPTION,
	EVENT_C_RETURN
};
#define THREADS_MAX 65536u

static const struct py_object *start_new_thread, *len;

static int heard(struct py_object *object, struct py_object *frame, int event,
		 struct py_object *argument);

/*
 * In a thread of the interpreter's that has no profile function. PyEval_SetProfile() would do the
 * same, but for the running thread alone, and it tells the program's audit hooks: these would run
 * as another thread, and may refuse.
 */
static void set_in(char *thread, const void *interpreter)
{
	int (**function)(struct py_object *, struct py_object *, int, struct py_object *) =
		(void *)(thread + XS_PYTHON_PROFILE(py_here.minor));
	const void *of;
	char *tells = thread + XS_PYTHON_TELLS;
	int within;

	memcpy(&of, thread + XS_PYTHON_OF_INTERPRETER, sizeof(of));
	memcpy(&within, thread + XS_PYTHON_IN_TRACER, sizeof(within));
	if (py_here.minor >= 10)
		memcpy(&tells, thread + XS_PYTHON_CFRAME(py_here.minor), sizeof(tells));
	if (*function || of != interpreter || !tells)
		return;
	*function = heard;
	if (within) /* when it leaves its tracer, the interpreter looks again */
		return;
	if (py_here.minor == 11)
		*(unsigned char *)tells = 0xff;
	else
		*(int *)(void *)tells = 1;
}

static void set_in_all(void)
{
	void *interpreter = py_api.PyInterpreterState_Main(),
	     *thread = py_api.PyInterpreterState_ThreadHead(interpreter);

	for (uint32_t i = 0; thread && i < THREADS_MAX; i++) {
		set_in(thread, interpreter);
		thread = py_api.PyThreadState_Next(thread);
	}
}

static const struct py_object *code_of(const struct py_object *frame)
{
	const char *of = (const char *)frame;

	if (py_here.minor >= 11)
		memcpy(&of, of + XS_PYTHON_FRAME_OF, sizeof(of));
	memcpy(&of, of + py_here.layout.code, sizeof(of));
	return (const void *)of;
}

/*
 * What 3.11 does specially for a call that it has seen often (PEP 659) it does not do under a
 * profiler: there a function of C that takes an array counts for a level of recursion, and the
 * limit would be met earlier than without us. So its level is taken back while it runs.
 */
static void take_level_back(const struct py_object *frame, const struct py_object *function, int by)
{
	char *thread = py_api.PyThreadState_Get();
	const unsigned char *instruction = (const void *)frame;
	const struct py_method *method;

	memcpy(&instruction, instruction + XS_PYTHON_FRAME_OF, sizeof(instruction));
	memcpy(&instruction, instruction + py_here.layout.instruction, sizeof(instruction));
	memcpy(&method, (const char *)function + XS_PYTHON_METHOD, sizeof(method));
	if (((method->flags & (PY_METHOD_ARRAY | PY_METHOD_CLASS)) == PY_METHOD_ARRAY ||
	     function == len) &&
	    *instruction != XS_PYTHON_CALL_FUNCTION_EX)
		*(int *)(void *)(thread + XS_PYTHON_LEVELS_LEFT) += by;
}

static int heard(struct py_object *object, struct py_object *frame, int event,
		 struct py_object *argument)
{
	(void)object;
	if (event == EVENT_CALL || event == EVENT_RETURN) {
		struct py_function *function = py_function(code_of(frame));

		if (!function || !function->name)
			return 0;
		if (event == EVENT_CALL)
			py_enter(function);
		else
			py_leave(function);
	} else if (event == EVENT_C_RETURN && argument == start_new_thread) {
		set_in_all();
	}
	if (py_here.minor == 11 && event >= EVENT_C_CALL)
		take_level_back(frame, argument, event == EVENT_C_CALL ? 1 : -1);
	return 0;
}

void py_profile_taken(void)
{
	if (py_here.minor >= 12)
		return;
	xs_tell_unseen(XS_UNSEEN_PYTHON_PROFILER);
	py_leave_all();
}

/* Kept for ever. NULL, and no exception: there is none. */
static const struct py_object *function_of(const char *in, const char *name)
{
	struct py_object *modules = py_api.PySys_GetObject("modules");
	struct py_object *module = modules ? py_api.PyDict_GetItemString(modules, in) : NULL;
	struct py_object *function = module ? py_api.PyObject_GetAttrString(module, name) : NULL;

	if (module && !function)
		py_api.PyErr_Clear();
	return function;
}

bool py_profile_start(void)
{
	start_new_thread = function_of("_thread", "start_new_thread");
	if (!start_new_thread)
		return false;
	len = function_of("builtins", "len");
	py_cost_before();
	set_in_all();
	py_cost_after();
	return true;
}
