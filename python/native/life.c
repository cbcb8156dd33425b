/*
 * A trace's life: prepare, start, stop, save, its events; and what the program adds to it as a
 * whole. Results are pairs (number, why), of enum xstrace_result and xstrace_why(). What may wait,
 * for the library's lock or the drain process, is called without Python's.
 */
#include "native.h"

static PyObject *initialize(PyObject *self, PyObject *cpu_only)
{
	int alone = PyObject_IsTrue(cpu_only), result = XSTRACE_OFF;

	(void)self;
	if (alone < 0)
		return NULL;
	if (xs_api.loaded) {
		Py_BEGIN_ALLOW_THREADS result = xs_api.initialize(alone);
		Py_END_ALLOW_THREADS
	}
	return xs_native_result(result);
}

/* prepare(activities, cpu_only, filter, trace_id, options, directory, profile_memory) */
static PyObject *prepare(PyObject *self, PyObject *args)
{
	struct xstrace_config config = { .size = sizeof(config) };
	int cpu_only, profile_memory, result = XSTRACE_OFF;
	unsigned activities;

	(void)self;
	if (!PyArg_ParseTuple(args, "Ipzzzzp:prepare", &activities, &cpu_only, &config.filter,
			      &config.trace_id, &config.options, &config.directory,
			      &profile_memory))
		return NULL;
	config.activities = activities;
	config.cpu_only = cpu_only;
	config.profile_memory = profile_memory;
	if (xs_api.loaded) {
		Py_BEGIN_ALLOW_THREADS result = xs_api.prepare(&config);
		Py_END_ALLOW_THREADS
	}
	return xs_native_result(result);
}

static PyObject *start(PyObject *self, PyObject *none)
{
	int result = XSTRACE_OFF;

	(void)self, (void)none;
	if (xs_api.loaded) {
		Py_BEGIN_ALLOW_THREADS result = xs_api.start();
		Py_END_ALLOW_THREADS
	}
	return xs_native_result(result);
}

/* stop(Trace): (result, why, a Trace or None). It waits for the drain process. */
static PyObject *stop(PyObject *self, PyObject *type)
{
	struct xstrace_trace *trace = NULL;
	int result = XSTRACE_OFF;
	PyObject *pair, *object;

	(void)self;
	if (xs_api.loaded) {
		Py_BEGIN_ALLOW_THREADS result = xs_api.stop(&trace);
		Py_END_ALLOW_THREADS
	}
	pair = xs_native_result(result);
	object = trace ? xs_native_trace(type, trace) : Py_NewRef(Py_None);
	if (!pair || !object) {
		Py_XDECREF(pair);
		Py_XDECREF(object);
		return NULL;
	}
	return Py_BuildValue("(NN)", pair, object);
}

static PyObject *toggle(PyObject *self, PyObject *args)
{
	int on, result = XSTRACE_OFF;
	unsigned activities;

	(void)self;
	if (!PyArg_ParseTuple(args, "pI:toggle", &on, &activities))
		return NULL;
	if (xs_api.loaded) {
		Py_BEGIN_ALLOW_THREADS result = xs_api.toggle_collection(on, activities);
		Py_END_ALLOW_THREADS
	}
	return xs_native_result(result);
}

static PyObject *is_active(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return PyBool_FromLong(xs_api.loaded && xs_api.is_active());
}

static PyObject *is_initialized(PyObject *self, PyObject *none)
{
	bool is = false;

	(void)self, (void)none;
	if (xs_api.loaded) {
		Py_BEGIN_ALLOW_THREADS is = xs_api.is_initialized();
		Py_END_ALLOW_THREADS
	}
	return PyBool_FromLong(is);
}

static PyObject *type_name(PyObject *self, PyObject *number)
{
	long type = PyLong_AsLong(number);

	(void)self;
	if (type == -1 && PyErr_Occurred())
		return NULL;
	return Py_BuildValue("z", xs_api.loaded ? xs_api.type_name((int)type) : NULL);
}

/* Key and value of metadata, as xs_native_text() has each. */
struct pair {
	const char *key, *value;
	PyObject *keep[2];
	int flag;
};

/* (key, value, flag). False: an exception is set; else it is to be released. */
static bool read_pair(PyObject *tuple, struct pair *ret)
{
	PyObject *key, *value;

	*ret = (struct pair){ .key = NULL };
	if (!PyArg_ParseTuple(tuple, "UUp:metadata", &key, &value, &ret->flag))
		return false;
	ret->key = xs_native_text(key, &ret->keep[0]);
	ret->value = ret->key ? xs_native_text(value, &ret->keep[1]) : NULL;
	if (!ret->value)
		Py_CLEAR(ret->keep[0]);
	return ret->value;
}

