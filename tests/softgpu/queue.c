/*
 * The order of commands, and who runs them. A queue holds what was submitted and is not done; any
 * of it may start whose wait events are signalled and that no barrier, in-order list or end of a
 * list holds back. That is all the order there is: with several workers, what has no reason to wait
 * overlaps. With SOFTGPU_SYNC=1 there are no workers and the calling thread runs all that can run,
 * now; what cannot (an event is missing) stays until a later call makes it possible.
 */
#include "driver.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

pthread_mutex_t sg_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change; /* of anything that someone may wait for */
static pthread_once_t change_once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t sleepers, pending_total;
static struct sg_queue *queues;
static _Thread_local bool pumping __attribute__((tls_model("initial-exec")));

static struct sg_cmd list_end = {
	.op = SG_LIST_END, .after_all = true, .before_all = true, .name = "end"
};

static void change_make(void)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&change, &attr);
	(void)pthread_condattr_destroy(&attr);
}

void sg_changed(void)
{
	/*
	 * a sleeper counts itself before it looks a last time; both sides are seq_cst, so one sees
	 * the other
	 */
	if (atomic_load(&sleepers)) {
		(void)pthread_mutex_lock(&sg_lock);
		(void)pthread_cond_broadcast(&change);
		(void)pthread_mutex_unlock(&sg_lock);
	}
	if (sg_config.sync && atomic_load(&pending_total))
		sg_pump();
}

static bool may_start(const struct sg_task *task)
{
	const struct sg_cmd *cmd = task->cmd;

	for (uint32_t i = 0; i < cmd->nwait; i++)
		if (!(cmd->wait[i]->counts ? sg_event_reached(cmd->wait[i], task->wanted[i])
					   : sg_event_ready(cmd->wait[i])))
			return false;
	return true;
}

/*
 * A counter-based event may be asked for again before this waits for it: what is waited for is what
 * was asked for until now.
 */
static void note_wanted(struct sg_task *task)
{
	const struct sg_cmd *cmd = task->cmd;

	for (uint32_t i = 0; i < cmd->nwait; i++) {
		if (!cmd->wait[i]->counts)
			continue;
		if (!task->wanted)
			task->wanted = cmd->nwait <= sizeof(task->few) / sizeof(task->few[0])
					       ? task->few
					       : malloc(cmd->nwait * sizeof(*task->wanted));
		if (!task->wanted)
			abort();
		task->wanted[i] = atomic_load(&cmd->wait[i]->wanted);
	}
}

static bool running(const struct sg_queue *queue)
{
	for (const struct sg_task *task = queue->head; task; task = task->next)
		if (task->running)
			return true;
	return false;
}

static struct sg_task *startable(struct sg_queue *queue)
{
	bool first = true;

	for (struct sg_task *task = queue->head; task; task = task->next) {
		if (!task->running && (first || !task->after_all) && may_start(task))
			return task;
		if (task->before_all)
			return NULL;
		first = false;
	}
	return NULL;
}

/* Called with the lock held, returns with it held. */
static void run_task(struct sg_queue *queue, struct sg_task *task)
{
	struct sg_cmd *cmd = task->cmd;

	task->running = true;
	(void)pthread_mutex_unlock(&sg_lock);
	if (task->fence)
		sg_fence_signal(task->fence, sg_queue_latest(queue));
	else if (cmd->op != SG_LIST_END)
		sg_run(queue, task->list, cmd, task->execution, true);
	(void)pthread_mutex_lock(&sg_lock);
	*(task->previous ? &task->previous->next : &queue->head) = task->next;
	*(task->next ? &task->next->previous : &queue->tail) = task->previous;
	if (task->wanted && task->wanted != task->few)
		free(task->wanted);
	task->next = queue->unused;
	queue->unused = task;
	/* pairs with the acquire where an immediate list takes its memory back */
	atomic_fetch_sub_explicit(&queue->pending, 1, memory_order_release);
	atomic_fetch_sub(&pending_total, 1);
	(void)pthread_cond_broadcast(&change);
}

