/*
 * xstrace-stacks PID: where the threads of that process are. Started by the drain process, which
 * reads what this prints once it has ended; lines of
 *
 *	S NS			the process stood still for so long
 *	T TID STATE NAME	a thread; of it are the lines that follow
 *	N			it did not stand still in time
 *	M NUMBER BUILD-ID PATH	a file; "-": it has no id
 *	F NUMBER ADDRESS	a frame, innermost first: where in which file; "-": in none
 *	C			there are more
 *	P ENTRY TEXT		a function of Python's, innermost first; 1: C has called it
 *	O			there are more threads
 *	E WHY			the process cannot be looked into
 *
 * xstrace-stacks PID NS: looks every NS nanoseconds (sample.c).
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "process.h"
#include "stacks.h"

#define SECONDS 5 /* of a processor, for what hostile memory may make this program do */
#define STILL	2 /* seconds for which threads are held at most; then this program ends */

static void limit(int which, rlim_t most)
{
	(void)setrlimit(which, &(struct rlimit){ most, most });
}

static void print_frame(uintptr_t address)
{
	struct xs_module *module = xs_module_of(address - 1);

	if (!module) {
		printf("F - %lx\n", address);
		return;
	}
	xs_print_module(module);
	printf("F %zu %lx\n", xs_module_number(module), address - module->bias);
}

static void print_thread(const struct xs_thread *thread)
{
	uintptr_t frames[XS_FRAMES_MAX];
	bool more = false;
	size_t n;

	printf("T %d %c ", thread->tid, thread->state);
	xs_print_text(thread->name, "\n");
	if (!thread->copied) {
		puts("N");
		return;
	}
	n = xs_walk(thread, frames, XS_FRAMES_MAX, &more);
	for (size_t i = 0; i < n; i++)
		print_frame(frames[i]);
	if (more || thread->python_more)
		puts("C");
	xs_python_print(thread);
}

struct copying {
	pid_t pid;
	struct xs_threads *threads;
	int error;
};

static void *copy(void *argument)
{
	struct copying *copying = argument;

	copying->error = xs_threads_copy(copying->threads, copying->pid);
	return NULL;
}

/*
 * In a thread, which is the tracer. With its end the kernel lets go whom it could not stop in time:
 * they do not stand still when they come out of their calls, while this program goes through
 * frames. Memory whose reads wait (userfaultfd, a lost file server) is not waited for.
 */
static int copy_threads(struct xs_threads *threads, pid_t pid)
{
	struct copying copying = { pid, threads, 0 };
	pthread_t thread;
	int error;

	(void)alarm(STILL);
	error = pthread_create(&thread, NULL, copy, &copying);
	if (error)
		return -error;
	(void)pthread_join(thread, NULL);
	(void)alarm(0);
	return copying.error;
}

int main(int argc, char **argv)
{
	pid_t pid = argc == 2 || argc == 3 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	pid_t living;
	static char buffer[1 << 16];
	struct xs_threads threads;
	int error;

	if (pid <= 0) {
		fprintf(stderr,
			"xstrace-stacks: xstrace starts this program; see xstrace --help\n");
		return 1;
	}
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_DATA, 1u << 30);
	(void)setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (argc == 3) {
		error = xs_sample(pid, strtoull(argv[2], NULL, 10));
		if (error < 0) {
			printf("E ");
			xs_say_why_not(stdout, pid, error);
		}
		return 0;
	}
	limit(RLIMIT_CPU, SECONDS);
	limit(RLIMIT_FSIZE, 64u << 20);
	living = xs_pid_living(pid);
	xs_memory_of(living);
	if (xs_modules_read(living))
		xs_python_look(living);
	error = copy_threads(&threads, pid);
	if (error < 0) {
		printf("E ");
		xs_say_why_not(stdout, pid, error);
		return 0;
	}
	printf("S %llu\n", (unsigned long long)threads.still);
	for (size_t i = 0; i < threads.count; i++) {
		/* it has ended, or was still to be held when all others were */
		if (!threads.list[i].copied && !threads.list[i].seized)
			continue;
		print_thread(&threads.list[i]);
		(void)fflush(stdout); /* the next one's memory may be what ends this program */
	}
	if (threads.more)
		puts("O");
	return 0;
}
