/*
 * Several shells that pause and resume a run at once: what is noted of the pauses stays true.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include "shm.h"
#include "tap.h"

#define SHELLS	 4
#define BATCHES	 30
#define BATCH_NS 20000000u

static struct xs_control control;
static pthread_barrier_t together;
static char place[] = "/tmp/control-threads-XXXXXX";

static void *shell(void *number)
{
	/* of two shells each */
	enum xs_pause_reason reason = (uintptr_t)number % 2 ? XS_PAUSE_SESSION : XS_PAUSE_WINDOW;
	int directory = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int batch = 0; batch < BATCHES; batch++) {
		pthread_barrier_wait(&together);
		for (uint64_t end = xs_clock_ns(CLOCK_MONOTONIC) + BATCH_NS;
		     xs_clock_ns(CLOCK_MONOTONIC) < end;) {
			(void)xs_control_change(directory, &control, reason, true);
			(void)xs_control_change(directory, &control, reason, false);
		}
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together); /* what came of it is looked at */
	}
	close(directory);
	return NULL;
}

/* Each of the newest pauses is over, and none begins before the one before it has ended. */
static void check_pauses(void)
{
	uint32_t count = atomic_load(&control.pauses.count);
	uint64_t before = 0;

	CHECK(!atomic_load(&control.paused) && count, "%u pauses", count);
	for (uint32_t i = count > XS_PAUSES ? count - XS_PAUSES : 0; i < count; i++) {
		uint64_t from = atomic_load(&control.pauses.last[i % XS_PAUSES].from),
			 to = atomic_load(&control.pauses.last[i % XS_PAUSES].to);

		if (!CHECK(from >= before && to >= from && to != UINT64_MAX,
			   "pause %u of %u: %llu to %llu after %llu", i, count,
			   (unsigned long long)from, (unsigned long long)to,
			   (unsigned long long)before))
			break;
		before = to;
	}
}

static void shells(void)
{
	pthread_t threads[SHELLS];

	pthread_barrier_init(&together, NULL, SHELLS + 1);
	for (uintptr_t i = 0; i < SHELLS; i++)
		pthread_create(&threads[i], NULL, shell, (void *)i);
	for (int batch = 0; batch < BATCHES; batch++) {
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
		check_pauses();
		pthread_barrier_wait(&together);
	}
	for (int i = 0; i < SHELLS; i++)
		pthread_join(threads[i], NULL);
}

/* It costs a moment, and no more. */
static void stopped_holder(void)
{
	int directory = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    holder = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t start = xs_clock_ns(CLOCK_MONOTONIC), took;

	CHECK(!flock(holder, LOCK_EX), "held");
	CHECK(xs_control_change(directory, &control, XS_PAUSE_SESSION, true),
	      "changed all the same");
	took = xs_clock_ns(CLOCK_MONOTONIC) - start;
	CHECK(took >= 200000000u, "%llu ns: it was waited for", (unsigned long long)took);
	CHECK(xs_control_change(-1, &control, XS_PAUSE_SESSION, false),
	      "without a descriptor, too");
	close(holder);
	close(directory);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	if (!mkdtemp(place))
		return 99;
	tap_run("shells at once", shells);
	tap_run("a holder that was stopped", stopped_holder);
	(void)rmdir(place);
	return tap_done();
}