void sg_pump(void)
{
	bool more = true;

	if (pumping || !sg_config.sync)
		return;
	pumping = true;
	(void)pthread_mutex_lock(&sg_lock);
	while (more) {
		more = false;
		for (struct sg_queue *queue = queues; queue; queue = queue->next_queue) {
			for (struct sg_task *task; (task = startable(queue));) {
				run_task(queue, task);
				more = true;
			}
		}
	}
	(void)pthread_mutex_unlock(&sg_lock);
	pumping = false;
}

static void *worker(void *arg)
{
	struct sg_queue *queue = arg;

	(void)pthread_mutex_lock(&sg_lock);
	while (!queue->stop) {
		struct sg_task *task = startable(queue);

		if (task) {
			run_task(queue, task);
			continue;
		}
		/* an event may be signalled without the lock, between that look and this wait */
		atomic_fetch_add(&sleepers, 1);
		if (!startable(queue))
			(void)pthread_cond_wait(&change, &sg_lock);
		atomic_fetch_sub(&sleepers, 1);
	}
	(void)pthread_mutex_unlock(&sg_lock);
	return NULL;
}

struct sg_queue *sg_queue_new(struct sg_device *device, const ze_command_queue_desc_t *desc)
{
	struct sg_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	(void)pthread_once(&change_once, change_make);
	(void)pthread_mutex_init(&queue->virtual_lock, NULL);
	queue->device = device;
	queue->ordinal = desc->ordinal;
	queue->index = desc->index;
	queue->mode = desc->mode;
	queue->base = queue->latest = sg_device_ticks();
	(void)pthread_mutex_lock(&sg_lock);
	queue->next_queue = queues;
	queues = queue;
	(void)pthread_mutex_unlock(&sg_lock);
	return queue;
}

void sg_queue_destroy(struct sg_queue *queue)
{
	struct sg_task *next;

	sg_pump();
	(void)pthread_mutex_lock(&sg_lock);
	/* the last command's event may have been seen before the command was put away */
	while (queue->workers && (running(queue) || startable(queue)))
		(void)pthread_cond_wait(&change, &sg_lock);
	if (queue->head)
		sg_misuse("a queue is destroyed while %u commands wait in it",
			  atomic_load(&queue->pending));
	queue->stop = true;
	(void)pthread_cond_broadcast(&change);
	for (struct sg_queue **at = &queues; *at; at = &(*at)->next_queue) {
		if (*at == queue) {
			*at = queue->next_queue;
			break;
		}
	}
	(void)pthread_mutex_unlock(&sg_lock);
	for (uint32_t i = 0; i < queue->workers; i++)
		(void)pthread_join(queue->threads[i], NULL);
	atomic_fetch_sub(&pending_total, atomic_load(&queue->pending));
	for (struct sg_task *task = queue->head; task; task = next) {
		next = task->next;
		free(task);
	}
	for (struct sg_task *task = queue->unused; task; task = next) {
		next = task->next;
		free(task);
	}
	(void)pthread_mutex_destroy(&queue->virtual_lock);
	free(queue);
}

static void push(struct sg_queue *queue, struct sg_list *list, struct sg_cmd *cmd,
		 struct sg_fence *fence, uint64_t execution)
{
	struct sg_task *task;

	sg_users(cmd, list, 1);
	(void)pthread_mutex_lock(&sg_lock);
	task = queue->unused;
	if (task)
		queue->unused = task->next;
	else if (!(task = malloc(sizeof(*task))))
		abort();
	*task = (struct sg_task){
		.cmd = cmd, .list = list, .fence = fence, .execution = execution
	};
	task->after_all = cmd->after_all || (list && list->in_order);
	task->before_all = cmd->before_all || (list && list->in_order);
	note_wanted(task);
	if (cmd->signal)
		sg_event_asked(cmd->signal);
	task->previous = queue->tail;
	*(queue->tail ? &queue->tail->next : &queue->head) = task;
	queue->tail = task;
	atomic_fetch_add(&queue->pending, 1);
	atomic_fetch_add(&pending_total, 1);
	(void)pthread_mutex_unlock(&sg_lock);
}

