/*
 * A trace that was stopped: its file, and its events.
 */
#include "native.h"

#include <string.h>

struct trace {
	PyObject_HEAD struct xstrace_trace *trace;
};

PyObject *xs_native_trace(PyObject *type, struct xstrace_trace *found)
{
	allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
	struct trace *trace = (struct trace *)allocate((PyTypeObject *)type, 0);

	if (trace)
		trace->trace = found;
	else
		xs_api.trace_free(found);
	return (PyObject *)trace;
}

static void trace_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	if (((struct trace *)self)->trace)
		xs_api.trace_free(((struct trace *)self)->trace);
	release(self);
	Py_DECREF(type);
}

static PyObject *save(PyObject *self, PyObject *path)
{
	PyObject *bytes = NULL;
	int result;

	if (!PyUnicode_FSConverter(path, &bytes))
		return NULL;
	Py_BEGIN_ALLOW_THREADS result =
		xs_api.trace_save(((struct trace *)self)->trace, PyBytes_AsString(bytes));
	Py_END_ALLOW_THREADS Py_DECREF(bytes);
	return xs_native_result(result);
}

static PyObject *path(PyObject *self, PyObject *none)
{
	const char *found = xs_api.trace_path(((struct trace *)self)->trace);

	(void)none;
	return found ? PyUnicode_DecodeFSDefault(found) : Py_NewRef(Py_None);
}

/* Names that came lately, by the address of their text: one str for all events of a name. */
#define KEPT 1024u
struct kept {
	const char *text;
	PyObject *name;
};

static PyObject *name_of(struct kept *kept, const char *text)
{
	struct kept *slot = &kept[((uintptr_t)text * 2654435761u >> 12) % KEPT];

	if (slot->text != text || !slot->name) {
		Py_XDECREF(slot->name);
		slot->text = text;
		slot->name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
	}
	return slot->name;
}

/* (name, type, start, duration, device_type, device, resource, correlation, external,
 * user_external, bytes) */
static PyObject *row_of(struct kept *kept, const struct xstrace_event *event)
{
	PyObject *name = name_of(kept, event->name);

	if (!name)
		return NULL;
	return Py_BuildValue("(OiLKiLLKKKK)", name, (int)event->type, (long long)event->start,
			     (unsigned long long)event->duration, (int)event->device_type,
			     (long long)event->device, (long long)event->resource,
			     (unsigned long long)event->correlation,
			     (unsigned long long)event->external,
			     (unsigned long long)event->user_external,
			     (unsigned long long)event->bytes);
}

/* OSError: there was no room for their list. */
static PyObject *events(PyObject *self, PyObject *none)
{
	struct xstrace_trace *trace = ((struct trace *)self)->trace;
	size_t count = xs_api.trace_count(trace);
	struct xstrace_event event;
	struct kept *kept;
	PyObject *list, *row;

	(void)none;
	if (!count && xs_api.trace_event(trace, 0, &event) == XSTRACE_IO)
		return PyErr_Format(PyExc_OSError, "%s", xs_api.why());
	list = PyList_New((Py_ssize_t)count);
	kept = PyMem_Calloc(KEPT, sizeof(*kept));
	for (size_t i = 0; list && kept && i < count; i++) {
		row = xs_api.trace_event(trace, i, &event) ? NULL : row_of(kept, &event);
		if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0)
			Py_CLEAR(list);
	}
	for (size_t i = 0; kept && i < KEPT; i++)
		Py_XDECREF(kept[i].name);
	if (!kept)
		Py_CLEAR(list);
	PyMem_Free(kept);
	if (!list && !PyErr_Occurred())
		return PyErr_NoMemory();
	return list;
}

PyObject *xs_native_trace_type(void)
{
	static PyMethodDef methods[] = {
		{ "save", save, METH_O, NULL },
		{ "path", path, METH_NOARGS, NULL },
		{ "events", events, METH_NOARGS, NULL },
		{ NULL, NULL, 0, NULL },
	};
	static PyType_Slot slots[] = { { Py_tp_dealloc, trace_free },
				       { Py_tp_methods, methods },
				       { 0, NULL } };
	static PyType_Spec spec = { .name = "xstrace._native.Trace",
				    .basicsize = sizeof(struct trace),
				    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
				    .slots = slots };

	return PyType_FromSpec(&spec);
}
