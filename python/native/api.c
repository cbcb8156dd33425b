/*
 * The functions of libxstrace-api, once they are found; what goes to them and comes back, as Python
 * has it.
 */
#include "native.h"

struct xs_native_api xs_api;

const char *xs_native_text(PyObject *text, PyObject **keep)
{
	const char *found;

	*keep = NULL;
	if (!PyUnicode_Check(text)) {
		PyErr_SetString(PyExc_TypeError, "a name or text of xstrace must be a str");
		return NULL;
	}
	found = PyUnicode_AsUTF8AndSize(text, NULL);
	if (found || !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
		return found;
	PyErr_Clear();
	*keep = PyUnicode_AsEncodedString(text, "utf-8", "replace");
	return *keep ? PyBytes_AsString(*keep) : NULL;
}

PyObject *xs_native_result(int result)
{
	const char *why = result && xs_api.loaded ? xs_api.why() : NULL;

	if (!xs_api.loaded)
		why = "libxstrace-api is not loaded";
	return Py_BuildValue("(iz)", result, why);
}
