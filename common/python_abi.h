/*
 * Where things lie in CPython's memory, on 64-bit machines.
 *
 * From 3.13 on the interpreter says so itself: _PyRuntime begins with a table of offsets
 * (_Py_DebugOffsets in Include/internal/pycore_debug_offsets.h). For older versions they stand
 * here. Source: offsetof() of each member with the headers of CPython 3.8.18, 3.9.18, 3.10.13,
 * 3.11.7 and 3.12.1 (Include/internal/pycore_*.h, Include/cpython/). They are the same within a
 * minor version. tests/test_python_frames.py compares what they give with the interpreter's answer.
 */
#ifndef XS_PYTHON_ABI_H
#define XS_PYTHON_ABI_H

#include <stdint.h>

/* Offsets in bytes. 0 in `native_id`, `cframe`, `qualname`, `owner`: the version has none. */
struct xs_python_layout {
	/* _PyRuntime, interpreter, thread state */
	uint32_t interpreters, next_interpreter, threads;
	uint32_t next_thread, pthread, native_id;
	uint32_t cframe; /* 3.11, 3.12: a pointer to where `frame` is */
	uint32_t frame;
	/* a frame; `instruction` is a pointer from 3.11 on, and an index before */
	uint32_t previous, code, instruction, is_entry, owner;
	/* its code */
	uint32_t name, qualname, file, first_line, lines, bytecode;
	uint32_t ascii; /* size of a text's head, if it is ASCII */
	uint32_t other; /* and if it is not */
};

#define XS_PYTHON_OLDEST 8u  /* 3.8 */
#define XS_PYTHON_TABLED 12u /* the newest one that stands here */
#define XS_PYTHON_NEWEST 13u

static const struct xs_python_layout xs_python_layouts[] = {
	{ 32, 0, 8, 8, 176, 0, 0, 24, 24, 32, 104, 0, 0, 112, 0, 104, 40, 120, 0, 48, 72 },
	{ 32, 0, 8, 8, 176, 0, 0, 24, 24, 32, 104, 0, 0, 112, 0, 104, 40, 120, 0, 48, 72 },
	{ 32, 0, 8, 8, 176, 0, 0, 24, 24, 32, 96, 0, 0, 112, 0, 104, 40, 120, 0, 48, 72 },
	{ 40, 0, 16, 8, 152, 160, 56, 8, 48, 32, 56, 68, 69, 120, 128, 112, 72, 136, 184, 48, 72 },
	{ 40, 0, 72, 8, 136, 144, 56, 0, 8, 0, 56, 0, 70, 120, 128, 112, 68, 136, 192, 40, 56 },
};

/* Members of the table at the start of _PyRuntime, in words. */
enum xs_python_debug_offset {
	XS_PYTHON_COOKIE,
	XS_PYTHON_VERSION,	 /* PY_VERSION_HEX */
	XS_PYTHON_FREE_THREADED, /* 1: an interpreter without a GIL */
	XS_PYTHON_INTERPRETERS = 5,
	XS_PYTHON_NEXT_INTERPRETER = 8,
	XS_PYTHON_THREADS = 9,
	XS_PYTHON_NEXT_THREAD = 21,
	XS_PYTHON_FRAME = 23,
	XS_PYTHON_PTHREAD = 24,
	XS_PYTHON_NATIVE_ID = 25,
	XS_PYTHON_PREVIOUS = 29,
	XS_PYTHON_CODE = 30,
	XS_PYTHON_INSTRUCTION = 31,
	XS_PYTHON_OWNER = 33,
	XS_PYTHON_FILE = 35,
	XS_PYTHON_NAME = 36,
	XS_PYTHON_QUALNAME = 37,
	XS_PYTHON_LINES = 38,
	XS_PYTHON_FIRST_LINE = 39,
	XS_PYTHON_BYTECODE = 43,
	XS_PYTHON_ASCII = 70,
	XS_PYTHON_DEBUG_WORDS = 71
};

/* The same in all of these versions. */
#define XS_PYTHON_TYPE		      8u  /* of an object: its type */
#define XS_PYTHON_TEXT_LENGTH	      16u /* characters */
#define XS_PYTHON_TEXT_HASH	      24u
#define XS_PYTHON_TEXT_STATE	      32u /* bits: kind (1, 2 or 4 bytes each), compact, ASCII */
#define XS_PYTHON_TEXT_KIND(state)    ((state) >> 2 & 7)
#define XS_PYTHON_TEXT_COMPACT(state) ((state) >> 5 & 1)
#define XS_PYTHON_TEXT_ASCII(state)   ((state) >> 6 & 1)
#define XS_PYTHON_METHOD	      16u /* of a function of C (PyCFunction): its PyMethodDef */
#define XS_PYTHON_VECTORCALL	      56u /* of a type: where its objects have what calls them (PEP 590) */
#define XS_PYTHON_BYTES_SIZE	      16u
#define XS_PYTHON_BYTES		      32u

/*
 * Up to 3.11. A thread state: its interpreter, how many trace and profile functions it is in (an
 * int), its profile function. Whether calls are to be told: an int of the thread state, from 3.10
 * on the first member of what its `cframe` points to, in 3.11 a byte with all bits set.
 */
#define XS_PYTHON_OF_INTERPRETER 16u
#define XS_PYTHON_IN_TRACER	 44u
#define XS_PYTHON_PROFILE(minor) ((minor) < 11 ? 56u : 64u)
#define XS_PYTHON_TELLS		 48u /* up to 3.9 */
#define XS_PYTHON_CFRAME(minor)	 ((minor) < 11 ? 48u : 56u)
/* A frame object: its frame (3.11). */
#define XS_PYTHON_FRAME_OF 24u
/* 3.11. A thread state: how many levels of recursion are left, an int. An instruction's number. */
#define XS_PYTHON_LEVELS_LEFT	   32u
#define XS_PYTHON_CALL_FUNCTION_EX 142u /* f(*a): no call is specialised there */

/* A frame that is no function's: where C has called the interpreter (3.12 and later). */
#define XS_PYTHON_OWNED_BY_C 3u

/* Exported names that came with a version, for those that do not export Py_Version yet (3.11). */
#define XS_PYTHON_SINCE_8  "PyConfig_Clear"
#define XS_PYTHON_SINCE_9  "PyFrame_GetCode"
#define XS_PYTHON_SINCE_10 "PyModule_AddObjectRef"

#endif
