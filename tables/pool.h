/*
 * Threads that do jobs, none of which waits for another.
 */
#ifndef XT_POOL_H
#define XT_POOL_H

#include <stdbool.h>

struct xt_job {
	void (*run)(struct xt_job *job);
	struct xt_job *next;
	bool is_heavy; /* it counts against the pool's limit until it is done */
};

struct xt_pool;

/*
 * As many threads, and at most `limit` heavy jobs that are not done. NULL: no memory. Where no
 * thread can be started, the caller's does the jobs.
 */
struct xt_pool *xt_pool_create(unsigned threads, unsigned limit);
/* Waits while there are too many heavy jobs. */
void xt_pool_add(struct xt_pool *pool, struct xt_job *job);
/* Until all is done. */
void xt_pool_wait(struct xt_pool *pool);
void xt_pool_free(struct xt_pool *pool);

#endif
