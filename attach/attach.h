/*
 * xstrace-attach: a program that runs without xstrace, sampled from outside (docs/ATTACH.md).
 *
 * xstrace-stacks looks at its threads, again and again; what that has read of foreign memory can
 * crash no other program. Here its lines (stacks/told.c, stacks/sample.c) become slices for the
 * sinks of the drain process: the same files, formats and names.
 */
#ifndef XS_ATTACH_H
#define XS_ATTACH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "track.h"

/* ---- refuse.c ---- */

/*
 * Why the process cannot be sampled, as far as that is known before it is tried: a part of a line
 * in `text`. False: nothing forbids it so far.
 */
bool at_refused(pid_t pid, char *text, size_t size);
/* Says what the program uses that xstrace records only of programs that it starts. */
void at_tell_not_recorded(pid_t pid);

/* ---- stack.c: where threads were ---- */

#define AT_FRAMES_MAX 512u
#define AT_NO_STACK   UINT32_MAX

/* A distinct stack, by the names of its functions. */
struct at_stack {
	uint64_t hash;	 /* 0: free */
	uint32_t *names; /* string ids, outermost first */
	uint32_t count;
	bool cut;	      /* there were callers that are not known */
	uint64_t ran, waited; /* ns on processors, ns of waiting, of threads seen there */
};

struct at_stacks {
	struct xs_run *run;
	struct xs_strings *strings;
	pid_t pid;
	struct at_stack *list;
	uint32_t count, *index, size;
	char **files;		 /* by their numbers: build id, a blank, the path */
	struct at_frame *frames; /* likewise */
	uint32_t frame_room;
	uint32_t *numbers, number_room; /* of the sampler's stacks: ours */
	uint64_t omitted;		/* ns of stacks for which there was no room */
};

/* False: no memory. */
bool at_stacks_init(struct at_stacks *stacks, struct xs_run *run, pid_t pid);
void at_stacks_fini(struct at_stacks *stacks);
/* Another xstrace-stacks begins, with numbers of its own. */
void at_stacks_renew(struct at_stacks *stacks);
/* A line of kind M, D, Y or K, without its first word. */
void at_stacks_read(struct at_stacks *stacks, char kind, char *rest);
/* Our number of the sampler's stack; AT_NO_STACK: it is not known. */
uint32_t at_stack_of(const struct at_stacks *stacks, uint32_t number);
/* The string id of a text. */
uint32_t at_name(struct at_stacks *stacks, const char *text);

/* ---- thread.c: what threads did ---- */

struct at_thread {
	struct xs_track track; /* its open tasks are the functions that the thread is in */
	pid_t tid;
	char name[16], state;
	uint32_t stack;
	uint64_t since; /* ns of the trace: the stack and state are those from then on */
	uint64_t cpu_first, cpu;
	uint64_t waited, slices;
};

struct at_threads {
	struct xs_process *process;
	struct at_stacks *stacks;
	struct at_thread **list; /* those that live */
	uint32_t count, room;
	struct at_thread **ended; /* the first AT_ENDED_MAX of those that do not */
	uint32_t ended_count;
	uint64_t more, more_cpu; /* how many further ones, and their CPU time */
	bool told;		 /* sinks are open */
};
#define AT_ENDED_MAX 4096u

/* A thread was seen: `rest` is "TID STATE CPU STACK". */
void at_threads_seen(struct at_threads *threads, char *rest, uint64_t ns);
/* "TID NAME" */
void at_threads_named(struct at_threads *threads, char *rest, uint64_t ns);
/* "TID": it has ended. */
void at_threads_ended(struct at_threads *threads, char *rest, uint64_t ns);
/* Nothing is known from here on, until they are seen again. */
void at_threads_pause(struct at_threads *threads, uint64_t ns);
/* All have ended, or sampling has. */
void at_threads_end(struct at_threads *threads, uint64_t ns);
/* CPU time of all of them so far, ns. */
uint64_t at_threads_cpu(const struct at_threads *threads);

/* ---- report.c ---- */

/* What looking has cost. */
struct at_cost {
	uint64_t looks, samples, held, missed, mended, held_ns, longest_ns, own_ns;
	uint64_t first, last; /* ns of the trace */
	bool more_threads;
};

/* The file of folded stacks. */
void at_write_folded(struct at_threads *threads);
/* The table of functions, and of threads. */
void at_report(struct at_threads *threads, const struct at_cost *cost);

#endif