void sg_queue_push(struct sg_queue *queue, struct sg_list *list, struct sg_cmd *cmd,
		   uint64_t execution)
{
	push(queue, list, cmd, NULL, execution);
}

void sg_queue_push_list(struct sg_queue *queue, struct sg_list *list)
{
	uint64_t execution = ++list->executions;

	for (uint32_t i = 0; i < list->count; i++)
		sg_queue_push(queue, list, list->cmds[i], execution);
	push(queue, NULL, &list_end, NULL, 0);
}

void sg_queue_push_fence(struct sg_queue *queue, struct sg_fence *fence)
{
	push(queue, NULL, &list_end, fence, 0);
}

/* Sets going what was pushed. */
void sg_queue_go(struct sg_queue *queue)
{
	if (sg_config.sync) {
		sg_pump();
		return;
	}
	(void)pthread_mutex_lock(&sg_lock);
	if (!queue->workers) {
		sigset_t all, before;

		/* the program's signals are none of these threads' business */
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &before);
		while (queue->workers < sg_config.workers &&
		       !pthread_create(&queue->threads[queue->workers], NULL, worker, queue))
			queue->workers++;
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	(void)pthread_cond_broadcast(&change);
	(void)pthread_mutex_unlock(&sg_lock);
	if (queue->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS)
		(void)sg_wait(sg_queue_idle, queue, UINT64_MAX, false);
}

bool sg_queue_idle(const void *queue)
{
	return atomic_load(&((const struct sg_queue *)queue)->pending) == 0;
}

uint64_t sg_queue_latest(struct sg_queue *queue)
{
	uint64_t ret;

	(void)pthread_mutex_lock(&queue->virtual_lock);
	ret = queue->latest;
	(void)pthread_mutex_unlock(&queue->virtual_lock);
	return ret;
}

static struct timespec after(uint64_t ns)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	if (ns > 1000000000000000000u)
		ns = 1000000000000000000u;
	t.tv_sec += (time_t)(ns / 1000000000u);
	t.tv_nsec += (long)(ns % 1000000000u);
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

ze_result_t sg_wait(bool (*ready)(const void *), const void *what, uint64_t timeout_ns, bool shared)
{
	struct timespec until;
	bool late = false;

	if (ready(what))
		return SG_OK;
	sg_pump();
	if (timeout_ns == 0)
		return ready(what)	  ? SG_OK
		       : sg_device_lost() ? ZE_RESULT_ERROR_DEVICE_LOST
					  : ZE_RESULT_NOT_READY;
	(void)pthread_once(&change_once, change_make);
	until = after(timeout_ns);
	(void)pthread_mutex_lock(&sg_lock);
	atomic_fetch_add(&sleepers, 1);
	while (!ready(what) && !late && !sg_device_lost()) {
		if (shared) {
			struct timespec soon = after(50000);

			(void)pthread_cond_timedwait(&change, &sg_lock, &soon);
			(void)clock_gettime(CLOCK_MONOTONIC, &soon);
			late = soon.tv_sec > until.tv_sec ||
			       (soon.tv_sec == until.tv_sec && soon.tv_nsec >= until.tv_nsec);
		} else {
			late = pthread_cond_timedwait(&change, &sg_lock, &until) != 0;
		}
	}
	atomic_fetch_sub(&sleepers, 1);
	(void)pthread_mutex_unlock(&sg_lock);
	return ready(what)	  ? SG_OK
	       : sg_device_lost() ? ZE_RESULT_ERROR_DEVICE_LOST
				  : ZE_RESULT_NOT_READY;
}
