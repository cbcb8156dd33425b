/*
 * What the files of this folder know of each other: functions of CPython become tasks of the domain
 * "Python", on the threads where they run.
 *
 * All of it runs in threads that hold the interpreter's lock (GIL), so what is known of functions
 * needs no lock of ours. Of interpreters without that lock, and of sub-interpreters with one of
 * their own, nothing is traced.
 */
#ifndef XS_PYTHON_STACKS_H
#define XS_PYTHON_STACKS_H

#include "collector.h"
#include "python_frames.h"

/* Python's objects are places in memory to us; what is read of them is in common/python_abi.h. */
struct py_object;

/* ---- start.c ---- */

/* The interpreter's functions, by their names in its C API. */
#define PY_FUNCTIONS(F)                                                                        \
	F(int, Py_AtExit, (void (*)(void)))                                                    \
	F(int, Py_IsInitialized, (void))                                                       \
	F(struct py_object *, PySys_GetObject, (const char *))                                 \
	F(struct py_object *, PyDict_New, (void))                                              \
	F(struct py_object *, PyDict_GetItemString, (struct py_object *, const char *))        \
	F(struct py_object *, Py_CompileString, (const char *, const char *, int))             \
	F(struct py_object *, PyEval_EvalCode,                                                 \
	  (struct py_object *, struct py_object *, struct py_object *))                        \
	F(struct py_object *, PyObject_CallObject, (struct py_object *, struct py_object *))   \
	F(struct py_object *, PyEval_GetGlobals, (void))                                       \
	F(int, PyUnicode_CompareWithASCIIString, (struct py_object *, const char *))           \
	F(struct py_object *, PyObject_GetAttrString, (struct py_object *, const char *))      \
	F(int, PyObject_SetAttrString, (struct py_object *, const char *, struct py_object *)) \
	F(struct py_object *, PyObject_CallFunction, (struct py_object *, const char *, ...))  \
	F(struct py_object *, PyNumber_Index, (struct py_object *))                            \
	F(struct py_object *, PyCFunction_NewEx,                                               \
	  (const void *, struct py_object *, struct py_object *))                              \
	F(long, PyLong_AsLong, (struct py_object *))                                           \
	F(void, PyErr_Clear, (void))                                                           \
	F(void, Py_IncRef, (struct py_object *))                                               \
	F(void, Py_DecRef, (struct py_object *))                                               \
	F(void *, PyThreadState_Get, (void))                                                   \
	F(void *, PyThreadState_Next, (void *))                                                \
	F(void *, PyInterpreterState_Main, (void))                                             \
	F(void *, PyInterpreterState_ThreadHead, (void *))
#define PY_MEMBER(type, name, arguments) type(*name) arguments;
struct py_api {
	PY_FUNCTIONS(PY_MEMBER)
	struct py_object *none;
	const void *function_of_c; /* the type of functions that are written in C */
	const void *code;	   /* the type of code that was compiled from Python */
};
#undef PY_MEMBER
extern struct py_api py_api;
extern struct xs_python py_here; /* this process's interpreter */

/* ---- profile.c: up to 3.11; monitor.c: from 3.12 on ---- */

/*
 * From here on the interpreter tells what it does. False: it cannot yet, or will never: asked again
 * a few times.
 */
bool py_profile_start(void);
bool py_monitor_start(void);
/* Somebody sets a profiler of the calling thread. */
void py_profile_taken(void);

/* As in methodobject.h: what a function of C is made of. */
struct py_method {
	const char *name;
	const void *function;
	int flags;
	const char *text;
};
#define PY_METHOD_ARRAY 0x80  /* called with (self, arguments, how many) */
#define PY_METHOD_ONE	0x08  /* with (self, argument) */
#define PY_METHOD_NAMES 0x02  /* and the names of the last ones */
#define PY_METHOD_CLASS 0x200 /* and the class that defines it */

/* ---- tools.c: an id of sys.monitoring's, and what listens under it ---- */

/* monitor.c: what is to be called at an event. */
struct py_listener {
	const char *event;
	struct py_method *method;
	struct py_object *function;
	struct py_object *before; /* what was registered where we are now */
	int number;		  /* the event's; 0: there is none */
};
#define PY_LISTENERS 6u
extern struct py_listener py_listeners[PY_LISTENERS];
/* False: the program may have listeners under its own id, as its audit hooks kept them there. */
extern bool py_tool_listens;
/* A place has been switched off (sys.monitoring.DISABLE) for the id that we have. */
extern bool py_tool_disables;

/* False, and no exception: it raised one, or has no result. The result is given back. */
bool py_worked(struct py_object *result);
/* From here on whoever wants the id that we have gets it. */
void py_tools_watch(struct py_object *monitoring);
/* The listeners get one that nobody has. False: there is none. */
bool py_tools_take(void);

/* ---- cost.c ---- */

/*
 * Around the start of the tracing, in the same thread: how long calls of a function that does
 * nothing take, without and with it; once. What the second finds is told
 * (xs_tell_function_costs()).
 */
void py_cost_before(void);
void py_cost_after(void);
/* While it is measured: whatever runs is traced, and the function that came last is the one. */
extern bool py_cost_is_measured;
extern struct py_function *py_cost_function;

/* ---- functions.c ---- */

/* What is known of a code object. */
struct py_function {
	uint64_t code, check; /* its address; what else tells it from one that lay there before */
	uint32_t name;	      /* interned; 0: it is not to be traced */
	bool counted;	      /* no longer traced one by one */
	uint32_t process; /* the gate's key: of `untold`, which a child of fork has not called */
	uint64_t calls, ticks;	       /* all that have ended */
	uint64_t untold, untold_ticks; /* counted ones that no record has told yet */
};
/* NULL: there is no room for more functions. */
struct py_function *py_function(const struct py_object *code);
/* A call has ended. counted: it has no slice, as the function was only counted when it began. */
void py_function_ended(struct py_function *function, uint64_t ticks, bool counted);

/* ---- calls.c: the calling thread's open calls ---- */

void py_enter(struct py_function *function);
void py_leave(const struct py_function *function);
/* Whatever is open has ended. */
void py_leave_all(void);

#endif
