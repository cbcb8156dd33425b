/*
 * Is that process, and not another with its pid, still running?
 */
#ifndef XS_PROCESS_H
#define XS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat); 0 when unknown.
 * No memory is allocated.
 */
uint64_t xs_pid_start(pid_t pid);

/*
 * Of the caller's process `pid`: a number that no other process of this kind of kernel has, and
 * that stays what it is over exec. Since Linux 6.9 that of a pidfd's inode, which takes some µs,
 * before that its start, which is read in /proc; 0 when unknown.
 */
uint64_t xs_pid_identity(pid_t pid);

/* The pid of its parent; 0 when unknown. */
pid_t xs_pid_parent(pid_t pid);

/*
 * False when the process has ended (a zombie has) or its pid is another process's now. start 0: any
 * process of that pid will do.
 */
bool xs_pid_alive(pid_t pid, uint64_t start);

/* By SIGSTOP and its like, or by a tracer. */
bool xs_pid_stopped(pid_t pid);

/*
 * How a process ended, as wait() tells its parent, for a caller that is not its parent: known while
 * the process is a zombie, and since Linux 6.15 to holders of a pidfd (-1: none). start: as above,
 * 0: not known. False: unknown.
 */
bool xs_pid_status(pid_t pid, uint64_t start, int pidfd, int *ret);

/* Identifies the PID namespace of a process (0: the caller's own process); 0 when unknown. */
uint64_t xs_pid_namespace(pid_t pid);
/* Does /proc show the processes of our own PID namespace? Another's has others under our numbers.
 */
bool xs_proc_is_ours(void);
/*
 * The process's arguments, a NUL behind each, or what it has written over them; how many bytes, 0:
 * not to be seen. Usable in any context.
 */
size_t xs_pid_arguments(pid_t pid, char *text, size_t size);

/* Another one than the launcher's; which, a process without /proc cannot know. */
#define XS_PID_NAMESPACE_UNKNOWN UINT64_MAX
/*
 * The pid, here, of the process that is `pid` in another PID namespace; 0: there is none, or it
 * cannot be seen. file: how the name of one ends that it has mapped; it tells if the namespace is
 * not known.
 */
pid_t xs_pid_outer(pid_t pid, uint64_t pid_namespace, const char *file);
/*
 * A thread of the process that lives; its pid if there is none. Of a process whose main thread has
 * ended before the others, /proc and process_vm_readv() show the memory by another thread's number
 * alone.
 */
pid_t xs_pid_living(pid_t pid);

#endif
