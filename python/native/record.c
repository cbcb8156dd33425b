/*
 * What is recorded while a trace is: ranges, marks, counters, ids. The hot path: each is one call,
 * and does nothing where nothing is traced.
 */
#include "native.h"

static PyObject *range_push(PyObject *self, PyObject *name)
{
	PyObject *keep;
	const char *text = xs_native_text(name, &keep);

	(void)self;
	if (!text)
		return NULL;
	if (xs_api.loaded)
		xs_api.range_push(text);
	Py_XDECREF(keep);
	Py_RETURN_NONE;
}

static PyObject *range_pop(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	if (xs_api.loaded)
		xs_api.range_pop();
	Py_RETURN_NONE;
}

static PyObject *mark(PyObject *self, PyObject *name)
{
	PyObject *keep;
	const char *text = xs_native_text(name, &keep);

	(void)self;
	if (!text)
		return NULL;
	if (xs_api.loaded)
		xs_api.mark(text);
	Py_XDECREF(keep);
	Py_RETURN_NONE;
}

static PyObject *counter(PyObject *self, PyObject *args)
{
	PyObject *name, *keep;
	const char *text;
	double value;

	(void)self;
	if (!PyArg_ParseTuple(args, "Ud:counter", &name, &value))
		return NULL;
	text = xs_native_text(name, &keep);
	if (text && xs_api.loaded)
		xs_api.counter(text, value);
	Py_XDECREF(keep);
	return text ? Py_NewRef(Py_None) : NULL;
}

static PyObject *step(PyObject *self, PyObject *number)
{
	unsigned long long given = PyLong_AsUnsignedLongLong(number);

	(void)self;
	if (PyErr_Occurred())
		return NULL;
	if (xs_api.loaded)
		xs_api.step_number(given);
	Py_RETURN_NONE;
}

static PyObject *now(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return PyLong_FromLongLong(xs_api.loaded ? xs_api.now() : 0);
}

/* ---- correlation ---- */

static PyObject *push_correlation(PyObject *self, PyObject *args)
{
	unsigned long long id;
	int user;

	(void)self;
	if (!PyArg_ParseTuple(args, "Kp:push_correlation", &id, &user))
		return NULL;
	if (xs_api.loaded)
		(user ? xs_api.push_user_correlation : xs_api.push_correlation)(id);
	Py_RETURN_NONE;
}

static PyObject *pop_correlation(PyObject *self, PyObject *user)
{
	int is_user = PyObject_IsTrue(user);

	(void)self;
	if (is_user < 0)
		return NULL;
	if (xs_api.loaded)
		(is_user ? xs_api.pop_user_correlation : xs_api.pop_correlation)();
	Py_RETURN_NONE;
}

/* memory(address, bytes, allocated, reserved, device_type, device, category or None) */
static PyObject *memory(PyObject *self, PyObject *args)
{
	unsigned long long address, allocated, reserved;
	const char *category;
	int device_type, device;
	long long bytes;

	(void)self;
	if (!PyArg_ParseTuple(args, "KLKKiiz:memory", &address, &bytes, &allocated, &reserved,
			      &device_type, &device, &category))
		return NULL;
	if (xs_api.loaded)
		xs_api.memory((const void *)(uintptr_t)address, bytes, allocated, reserved,
			      (enum xstrace_device_type)device_type, device, category);
	Py_RETURN_NONE;
}

PyDoc_STRVAR(range_push_doc, "range_push(name, /)\n--\n\n"
			     "Begins a range of this thread; it lasts until the range_pop() that "
			     "belongs to it.");
PyDoc_STRVAR(range_pop_doc, "range_pop()\n--\n\n"
			    "Ends the range that this thread has begun last.");
PyDoc_STRVAR(mark_doc, "mark(name, /)\n--\n\n"
		       "Records something without duration.");
PyDoc_STRVAR(counter_doc, "counter(name, value, /)\n--\n\n"
			  "Records the value that the counter has from now on.");

PyMethodDef xs_native_record_methods[] = {
	{ "range_push", range_push, METH_O, range_push_doc },
	{ "range_pop", range_pop, METH_NOARGS, range_pop_doc },
	{ "mark", mark, METH_O, mark_doc },
	{ "counter", counter, METH_VARARGS, counter_doc },
	{ "step", step, METH_O, NULL },
	{ "now", now, METH_NOARGS, NULL },
	{ "push_correlation", push_correlation, METH_VARARGS, NULL },
	{ "pop_correlation", pop_correlation, METH_O, NULL },
	{ "memory", memory, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

/* ---- range: a context manager ---- */

struct range {
	PyObject_HEAD PyObject *name;
	const struct xstrace_name *handle; /* of the library; NULL: not asked for yet */
};

static PyObject *range_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static char name_keyword[] = "name";
	static char *names[] = { name_keyword, NULL };
	allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct range *range;
	PyObject *name;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "U:record_function", names, &name))
		return NULL;
	range = (struct range *)allocate(type, 0);
	if (range)
		range->name = Py_NewRef(name);
	return (PyObject *)range;
}

static void range_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	Py_XDECREF(((struct range *)self)->name);
	release(self);
	Py_DECREF(type);
}

static PyObject *range_enter(PyObject *self, PyObject *none)
{
	struct range *range = (struct range *)self;
	PyObject *keep = NULL;
	const char *text;

	(void)none;
	if (xs_api.loaded && !range->handle) {
		text = xs_native_text(range->name, &keep);
		if (!text)
			return NULL;
		range->handle = xs_api.get_name(text);
		Py_XDECREF(keep);
	}
	if (range->handle)
		xs_api.range_push_name(range->handle);
	return Py_NewRef(self);
}

static PyObject *range_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	(void)args, (void)count;
	if (((struct range *)self)->handle)
		xs_api.range_pop();
	Py_RETURN_NONE;
}

static PyObject *range_name(PyObject *self, void *closure)
{
	(void)closure;
	return Py_NewRef(((struct range *)self)->name);
}

PyObject *xs_native_range_type(void)
{
	static PyMethodDef methods[] = {
		{ "__enter__", range_enter, METH_NOARGS, NULL },
		{ "__exit__", (PyCFunction)(void (*)(void))range_exit, METH_FASTCALL, NULL },
		{ NULL, NULL, 0, NULL },
	};
	static PyGetSetDef members[] = { { "name", range_name, NULL, NULL, NULL },
					 { NULL, NULL, NULL, NULL, NULL } };
	static PyType_Slot slots[] = {
		{ Py_tp_new, range_new },
		{ Py_tp_dealloc, range_free },
		{ Py_tp_methods, methods },
		{ Py_tp_getset, members },
		{ 0, NULL },
	};
	static PyType_Spec spec = { .name = "xstrace._native.range",
				    .basicsize = sizeof(struct range),
				    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
				    .slots = slots };

	return PyType_FromSpec(&spec);
}
