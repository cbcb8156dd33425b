/*
 * Handlers that interrupt a tracer while libcupti tells it of a call:
 *	cuda_jumps MODE [N]
 * A timer's signal comes until it has met the tracer's library N times; without a tracer it may
 * meet anything. What the program prints does not depend on that; how many calls it has made with
 * the timer running goes into the file that JUMPS_CALLS names. See modes[] at the end.
 */
#include "cuda_app.h"

#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

enum { LATER = 10, ROUND_US = 50 };

static uintptr_t tracer_from, tracer_to; /* where its code lies */
static volatile sig_atomic_t armed, met;
static volatile long calls; /* those that were left, too */
static sigjmp_buf out;

static int find_tracer(struct dl_phdr_info *info, size_t size, void *none)
{
	(void)size, (void)none;
	for (int i = 0; strstr(info->dlpi_name, "libxstrace.so") && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		tracer_from = info->dlpi_addr + part->p_vaddr;
		tracer_to = tracer_from + part->p_memsz;
	}
	return tracer_to != 0;
}

static bool is_in_tracer(const void *context)
{
#if defined(__x86_64__)
	uintptr_t at = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
	uintptr_t at = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#endif

	return !tracer_to || (at >= tracer_from && at < tracer_to);
}

static void jump(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	if (!armed || !is_in_tracer(context))
		return;
	armed = 0;
	met++;
	siglongjmp(out, 1);
}

static void end_here(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	if (armed && is_in_tracer(context))
		exit(0);
}

static void call_here(int number, siginfo_t *info, void *context)
{
	int version;

	(void)number, (void)info;
	if (!armed || !is_in_tracer(context))
		return;
	armed = 0;
	met++;
	calls++;
	(void)cudaRuntimeGetVersion(&version);
}

static void call(void)
{
	calls++; /* no atomic: a handler that interrupts it is not in the tracer */
	(void)cudaPeekAtLastError();
}

static void start_timer(void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct itimerval often = { { 0, ROUND_US }, { 0, ROUND_US } };

	CUDA_CHECK(cudaFree(NULL));
	(void)dl_iterate_phdr(find_tracer, NULL);
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &often, NULL))
		die("a timer");
}

static void stop_timer(void)
{
	struct itimerval never = { 0 };
	const char *path = getenv("JUMPS_CALLS");
	FILE *file;

	(void)setitimer(ITIMER_REAL, &never, NULL);
	file = path ? fopen(path, "w") : NULL;
	if (file) {
		fprintf(file, "%ld\n", calls);
		fclose(file);
	}
}

/* Calls, until the handler has come. */
static void __attribute__((noinline)) be_met(void)
{
	if (sigsetjmp(out, 1))
		return;
	armed = 1;
	while (armed)
		call();
}

static void __attribute__((noinline)) call_later(void)
{
	int device;

	for (int i = 0; i < LATER; i++)
		(void)cudaGetDevice(&device);
}

static void block_alarm(int how)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGALRM);
	(void)pthread_sigmask(how, &set, NULL);
}

static void *is_met(void *none)
{
	call();
	block_alarm(SIG_UNBLOCK);
	be_met();
	return none;
}

/* N threads, each of which is left once and ends. */
static int in_threads(int times)
{
	block_alarm(SIG_BLOCK);
	start_timer(jump);
	for (int i = 0; i < times; i++)
		(void)pthread_join(start_thread(is_met, NULL), NULL);
	stop_timer();
	printf("met: %d\n", (int)met);
	return 0;
}

/* This thread is left N times, and calls after each. */
static int again_and_again(int times)
{
	start_timer(jump);
	for (volatile int i = 0; i < times; i++) {
		be_met();
		call_later();
	}
	stop_timer();
	printf("met: %d, later: %d\n", (int)met, LATER * times);
	return 0;
}

/* The last thing that is known of this thread, and of the process. */
static int once(int times)
{
	(void)times;
	start_timer(jump);
	be_met();
	stop_timer();
	printf("met: %d\n", (int)met);
	return 0;
}

/* The handler ends the process, on a stack of its own. */
static int in_exit(int times)
{
	static char memory[1 << 16];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };

	(void)times;
	if (sigaltstack(&stack, NULL))
		die("sigaltstack");
	start_timer(end_here);
	armed = 1;
	for (;;)
		call();
}

/* The handler makes a call of its own. */
static int within(int times)
{
	start_timer(call_here);
	while (met < times) {
		armed = 1;
		while (armed)
			call();
	}
	stop_timer();
	printf("met: %d\n", (int)met);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(int number);
} modes[] = {
	{ "threads", in_threads }, { "again", again_and_again }, { "once", once },
	{ "exit", in_exit },	   { "within", within },
};

int main(int argc, char **argv)
{
	int number = argc > 2 ? atoi(argv[2]) : 20;

	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(modes); i++)
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run(number);
	fprintf(stderr, "no such mode\n");
	return 2;
}
