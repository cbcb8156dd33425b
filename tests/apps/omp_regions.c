/*
 * OpenMP's constructs, each a known number of times; compiled by tests/test_openmp.py with clang.
 *
 *	omp_regions all [ROUNDS]	everything below once a round, on 4 threads
 *	omp_regions late		4 threads work 100, 200, 300 and 400 ms
 *	omp_regions tasks		a thread makes 8 tasks of 10 ms, which all run at the
 *region's end omp_regions deep N		a task in a task …, N of them omp_regions nested N
 *a region in a region …, N of them omp_regions fork		a region, and one in a child of fork
 *	omp_regions exit		_exit() within a region
 *	omp_regions paused		regions: before, while and after nothing is recorded
 *	omp_regions spanned		a region in which nothing is recorded for a while; one more
 *	omp_regions loop N		N short regions of a loop; says what one takes, ns
 */
#include <omp.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "app.h"

#define THREADS 4

static double cells[1000];
static atomic_int done;

__attribute__((noinline)) static void shared_loop(void)
{
#pragma omp for
	for (int i = 0; i < 1000; i++)
		cells[i] += i;
}

__attribute__((noinline)) static void region_of_all(void)
{
	static omp_lock_t lock;
	static omp_nest_lock_t nest;

	omp_init_lock(&lock);
	omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(THREADS)
	{
		shared_loop();
#pragma omp for schedule(dynamic, 50)
		for (int i = 0; i < 1000; i++)
			cells[i] *= 0.5;
#pragma omp barrier
#pragma omp single
		done++;
#pragma omp master
		done++;
#pragma omp critical
		done++;
		omp_set_lock(&lock);
		omp_unset_lock(&lock);
		while (!omp_test_lock(&lock))
			;
		omp_unset_lock(&lock);
		omp_set_nest_lock(&nest);
		omp_set_nest_lock(&nest);
		omp_unset_nest_lock(&nest);
		omp_unset_nest_lock(&nest);
#pragma omp sections
		{
#pragma omp section
			done++;
#pragma omp section
			done++;
		}
	}
	omp_destroy_lock(&lock);
	omp_destroy_nest_lock(&nest);
}

__attribute__((noinline)) static void region_of_tasks(void)
{
	int x[3];

	(void)x;
#pragma omp parallel num_threads(THREADS)
#pragma omp single
	{
#pragma omp task depend(out : x[0])
		sleep_ms(5);
#pragma omp task depend(in : x[0]) depend(out : x[1])
		sleep_ms(5);
#pragma omp task depend(in : x[1])
		done++;
#pragma omp taskwait
#pragma omp taskgroup
		{
			for (int i = 0; i < 7; i++)
#pragma omp task
				done++;
		}
	}
}

__attribute__((noinline)) static void late(void)
{
#pragma omp parallel num_threads(THREADS)
	sleep_ms(100 * (omp_get_thread_num() + 1));
}

__attribute__((noinline)) static void tasks_at_the_end(void)
{
#pragma omp parallel num_threads(THREADS)
#pragma omp master
	for (int i = 0; i < 8; i++)
#pragma omp task
		sleep_ms(10);
}

static void deep(int n)
{
	if (!n)
		return;
#pragma omp task
	deep(n - 1);
#pragma omp taskwait
}

static void nested(int n)
{
	if (!n)
		return;
#pragma omp parallel num_threads(1)
	{
		done++;
		nested(n - 1);
	}
}

__attribute__((noinline)) static void small(void)
{
#pragma omp parallel num_threads(THREADS)
	done++;
}

/* In the pause three threads wait for the first one. */
__attribute__((noinline)) static void spanned(void)
{
#pragma omp parallel num_threads(THREADS)
	{
#pragma omp barrier
#pragma omp master
		setenv("PTI_ENABLE_COLLECTION", "0", 1);
#pragma omp barrier
#pragma omp master
		sleep_ms(20);
#pragma omp barrier
#pragma omp master
		setenv("PTI_ENABLE_COLLECTION", "1", 1);
#pragma omp barrier
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	int n = argc > 2 ? atoi(argv[2]) : 1;

	if (!strcmp(what, "all")) {
		for (int i = 0; i < n; i++) {
			region_of_all();
			region_of_tasks();
		}
	} else if (!strcmp(what, "late")) {
		late();
	} else if (!strcmp(what, "tasks")) {
		tasks_at_the_end();
	} else if (!strcmp(what, "deep")) {
#pragma omp parallel num_threads(THREADS)
#pragma omp single
		deep(n);
	} else if (!strcmp(what, "nested")) {
		nested(n);
	} else if (!strcmp(what, "fork")) {
		pid_t child;
		int status;

		small();
		child = fork();
		if (!child) {
			small();
			small();
			exit(0);
		}
		if (waitpid(child, &status, 0) != child || status)
			die("child");
	} else if (!strcmp(what, "exit")) {
		small();
#pragma omp parallel num_threads(THREADS)
		{
			if (omp_get_thread_num() == THREADS - 1) {
				sleep_ms(50);
				_exit(7);
			}
			sleep_ms(10000);
		}
	} else if (!strcmp(what, "paused")) {
		small();
		setenv("PTI_ENABLE_COLLECTION", "1", 1);
		small();
#pragma omp parallel num_threads(THREADS)
		{
#pragma omp barrier
#pragma omp master
			setenv("PTI_ENABLE_COLLECTION", "0", 1);
#pragma omp barrier
		}
		small();
		setenv("PTI_ENABLE_COLLECTION", "1", 1);
		small();
		small();
	} else if (!strcmp(what, "spanned")) {
		setenv("PTI_ENABLE_COLLECTION", "1", 1);
		spanned();
		small();
	} else if (!strcmp(what, "loop")) {
		uint64_t start;

		small();
		start = now_ns();
		for (int i = 0; i < n; i++) {
#pragma omp parallel num_threads(2)
#pragma omp for schedule(static)
			for (int k = 0; k < 1000; k++)
				cells[k] += k;
		}
		printf("%.1f\n", (double)(now_ns() - start) / n);
	}
	printf("done\n");
	return 0;
}
