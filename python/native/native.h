/*
 * The extension module xstrace._native: the library (include/xstrace/xstrace.h) for Python. It is
 * built against Python's limited API of 3.11, so that one file serves every later version.
 */
#ifndef XS_NATIVE_H
#define XS_NATIVE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "xstrace/xstrace.h"

/* What is used of libxstrace-api. */
#define XS_FUNCTIONS(X)          \
	X(why)                   \
	X(version)               \
	X(now)                   \
	X(type_name)             \
	X(is_initialized)        \
	X(initialize)            \
	X(prepare)               \
	X(start)                 \
	X(stop)                  \
	X(is_active)             \
	X(toggle_collection)     \
	X(trace_save)            \
	X(trace_path)            \
	X(trace_free)            \
	X(trace_count)           \
	X(trace_event)           \
	X(range_push)            \
	X(range_pop)             \
	X(get_name)              \
	X(range_push_name)       \
	X(mark)                  \
	X(counter)               \
	X(step_number)           \
	X(push_correlation)      \
	X(pop_correlation)       \
	X(push_user_correlation) \
	X(pop_user_correlation)  \
	X(cpu_trace_create)      \
	X(cpu_trace_add)         \
	X(activity_metadata)     \
	X(cpu_trace_transfer)    \
	X(cpu_trace_free)        \
	X(metadata)              \
	X(metadata_json)         \
	X(memory)                \
	X(memory_export)

struct xs_native_api {
	bool loaded; /* else every other member is NULL */
#define XS_MEMBER(name) __typeof__(&xstrace_##name) name;
	XS_FUNCTIONS(XS_MEMBER)
#undef XS_MEMBER
};
extern struct xs_native_api xs_api __attribute__((visibility("hidden")));

/*
 * The UTF-8 text of a str, valid as long as that and *keep; *keep, to be released by Py_XDECREF(),
 * is set where the str has characters that UTF-8 has not. NULL: an exception is set.
 */
const char *xs_native_text(PyObject *text, PyObject **keep);
/* A pair (result, why): None for why where there is nothing to say. */
PyObject *xs_native_result(int result);

/* Ready types; NULL: an exception is set. */
PyObject *xs_native_range_type(void);
PyObject *xs_native_trace_type(void);
/* An object of that type; it owns the trace. */
PyObject *xs_native_trace(PyObject *type, struct xstrace_trace *trace);

extern PyMethodDef xs_native_record_methods[] __attribute__((visibility("hidden")));
extern PyMethodDef xs_native_life_methods[] __attribute__((visibility("hidden")));

#endif
