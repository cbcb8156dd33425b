/*
 * xstrace-stacks: where the threads of a process are. seize.c holds them and copies what is needed
 * (python.c what Python does),
 * modules.c says which file an address belongs to, walk.c goes from frame to frame in the copies.
 *
 * All that is read of the process, its memory and its files, may be made to deceive. It is copied
 * within bounds, and what reads it is this program alone: if it fails here, nobody else does.
 */
#ifndef XS_STACKS_PROGRAM_H
#define XS_STACKS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/user.h>

#define XS_PAGE	       4096u
#define XS_THREADS_MAX 4096u
#define XS_FRAMES_MAX  128u

/* ---- seize.c ---- */

struct xs_python_frame;

struct xs_thread {
	pid_t tid;
	char state;    /* before it was held, as in /proc/PID/stat */
	char name[16]; /* likewise */
	bool seized;   /* we are its tracer */
	bool held;     /* it stands still */
	bool copied;   /* what follows is there */
	int signal;    /* that it is to get when it goes on */
	int error;     /* errno: why it was not seized; 0: it was */
	struct user_regs_struct registers;
	uintptr_t stack;		/* the copy's first address, */
	size_t stack_bytes;		/* its size */
	unsigned char *bytes;		/* and what was there */
	struct xs_python_frame *python; /* python.c; NULL: none */
	uint32_t python_count;
	bool python_more;
};

struct xs_threads {
	pid_t pid;
	struct xs_thread *list;
	size_t count;
	bool more;	/* there were more than XS_THREADS_MAX */
	uint64_t still; /* ns for which threads stood still */
};

/*
 * Holds all threads of the process, copies their registers and stacks, lets them go. 0 or -errno:
 * none could be held.
 */
int xs_threads_copy(struct xs_threads *threads, pid_t pid);
/* What forbids to look into the process: one line, which names the setting. */
void xs_say_why_not(FILE *out, pid_t pid, int error);

/* ---- modules.c ---- */

struct xs_module {
	uintptr_t start, end, bias; /* all of its mappings; what is to be taken from an address */
	uintptr_t table;	    /* .eh_frame_hdr; 0: none that can be used */
	uint32_t entries;	    /* of it */
	bool looked;		    /* at its headers */
	bool printed;
	char *path; /* empty: no file */
	char build_id[65];
};

/* What is mapped in the process. False: it is gone. */
bool xs_modules_read(pid_t pid);
/* The i-th by its address; NULL: there are no more. */
const struct xs_module *xs_module_at(size_t i);
/* NULL: none. Its headers have been looked at. */
struct xs_module *xs_module_of(uintptr_t address);
/* May a processor find an instruction there? */
bool xs_module_is_code(uintptr_t address);
/* Of all modules that there are: its number. */
size_t xs_module_number(const struct xs_module *module);

/* ---- memory.c ---- */

/* Of the process, from now on. */
void xs_memory_of(pid_t pid);
/* A thread's copied stack comes before what is in memory now. NULL: none. */
void xs_memory_stack(const struct xs_thread *thread);
bool xs_memory_read(uintptr_t address, void *to, size_t size);

/* ---- python.c ---- */

/* Is there an interpreter in the process? By its modules. */
void xs_python_look(pid_t pid);
/* While its threads stand still: what each does in Python. */
void xs_python_copy(struct xs_threads *threads);
void xs_python_print(const struct xs_thread *thread);

/* ---- print.c ---- */

/* A text of the program's or the kernel's making, as a part of one line, and what comes behind it.
 */
void xs_print_text(const char *text, const char *end);

/* ---- walk.c ---- */

/*
 * Return addresses, innermost first. Where an instruction was interrupted, which called nobody, it
 * is one behind its own: so each one's code lies before it.
 */
size_t xs_walk(const struct xs_thread *thread, uintptr_t *frames, size_t room, bool *ret_more);

#endif
