/*
 * The module itself: finds the functions of libxstrace-api, and puts the parts together.
 */
#include <dlfcn.h>

#include "native.h"

/* load(path): from now on the functions are those of this library. OSError: it cannot be used. */
static PyObject *load(PyObject *self, PyObject *path)
{
	struct xs_native_api found = { .loaded = true };
	PyObject *keep;
	const char *text = xs_native_text(path, &keep);
	void *library = text ? dlopen(text, RTLD_NOW | RTLD_LOCAL) : NULL;

	(void)self;
	Py_XDECREF(keep);
	if (!text)
		return NULL;
	if (!library)
		return PyErr_Format(PyExc_OSError, "%s", dlerror());
#define XS_FIND(name)                                             \
	*(void **)&found.name = dlsym(library, "xstrace_" #name); \
	found.loaded &= found.name != NULL;
	XS_FUNCTIONS(XS_FIND)
#undef XS_FIND
	if (!found.loaded)
		return PyErr_Format(PyExc_OSError, "%S: of another version than this package",
				    path);
	xs_api = found;
	Py_RETURN_NONE;
}

static PyMethodDef load_methods[] = { { "load", load, METH_O, NULL }, { NULL, NULL, 0, NULL } };

static int add_type(PyObject *module, const char *name, PyObject *type)
{
	int error = type ? PyModule_AddObjectRef(module, name, type) : -1;

	Py_XDECREF(type);
	return error;
}

static int fill(PyObject *module)
{
	if (PyModule_AddFunctions(module, load_methods) ||
	    PyModule_AddFunctions(module, xs_native_record_methods) ||
	    PyModule_AddFunctions(module, xs_native_life_methods) ||
	    add_type(module, "range", xs_native_range_type()))
		return -1;
	return add_type(module, "Trace", xs_native_trace_type());
}

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
	static PyModuleDef_Slot slots[] = { { Py_mod_exec, fill }, { 0, NULL } };
	static PyModuleDef definition = { .m_base = PyModuleDef_HEAD_INIT,
					  .m_name = "xstrace._native",
					  .m_slots = slots };

	return PyModuleDef_Init(&definition);
}
