/*
 * The stacks of CPython's threads, read from their memory: of this process or another one. Nothing
 * is called and no lock is taken, so a thread of another process must stand still while its stack
 * is read.
 *
 * Nothing that was read is believed: walks have limits, and each byte comes through a function of
 * the caller's, which says whether it could be read.
 */
#ifndef XS_PYTHON_FRAMES_H
#define XS_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python_abi.h"

/* Copies `bytes` from `address`. 0, or they cannot be read. */
typedef int xs_python_read(void *data, uint64_t address, void *to, size_t bytes);

struct xs_python {
	xs_python_read *read;
	void *data;
	uint64_t runtime;	  /* address of _PyRuntime */
	uint64_t code_type;	  /* address of PyCode_Type; 0: not known */
	uint64_t loop, loop_size; /* the function that runs Python's; 0: not known */
	uint32_t minor;		  /* 11: Python 3.11 */
	bool free_threaded;	  /* it has no GIL */
	struct xs_python_layout layout;
};

/*
 * The interpreter in the ELF file that is mapped at `image`: the program's own or libpython3.X.so.
 * 0; -ENOENT: it holds none; -ENOTSUP: this version is not known (python->minor, if not 0, says
 * which). By its dynamic symbols in memory: no file is opened.
 */
int xs_python_find(struct xs_python *python, xs_python_read *read, void *data, uint64_t image);
/* The same for who knows the address of _PyRuntime, and the version. */
int xs_python_init(struct xs_python *python, xs_python_read *read, void *data, uint64_t runtime,
		   uint32_t minor);

struct xs_python_thread {
	uint64_t state;	  /* address of its PyThreadState */
	uint64_t pthread; /* pthread_self(), which with glibc is the register fs_base of x86-64 */
	uint64_t tid;	  /* the kernel's id; 0 before 3.11, which does not know it */
};

/* All interpreters' threads; returns how many were written. */
uint32_t xs_python_threads(const struct xs_python *python, struct xs_python_thread *threads,
			   uint32_t room);

/* What a function of a stack does. */
struct xs_python_frame {
	uint64_t code;	      /* address of its code object */
	uint32_t instruction; /* offset in its bytecode */
	bool is_entry; /* C called the interpreter for this one: a native frame is below it */
};

/* On the way through the frames of a thread. */
struct xs_python_walk {
	uint64_t frame;	 /* address of the next one; 0: there is none */
	uint64_t cframe; /* 3.11, 3.12: of what the interpreter's native frame keeps of it */
};

void xs_python_begin(const struct xs_python *python, uint64_t state, struct xs_python_walk *walk);
/* The next one, from the innermost on; false: there is none. */
bool xs_python_next(const struct xs_python *python, struct xs_python_walk *walk,
		    struct xs_python_frame *ret);
/*
 * An address in the native frame of the interpreter that runs the next one. 0: not known, as before
 * 3.11, where nothing of Python's lies there, and where too many functions run in one (3.13).
 */
uint64_t xs_python_native(const struct xs_python *python, const struct xs_python_walk *walk);

/* Innermost first. */
uint32_t xs_python_frames(const struct xs_python *python, uint64_t state,
			  struct xs_python_frame *frames, uint32_t room, bool *ret_more);

#define XS_PYTHON_TEXT_MAX 256u

/* UTF-8 that ends in '\0', cut at a character. What is no character (half a pair): U+FFFD. */
struct xs_python_text {
	char text[XS_PYTHON_TEXT_MAX];
	uint32_t length;
};

/* Its name, qualified from 3.11 on ("Class.method"); "?": it cannot be read. */
void xs_python_function(const struct xs_python *python, uint64_t code, struct xs_python_text *ret);
void xs_python_file(const struct xs_python *python, uint64_t code, struct xs_python_text *ret);
/* 0: not known, or the instruction is of no line. */
uint32_t xs_python_line(const struct xs_python *python, const struct xs_python_frame *frame);
/* Where the function begins. */
uint32_t xs_python_first_line(const struct xs_python *python, uint64_t code);

/*
 * Code is freed and made anew in the same place. What tells the two apart: the hash of its name,
 * which CPython has computed, where its texts lie and its first line.
 */
static inline uint64_t xs_python_check(uint64_t name_hash, uint64_t file, uint64_t first_line,
				       uint64_t qualname)
{
	return name_hash ^ file * 0x9e3779b97f4a7c15ull ^ first_line << 32 ^ qualname << 8;
}
/* The same of a code object; 0: it cannot be read. */
uint64_t xs_python_check_of(const struct xs_python *python, uint64_t code);

#endif
