#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RUNNING_MAX = 64, HISTORY_MAX = 1 << 16 };

/* A file of zeros is one in which nothing has happened. */
struct shared {
	_Atomic uint32_t made;
	pthread_mutex_t lock;
	struct {
		uint64_t start;
		uint32_t device; /* from 1; 0: none */
		pid_t pid;
	} running[RUNNING_MAX];
	uint64_t count; /* ever */
	struct sc_past past[HISTORY_MAX];
};
static struct shared *shared;

/* Of the machine's devices, as who sees all of them counts. */
static uint32_t number_of(const struct sc_cmd *cmd)
{
	return (uint32_t)cmd->context->device->ordinal + sc_config.first;
}

static void lock(void)
{
	/* a process that was killed left the history as it is: each entry is whole */
	if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD)
		(void)pthread_mutex_consistent(&shared->lock);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&shared->lock);
}

static void make(void)
{
	pthread_mutexattr_t attributes;

	(void)pthread_mutexattr_init(&attributes);
	(void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	(void)pthread_mutex_init(&shared->lock, &attributes);
	atomic_store(&shared->made, 1);
}

void sc_history_open(const char *path)
{
	int fd;
	void *map;

	if (!path || !*path)
		return;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	map = fd < 0 || flock(fd, LOCK_EX) || ftruncate(fd, sizeof(*shared))
		      ? MAP_FAILED
		      : mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		fprintf(stderr, "softcuda: SOFTCUDA_SHM=%s cannot be used\n", path);
		_Exit(124);
	}
	shared = map;
	if (!atomic_load(&shared->made))
		make();
	(void)flock(fd, LOCK_UN);
	close(fd);
	sc_flag(SC_HISTORY, true);
}

uint64_t sc_history_begin(const struct sc_cmd *cmd, int *ret_place)
{
	uint64_t start;

	*ret_place = -1;
	if (!shared || cmd->kind != SC_KERNEL)
		return sc_now();
	lock();
	/* with the lock held: no period that it begins in is taken for known before it has its
	 * place */
	start = sc_now();
	for (int i = 0; i < RUNNING_MAX && *ret_place < 0; i++) {
		if (shared->running[i].device)
			continue;
		shared->running[i].device = number_of(cmd) + 1;
		shared->running[i].start = start;
		shared->running[i].pid = getpid();
		*ret_place = i;
	}
	unlock();
	return start;
}

void sc_history_end(const struct sc_cmd *cmd, int place)
{
	if (!shared || cmd->kind != SC_KERNEL)
		return;
	lock();
	if (place >= 0)
		shared->running[place].device = 0;
	shared->past[shared->count % HISTORY_MAX] =
		(struct sc_past){ .start = cmd->start,
				  .end = cmd->end,
				  .blocks = (uint64_t)cmd->grid[0] * cmd->grid[1] * cmd->grid[2],
				  .threads =
					  (uint64_t)cmd->block[0] * cmd->block[1] * cmd->block[2],
				  .device = number_of(cmd) };
	shared->count++;
	unlock();
}

uint64_t sc_history_known(uint32_t device)
{
	uint64_t until;

	if (!shared)
		return sc_now();
	lock();
	until = sc_now();
	for (int i = 0; i < RUNNING_MAX; i++) {
		if (shared->running[i].device != device + 1)
			continue;
		if (kill(shared->running[i].pid, 0) < 0 && errno == ESRCH)
			shared->running[i].device = 0; /* it was killed */
		else if (shared->running[i].start < until)
			until = shared->running[i].start;
	}
	unlock();
	return until;
}

uint64_t sc_history_count(void)
{
	uint64_t count = 0;

	if (shared) {
		lock();
		count = shared->count;
		unlock();
	}
	return count;
}

bool sc_history_past(uint64_t n, struct sc_past *ret)
{
	bool there = false;

	if (!shared)
		return false;
	lock();
	there = n < shared->count && shared->count - n <= HISTORY_MAX;
	if (there)
		*ret = shared->past[n % HISTORY_MAX];
	unlock();
	return there;
}
