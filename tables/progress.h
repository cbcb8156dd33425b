/*
 * How far a long run is: one line on a terminal, from the second second on.
 */
#ifndef XT_PROGRESS_H
#define XT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct xt_progress {
	int fd;		     /* -1: nobody looks */
	int64_t begin, last; /* ns; 0: not yet */
	bool is_shown;
};

void xt_progress(struct xt_progress *progress, const char *what, uint64_t done, uint64_t all);
/* Takes the line away. */
void xt_progress_end(struct xt_progress *progress);

#endif
