/*
 * xstrace-stacks: where the threads of a process are, once or again and again. seize.c holds them
 * and copies what is needed (python.c what Python does), modules.c says which file an address
 * belongs to, walk.c goes from frame to frame in the copies. sample.c looks again and again:
 * watch.c says which threads have done something since, told.c tells each frame and stack once.
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
	pid_t tid, inner; /* inner: its number in the process's own PID namespace */
	char state;	  /* before it was held, as in /proc/PID/stat */
	char name[16];	  /* likewise */
	bool seized;	  /* we are its tracer */
	bool held;	  /* it stands still */
	bool copied;	  /* what follows is there */
	bool untouched;	  /* it was not held: of its registers rip and rsp alone are known */
	int signal;	  /* that it is to get when it goes on */
	int error;	  /* errno: why it was not seized; 0: it was */
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

/* What it has cost the program that its threads were held one by one. */
struct xs_held {
	uint32_t threads, missed; /* held; did not stop in time */
	uint32_t mended;	  /* system calls that were made to begin anew */
	uint64_t ns, longest;	  /* for which one of them stood still: of all, at most */
};
/*
 * Holds each thread of threads->list for as long as its registers, its stack and what it does in
 * Python are copied. It may go on with restart_syscall().
 */
void xs_threads_visit(struct xs_threads *threads, struct xs_held *held);
/* A thread that sleeps: its stack from thread->registers.rsp on, without holding it. */
void xs_thread_copy_stack(struct xs_thread *thread);
/* Gives back what was copied. */
void xs_thread_forget(struct xs_thread *thread);
/* A thread's number in its own PID namespace. */
pid_t xs_thread_inner(pid_t pid, pid_t tid);
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

/* What is mapped in the process now. False: it is gone. */
bool xs_modules_read(pid_t pid);
/* Is a file mapped there? Nothing is read. */
bool xs_module_covers(uintptr_t address);
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
/* The process has gone on: all pages are to be read anew but those for which `stays` is true. */
void xs_memory_forget(bool (*stays)(uintptr_t address));
/* A thread's copied stack comes before what is in memory now. NULL: none. */
void xs_memory_stack(const struct xs_thread *thread);
bool xs_memory_read(uintptr_t address, void *to, size_t size);

/* ---- python.c ---- */

/* Is there an interpreter in the process? By its modules. */
bool xs_python_look(pid_t pid);
/* Its threads, as they are now: before the next two. */
void xs_python_list(void);
/* While the thread stands still, or sleeps: what it does in Python. */
void xs_python_copy_one(struct xs_thread *thread);
/* While all threads stand still: what each does in Python. */
void xs_python_copy(struct xs_threads *threads);
void xs_python_print(const struct xs_thread *thread);
/*
 * "function (file.py:LINE)" as a part of one line; LINE is where the function begins. In a buffer
 * that the next call uses, too.
 */
const char *xs_python_text(const struct xs_python_frame *frame);
/* Tells code objects apart that have lain in one place. */
uint64_t xs_python_identity(const struct xs_python_frame *frame);

/* ---- print.c ---- */

/* A text of the program's or the kernel's making, as a part of one line, and what comes behind it.
 */
void xs_print_text(const char *text, const char *end);
/* The i-th module's line, once. */
void xs_print_module(struct xs_module *module);

/* ---- walk.c ---- */

/*
 * Return addresses, innermost first. Where an instruction was interrupted, which called nobody, it
 * is one behind its own: so each one's code lies before it.
 */
size_t xs_walk(const struct xs_thread *thread, uintptr_t *frames, size_t room, bool *ret_more);
/* What is mapped has changed: rules that are kept may be another file's. */
void xs_walk_forget(void);

/* ---- perf.c: where a thread runs, without holding it ---- */

struct xs_perf;
/* Begins, with a sample every `period` ns on a processor. NULL: it is not allowed, or too many. */
struct xs_perf *xs_perf_open(pid_t tid, uint64_t period);
/* NULL is allowed. */
void xs_perf_close(struct xs_perf *perf);
/* How many there are since the last call; of the last one, if any, registers and stack. */
uint32_t xs_perf_take(struct xs_perf *perf, struct xs_thread *thread);

/* ---- watch.c: the threads of a process over time ---- */

struct xs_watched {
	pid_t tid, inner;
	char state, name[16];
	int run;		   /* its schedstat; -1: not open */
	uint64_t cpu, slices;	   /* ns on processors, how often it was put there */
	uint32_t grace;		   /* how often it may have been since for our doing */
	bool ours;		   /* it was for nothing else */
	int call;		   /* the system call that it sleeps in; -1: none, or not known */
	uintptr_t sp, pc;	   /* there */
	bool seen, ended, changed; /* in this look */
	bool can_be_held;	   /* it sleeps in a call that begins anew */
	bool named;		   /* its name has been told */
	/* what is to be done; PERF: in place of HOLD */
	enum xs_look { XS_LOOK_NONE, XS_LOOK_ASLEEP, XS_LOOK_HOLD, XS_LOOK_PERF } look;
	uint32_t stack;	      /* told.c's number of the last one, or XS_NO_STACK */
	char told;	      /* the state that was told with it */
	struct xs_perf *perf; /* NULL: none yet, or no_perf: it cannot be */
	bool no_perf;
};
#define XS_NO_STACK UINT32_MAX

struct xs_watch {
	pid_t pid;
	int tasks; /* /proc/PID/task: it stays this process's, whoever gets its number */
	struct xs_watched *list;
	size_t count;
	int descriptors; /* those below it may be kept open */
	bool more;	 /* there were more than XS_THREADS_MAX */
	bool filtered;	 /* the program has a filter of system calls (seccomp) */
};

/* 0 or -errno. */
int xs_watch_open(struct xs_watch *watch, pid_t pid);
/*
 * Looks at all threads without disturbing them, and says in `look` what is to be done of each.
 * False: the process has ended.
 */
bool xs_watch_look(struct xs_watch *watch);
/* Removes those that have ended. */
void xs_watch_sweep(struct xs_watch *watch);
/* Does it still sleep where xs_watch_look() has found it? */
bool xs_watch_sleeps(const struct xs_watch *watch, const struct xs_watched *thread);

/* ---- told.c ---- */

/* The number of a thread's stack, whose frames and itself are printed when they are new. */
uint32_t xs_told_stack(const struct xs_thread *thread, bool *ret_cut);
/* There is no room for more: who reads is to forget all numbers. */
bool xs_told_full(void);
/* Modules have changed: addresses mean something else. */
void xs_told_forget(void);

/* ---- sample.c ---- */

/* Looks every `interval` ns until SIGTERM, or the process's end. 0, or -errno: it cannot be. */
int xs_sample(pid_t pid, uint64_t interval);

#endif
