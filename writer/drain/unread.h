/*
 * Files of a process that the drain process cannot read: removed, cut, replaced, or there are no
 * addresses, memory or descriptors for them (ulimit -v, prlimit). The process says which files it
 * has made; what is not read of them at the last look is missing, and is told, here and in the
 * trace.
 */
#ifndef XS_UNREAD_H
#define XS_UNREAD_H

#include "traced.h"

/* What to do then. */
#define XS_UNREAD_AGAIN                                                                            \
	"the run directory still has it. Run this command again with more memory (ulimit -v) and " \
	"descriptors (ulimit -n)"

/* A new look begins: what could not be read may be there by now. */
void xs_unread_begin(struct xs_process *process);
/*
 * Is what is mapped not the file that the process made? `made_as`: as the file says; 0: it says
 * nothing. What another one holds is read, but the process writes elsewhere.
 */
bool xs_unread_is_other(const struct xs_process *process, uint64_t made_as, uint64_t inode,
			uint32_t number);
/* This file, or a part of it, cannot be read; `error`: -errno. */
void xs_unread_note(struct xs_process *process, const char *name, int error);
/*
 * Is the error one of want (of memory, addresses or descriptors), and not of the file? Then
 * --recover removes nothing, and can be repeated.
 */
bool xs_unread_for_want(int error);
const char *xs_unread_reason(int error);
/*
 * All has been read: what it is for --recover that something was not. overwritten: the process's
 * own file is not what it was, and says nothing.
 */
void xs_unread_end(struct xs_process *process, bool overwritten);
/* A line, if something was not. */
void xs_unread_tell(const struct xs_process *process);

#endif
