/*
 * What libxstrace.so offers to libraries of ours that must be files of their own, since what they
 * export would be in the way of programs that do not need them (libxstrace-mpi.so). They hold no
 * state of tracing. Such a library is compiled with -DXS_COMPANION and uses the inline functions of
 * collector.h; what is rare is called here.
 */
#ifndef XS_COMPANION_H
#define XS_COMPANION_H

#include "collector.h"

/* As xs_stack_came_by(), stack.h. */
bool xs_companion_came_by(uintptr_t slot) __attribute__((cold));
#ifndef XS_COMPANION
/* As xs_lock_contended() and xs_unlock_contended(), lock.h. */
void xs_companion_lock(_Atomic uint32_t *lock) __attribute__((cold));
void xs_companion_unlock(_Atomic uint32_t *lock) __attribute__((cold));
/* As xs_sys_begin() and xs_sys_end(), sys.h. */
bool xs_companion_sys_begin(void);
void xs_companion_sys_end(void);
/* As xs_call_enter_long(). */
bool xs_companion_enter(struct xs_call *call, uint32_t word) __attribute__((cold));
void xs_companion_within(struct xs_call *call) __attribute__((cold));
#endif
/* A whole record, of `size` bytes, the header filled in; the long way of writing it. */
void xs_companion_record(const void *record, uint32_t size) __attribute__((cold));
/* As xs_collector_options(). */
const struct xs_options *xs_companion_options(void);
/* As xs_intern(); 0: there is no table. */
uint32_t xs_companion_intern(const char *text, uint32_t length, uint32_t scope);
/* What MPI says about this process. Rare. */
void xs_companion_rank(int32_t rank, int32_t world_size);

/*
 * The signal is about to end this process: waits until the drain process has seen where threads
 * are, two seconds at most. Usable in any context.
 */
void xs_companion_crash(int number);
/*
 * What is called before the program enters a sandbox (true), and when that was refused (false). In
 * between no system call of ours may be made.
 */
typedef void xs_sandbox_function(bool sealed);
void xs_companion_sandbox(xs_sandbox_function *function);

/*
 * libxstrace.so's dlsym(), for a library that comes before it and has one, too; it must be jumped
 * to. NULL: there is none on this processor.
 */
void *xs_companion_dlsym(void *handle, const char *name) __attribute__((weak));

/*
 * This program begins a run for itself: joins the run of `variable` (xs_run_variable()), although
 * it was started without one. False: it is in a run already, or has been, or cannot join.
 */
bool xs_companion_begin(const char *variable);
/* What the process's run is controlled by, to be read; NULL: it has not joined one. */
const struct xs_control *xs_companion_control(void);
/* The functions behind xstrace.h (library/library.h); NULL: they were not built. */
struct xs_library;
const struct xs_library *xs_companion_library(void);

#endif
