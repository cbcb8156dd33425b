/*
 * All inputs side by side, by as many threads as there are processors: each makes blocks of the
 * input that is least advanced, ahead of the caller's thread, which takes them in their order. That
 * order is the same with any number of threads, since an input's progress alone decides it.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "progress.h"
#include "turn.h"

#define MOST_THREADS 32u
#define AHEAD	     8u /* blocks of usual size, of each thread */

/* An input, as the threads share it. */
struct lane {
	struct xm_block *ready, **end; /* made and not taken */
	int64_t progress;	       /* of the last turn that was made */
	bool is_busy;		       /* a thread makes a block of it */
	bool is_read;		       /* there are no more blocks to make */
};

struct walk {
	struct xm_merge *merge;
	const struct xm_visitor *visitor;
	bool first;
	pthread_mutex_t lock;
	pthread_cond_t made, room;
	struct lane *lanes;
	struct xm_block *free;
	struct xm_block reserve; /* the caller's: it needs no memory to go on */
	bool has_reserve;
	uint32_t ready, limit, sleepers; /* ready, limit: weights */
	bool is_waiting, is_over;
	pthread_t threads[MOST_THREADS];
	uint32_t thread_count;
};

/* The input whose turn it would be, of those that nobody reads; NULL: none, or enough is ready. */
static struct xm_input *next_to_make(const struct walk *walk)
{
	struct xm_input *next = NULL;
	int64_t least = 0;

	if (walk->ready >= walk->limit)
		return NULL;
	for (uint32_t i = 0; i < walk->merge->count; i++) {
		const struct lane *lane = &walk->lanes[i];

		if (!lane->is_busy && !lane->is_read && (!next || lane->progress < least)) {
			next = &walk->merge->inputs[i];
			least = lane->progress;
		}
	}
	return next;
}

static struct xm_block *new_block(struct walk *walk)
{
	struct xm_block *block = walk->free;

	if (block)
		walk->free = block->next;
	else
		block = calloc(1, sizeof(*block));
	return block;
}

/* Makes a block; the lock is released meanwhile. */
static void make(struct walk *walk, struct xm_input *input, struct xm_block *block)
{
	struct lane *lane = &walk->lanes[input->index];

	lane->is_busy = true;
	pthread_mutex_unlock(&walk->lock);
	block->input = input;
	block->next = NULL;
	block->is_last = false;
	xm_turn_make(input, walk->visitor, walk->first, block);
	pthread_mutex_lock(&walk->lock);
	lane->is_busy = false;
	lane->is_read = block->is_last;
	if (block->ends_turn)
		lane->progress = block->progress;
	*lane->end = block;
	lane->end = &block->next;
	/* long events are few at a time */
	block->weight =
		1 + (uint32_t)((block->text.room + block->notes.room) / (2 * XM_BLOCK_ROOM));
	walk->ready += block->weight;
}

static void *work(void *user)
{
	struct walk *walk = user;

	pthread_mutex_lock(&walk->lock);
	while (!walk->is_over) {
		struct xm_input *input = next_to_make(walk);
		struct xm_block *block = input ? new_block(walk) : NULL;

		if (block) {
			make(walk, input, block);
			if (walk->is_waiting)
				pthread_cond_signal(&walk->made);
			continue;
		}
		walk->sleepers++;
		pthread_cond_wait(&walk->room, &walk->lock);
		walk->sleepers--;
	}
	pthread_mutex_unlock(&walk->lock);
	return NULL;
}

/* The next block of the input: one that is ready, or it is made here. With the lock. */
static struct xm_block *block_of(struct walk *walk, struct xm_input *input)
{
	struct lane *lane = &walk->lanes[input->index];
	struct xm_block *block;

	while (!lane->ready) {
		struct xm_input *other = lane->is_busy ? next_to_make(walk) : input;

		block = other ? new_block(walk) : NULL;
		if (!block && other == input && !walk->has_reserve) {
			block = &walk->reserve;
			walk->has_reserve = true;
		}
		if (block) {
			make(walk, other, block);
			continue;
		}
		walk->is_waiting = true;
		pthread_cond_wait(&walk->made, &walk->lock);
		walk->is_waiting = false;
	}
	block = lane->ready;
	lane->ready = block->next;
	if (!lane->ready)
		lane->end = &lane->ready;
	walk->ready -= block->weight;
	if (walk->sleepers && walk->ready <= walk->limit / 2)
		pthread_cond_broadcast(&walk->room);
	return block;
}

