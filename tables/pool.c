#include "pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define MOST_THREADS 32u

struct xt_pool {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	struct xt_job *first, **last;
	unsigned heavy, limit, running, count;
	bool is_over;
	pthread_t threads[MOST_THREADS];
};

static void *work(void *user)
{
	struct xt_pool *pool = user;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		struct xt_job *job = pool->first;
		bool is_heavy;

		if (!job && pool->is_over)
			break;
		if (!job) {
			pthread_cond_wait(&pool->work, &pool->lock);
			continue;
		}
		pool->first = job->next;
		if (!job->next)
			pool->last = &pool->first;
		pool->running++;
		pthread_mutex_unlock(&pool->lock);
		is_heavy = job->is_heavy;
		job->run(job); /* it may be gone then */
		pthread_mutex_lock(&pool->lock);
		pool->running--;
		pool->heavy -= is_heavy;
		pthread_cond_broadcast(&pool->done);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

struct xt_pool *xt_pool_create(unsigned threads, unsigned limit)
{
	struct xt_pool *pool = calloc(1, sizeof(*pool));
	sigset_t all, before;

	if (!pool)
		return NULL;
	pool->last = &pool->first;
	pool->limit = limit ? limit : 1;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->done, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (pool->count < threads && pool->count < MOST_THREADS &&
	       !pthread_create(&pool->threads[pool->count], NULL, work, pool))
		pool->count++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pool;
}

void xt_pool_add(struct xt_pool *pool, struct xt_job *job)
{
	if (!pool->count) {
		job->run(job);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	while (job->is_heavy && pool->heavy >= pool->limit)
		pthread_cond_wait(&pool->done, &pool->lock);
	pool->heavy += job->is_heavy;
	job->next = NULL;
	*pool->last = job;
	pool->last = &job->next;
	pthread_cond_signal(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

void xt_pool_wait(struct xt_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	while (pool->first || pool->running)
		pthread_cond_wait(&pool->done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

void xt_pool_free(struct xt_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->is_over = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->count; i++)
		pthread_join(pool->threads[i], NULL);
	free(pool);
}
