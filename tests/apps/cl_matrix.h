/*
 * What the parts of cl_matrix share: its options, its queues, and what the next command does with
 * its event.
 */
#ifndef XSTRACE_TESTS_CL_MATRIX_H
#define XSTRACE_TESTS_CL_MATRIX_H

#include "cl_app.h"

#define SIDE	   64
#define COUNT	   (SIDE * SIDE)
#define BYTES	   (COUNT * sizeof(cl_int))
#define MAX_QUEUES 3

enum queue_kind { IN_ORDER, OUT_OF_ORDER, SEVERAL };
enum create { CREATE_LIST, CREATE_LEGACY, CREATE_NULL };
enum policy { NONE, HELD, WAITED, CALLBACKS, RELEASED };
enum end { END_RETURN, END_CALLBACK, END_EXIT };
enum kernel { ADD, SCALE, TILE, BOX, GATED, LAST, KERNELS };

struct options {
	enum queue_kind queue;
	enum create create;
	enum policy policy;
	enum end end;
	bool no_profiling, svm;
	long rounds;
};
extern struct options opts;

extern struct cl_app cl;
extern cl_command_queue_properties properties;
extern cl_command_queue queues[MAX_QUEUES], queue; /* queue: whose turn it is */
extern int queue_count;
extern cl_kernel kernels[KERNELS];
extern long kernel_counts[KERNELS];
extern const char *const kernel_names[];

/* --- cl_matrix_events.c: queues and events are seen as they were made --- */

cl_command_queue make_queue(void);
void check_queue(cl_command_queue q);

extern cl_event before; /* what the next command must wait for, or NULL */
extern cl_event event;	/* where the next command's event goes; POISON: nobody has written there */
#define POISON ((cl_event)0x5a5a)
cl_event *slot(void);
/* the last three arguments of every enqueue */
#define TAIL (before ? 1 : 0), (before ? &before : NULL), slot()
/* every enqueue is followed by this: counts it, treats its event, makes the next one wait for it */
void enqueued(cl_command_type type);
void finish_all(void);
void let_events_go(void);
void print_counts(void);

/* --- cl_matrix_commands.c --- */

void make_buffers(void);
void release_buffers(void);
void upload(long round);
void run_kernels(void);
void run_gated_kernel(void);
void download(long round);
void copy_rectangles(void);
void synchronize(void);
void use_svm(void);
void fail_on_purpose(void);

#endif