static void give_back(struct walk *walk, struct xm_block *block)
{
	xm_block_clear(block);
	pthread_mutex_lock(&walk->lock);
	if (block == &walk->reserve) {
		walk->has_reserve = false;
		return;
	}
	block->next = walk->free;
	walk->free = block;
}

static void start(struct walk *walk)
{
	cpu_set_t usable;
	sigset_t all, before;
	uint32_t count = 1;

	/* as many as this process may use; the caller's thread is one */
	if (!sched_getaffinity(0, sizeof(usable), &usable))
		count = (uint32_t)CPU_COUNT(&usable);
	count = walk->visitor->is_ahead ? count : 1;
	count = count - 1 < walk->merge->count ? count - 1 : walk->merge->count;
	count = count < MOST_THREADS ? count : MOST_THREADS;
	walk->limit = AHEAD * (count + 1);
	(void)pthread_mutex_init(&walk->lock, NULL);
	(void)pthread_cond_init(&walk->made, NULL);
	(void)pthread_cond_init(&walk->room, NULL);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	while (walk->thread_count < count &&
	       !pthread_create(&walk->threads[walk->thread_count], NULL, work, walk))
		walk->thread_count++;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void stop(struct walk *walk)
{
	pthread_mutex_lock(&walk->lock);
	walk->is_over = true;
	pthread_cond_broadcast(&walk->room);
	pthread_mutex_unlock(&walk->lock);
	for (uint32_t i = 0; i < walk->thread_count; i++)
		(void)pthread_join(walk->threads[i], NULL);
	for (struct xm_block *block = walk->free, *next; block; block = next) {
		next = block->next;
		xm_block_free(block);
		free(block);
	}
	xm_block_free(&walk->reserve);
	free(walk->lanes);
}

/* Whose turn is next; NULL: all are over. */
static struct xm_input *next_to_take(const struct xm_merge *merge)
{
	struct xm_input *next = NULL;

	for (uint32_t i = 0; i < merge->count; i++)
		if (!merge->inputs[i].done && (!next || merge->inputs[i].progress < next->progress))
			next = &merge->inputs[i];
	return next;
}

/* All of one input's turn. */
static void take_turn(struct walk *walk, struct xm_input *input)
{
	bool ends_turn = false;

	while (!ends_turn) {
		struct xm_block *block;

		block = block_of(walk, input);
		pthread_mutex_unlock(&walk->lock);
		ends_turn = block->ends_turn;
		walk->visitor->take(walk->visitor->user, block);
		input->progress = block->progress;
		input->lost = block->lost;
		input->done = block->is_last;
		give_back(walk, block);
	}
}

int xm_walk(struct xm_merge *merge, bool first, const struct xm_visitor *visitor)
{
	struct walk walk = { .merge = merge, .visitor = visitor, .first = first };
	struct xm_input *input;

	walk.lanes = calloc(merge->count + 1, sizeof(*walk.lanes));
	if (!walk.lanes)
		return -ENOMEM;
	for (uint32_t i = 0; i < merge->count; i++) {
		xm_turn_open(merge, &merge->inputs[i], first);
		walk.lanes[i].end = &walk.lanes[i].ready;
		walk.lanes[i].progress = INT64_MIN;
		walk.lanes[i].is_read = merge->inputs[i].done;
	}
	xm_progress_begin(merge, visitor->what);
	start(&walk);
	pthread_mutex_lock(&walk.lock);
	while ((input = next_to_take(merge))) {
		take_turn(&walk, input);
		xm_progress_tell(merge);
		if (!input->done)
			continue;
		pthread_mutex_unlock(&walk.lock);
		xm_turn_close(input, first);
		pthread_mutex_lock(&walk.lock);
	}
	pthread_mutex_unlock(&walk.lock);
	stop(&walk);
	xm_progress_clear();
	return 0;
}