static void release_pair(struct pair *pair)
{
	Py_XDECREF(pair->keep[0]);
	Py_XDECREF(pair->keep[1]);
}

/* metadata(key, value, is_json) */
static PyObject *metadata(PyObject *self, PyObject *args)
{
	int result = XSTRACE_OFF;
	struct pair pair;

	(void)self;
	if (!read_pair(args, &pair))
		return NULL;
	if (xs_api.loaded)
		result = (pair.flag ? xs_api.metadata_json : xs_api.metadata)(pair.key, pair.value);
	release_pair(&pair);
	return xs_native_result(result);
}

static PyObject *memory_export(PyObject *self, PyObject *path)
{
	PyObject *bytes = NULL;
	int result = XSTRACE_OFF;

	(void)self;
	if (!PyUnicode_FSConverter(path, &bytes))
		return NULL;
	if (xs_api.loaded) {
		const char *name = PyBytes_AsString(bytes);
		Py_BEGIN_ALLOW_THREADS result = xs_api.memory_export(name);
		Py_END_ALLOW_THREADS
	}
	Py_DECREF(bytes);
	return xs_native_result(result);
}

/* ---- activities of the program's own ---- */

/* metadata: ((key, value, is text), …). 0, or -1: an exception is set. */
static int add_metadata(struct xstrace_cpu_trace *list, size_t number, PyObject *pairs)
{
	for (Py_ssize_t i = 0, count = PyTuple_Size(pairs); i < count; i++) {
		struct pair pair;

		if (!read_pair(PyTuple_GetItem(pairs, i), &pair))
			return -1;
		(void)xs_api.activity_metadata(list, number, pair.key, pair.value, pair.flag);
		release_pair(&pair);
	}
	return 0;
}

static int add_activity(struct xstrace_cpu_trace *list, PyObject *row)
{
	long long start, end, device, resource;
	struct xstrace_activity activity = { 0 };
	unsigned long long correlation;
	PyObject *name, *pairs, *keep;
	size_t number = 0;

	if (!PyArg_ParseTuple(row, "UiLLLLKO!:activity", &name, &activity.type, &start, &end,
			      &device, &resource, &correlation, &PyTuple_Type, &pairs))
		return -1;
	activity.name = xs_native_text(name, &keep);
	activity.start = start;
	activity.end = end;
	activity.device = device;
	activity.resource = resource;
	activity.correlation = correlation;
	if (activity.name && xs_api.cpu_trace_add(list, &activity, 1, &number))
		PyErr_SetString(PyExc_ValueError, xs_api.why());
	Py_XDECREF(keep);
	return PyErr_Occurred() ? -1 : add_metadata(list, number, pairs);
}

/* activities(name, [(name, type, start, end, device, resource, correlation, metadata), …]) */
static PyObject *activities(PyObject *self, PyObject *args)
{
	struct xstrace_cpu_trace *list;
	PyObject *rows;
	const char *name;
	int result;

	(void)self;
	if (!PyArg_ParseTuple(args, "sO!:activities", &name, &PyList_Type, &rows))
		return NULL;
	if (!xs_api.loaded)
		return xs_native_result(XSTRACE_OFF);
	list = xs_api.cpu_trace_create(xs_api.now(), name);
	if (!list)
		return PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < PyList_Size(rows); i++)
		if (add_activity(list, PyList_GetItem(rows, i)) < 0) {
			xs_api.cpu_trace_free(list);
			return NULL;
		}
	Py_BEGIN_ALLOW_THREADS result = xs_api.cpu_trace_transfer(list, xs_api.now());
	Py_END_ALLOW_THREADS return xs_native_result(result);
}

PyMethodDef xs_native_life_methods[] = {
	{ "initialize", initialize, METH_O, NULL },
	{ "is_initialized", is_initialized, METH_NOARGS, NULL },
	{ "prepare", prepare, METH_VARARGS, NULL },
	{ "start", start, METH_NOARGS, NULL },
	{ "stop", stop, METH_O, NULL },
	{ "toggle", toggle, METH_VARARGS, NULL },
	{ "is_active", is_active, METH_NOARGS, NULL },
	{ "type_name", type_name, METH_O, NULL },
	{ "metadata", metadata, METH_VARARGS, NULL },
	{ "memory_export", memory_export, METH_O, NULL },
	{ "activities", activities, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};
