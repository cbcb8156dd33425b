/*
 * xstrace-stacks, which looks at the process, as a child of this one.
 */
#ifndef XS_ATTACH_SAMPLER_H
#define XS_ATTACH_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct at_sampler {
	pid_t pid; /* 0: it does not run */
	int fd;	   /* of what it prints */
	char *text;
	size_t length, room;
};

/* Starts it. 0 or -errno. */
int at_sampler_start(struct at_sampler *sampler, pid_t target, uint64_t interval);
/* Asks it to end (SIGTERM), or ends it; what it still prints is to be read. */
void at_sampler_end(const struct at_sampler *sampler, int signal);
/*
 * What it has printed: calls `line` for each line. True: more may come. At its end it is waited
 * for: *ret_how as from waitpid().
 */
bool at_sampler_read(struct at_sampler *sampler, void (*line)(void *data, char *line), void *data,
		     int *ret_how);

#endif
