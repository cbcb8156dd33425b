/*
 * A thread that is stopped at one instruction of the collector's after the other, by a second
 *process (ptrace), and what can happen to it there.
 *
 *	itt_stepped jump WHAT STRIDE	every STRIDE-th instruction: a handler comes, and leaves by
 *siglongjmp(); then it traces one task "later" itt_stepped handle WHAT STRIDE	the same; the
 *handler traces one task "handled" and returns itt_stepped seal N		before its N-th
 *system call another thread puts all into a sandbox, which ends a process for any system call of
 *the collector's; "no more" when there are not so many
 *
 * WHAT: name (of the thread), new (a task with a new name), control (pause and resume).
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "itt_app.h"

/* Of the process and of the one that steps it. */
static struct {
	atomic_int ready, go, ended, over, seal;
} *shared;
static uintptr_t low, high; /* the collector's code */
static __itt_domain *domain;
static __itt_string_handle *later, *handled;
static unsigned number;

static void find_collector(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[5000];

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "/libxstrace.so") && strstr(line, " r-xp "))
			(void)sscanf(line, "%lx-%lx", &low, &high);
	if (file)
		fclose(file);
}

/* ---- the process that steps ---- */

static bool at_call(pid_t tid, uintptr_t at)
{
	return (ptrace(PTRACE_PEEKTEXT, tid, (void *)at, NULL) & 0xffff) == 0x050f;
}

/*
 * To the n-th instruction in the collector's code, of those that make system calls if `calls`.
 * False: the thread has ended its work before.
 */
static bool step_to(pid_t tid, unsigned n, bool calls)
{
	int status;

	for (;;) {
		uintptr_t at = (uintptr_t)ptrace(PTRACE_PEEKUSER, tid,
						 (void *)offsetof(struct user_regs_struct, rip),
						 NULL);

		if (at >= low && at < high && (!calls || at_call(tid, at)) && !--n)
			return true;
		if (shared->ended)
			return false;
		if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) ||
		    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
			_exit(1);
	}
}

/*
 * The thread waits for `go`: it is stopped there. A signal that it had blocked when it was sent
 * stops it once more on its way.
 */
static void stop(pid_t tid)
{
	int status;

	while (!shared->ready) {
		if (waitpid(tid, &status, __WALL | WNOHANG) == tid && WIFSTOPPED(status))
			(void)ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)WSTOPSIG(status));
		sched_yield();
	}
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || waitpid(tid, &status, __WALL) != tid)
		_exit(1);
	shared->ready = 0;
	shared->go = 1;
}

static void step_over_all(pid_t tid, unsigned stride)
{
	for (unsigned n = 1;; n += stride) {
		bool there;

		stop(tid);
		there = step_to(tid, n, false);
		if (!there)
			shared->over = 1;
		if (ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)(there ? SIGUSR1 : 0)))
			_exit(1);
		if (!there)
			return;
	}
}

static void stop_before_call(pid_t tid, unsigned n)
{
	stop(tid);
	if (!step_to(tid, n, true))
		shared->over = 1;
	shared->seal = 1;
	sleep_ms(30); /* whoever seals does not wait for us, or does */
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
}

/* The child that steps thread `tid` of this process. */
static pid_t step(pid_t tid, unsigned n, bool calls)
{
	pid_t child = fork();

	if (child)
		return child;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		shared->over = shared->seal = shared->go = 2; /* not allowed here */
	else if (calls)
		stop_before_call(tid, n);
	else
		step_over_all(tid, n);
	_exit(0);
}

static void wait_for_go(void)
{
	shared->ended = 0;
	shared->ready = 1;
	while (!shared->go)
		;
}

/* ---- handlers ---- */

static sigjmp_buf away;

static void jumps(int unused)
{
	(void)unused;
	siglongjmp(away, 1);
}

static void traces(int unused)
{
	(void)unused;
	finished_task(domain, handled);
}

static void name(void)
{
	__itt_thread_set_name("stepped");
}

static void new_name(void)
{
	char text[32];

	snprintf(text, sizeof(text), "new %u", number);
	finished_task(domain, __itt_string_handle_create(text));
}

static void control(void)
{
	__itt_pause();
	__itt_resume();
}

static int at_every_instruction(bool jump, const char *what, unsigned stride)
{
	struct sigaction action = { .sa_handler = jump ? jumps : traces };
	void (*work)(void) = !strcmp(what, "name")  ? name
			     : !strcmp(what, "new") ? new_name
						    : control;
	volatile unsigned rounds = 0;
	pid_t child;

	control();
	finished_task(domain, later);
	finished_task(domain, handled);
	work();
	sigaction(SIGUSR1, &action, NULL);
	child = step(gettid(), stride, false);
	while (!shared->over) {
		if (!sigsetjmp(away, 1)) {
			number++;
			wait_for_go();
			work();
			shared->ended = 1;
		}
		shared->go = 0;
		control();
		finished_task(domain, later);
		rounds++;
	}
	waitpid(child, NULL, 0);
	if (shared->over == 2)
		printf("not allowed\n");
	printf("rounds: %u\nexpected: %u tasks stepped::later\n", rounds, rounds + 1);
	return 0;
}

/* ---- a sandbox ---- */

static atomic_int sealed, done;

static void *works(void *tid)
{
	*(_Atomic pid_t *)tid = gettid();
	wait_for_go();
	new_name();
	for (int i = 0; i < 300; i++) /* into the ring's next step */
		finished_task(domain, later);
	shared->ended = 1;
	while (!sealed)
		;
	for (int i = 0; i < 10000; i++)
		finished_task(domain, later);
	new_name();
	done = 1;
	for (;;)
		; /* its end would need system calls of the C library's */
	return NULL;
}

/*
 * A filter for all threads: who makes a system call in the collector's code is killed, with all
 * others.
 */
static int forbid_collector(void)
{
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(low >> 32), 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)low, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)high, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(rows), .filter = rows };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("no_new_privs");
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			    &program);
}

static int seal_before_call(unsigned n)
{
	_Atomic pid_t tid = 0;

	finished_task(domain, handled);
	start_thread(works, &tid);
	while (!tid)
		;
	(void)step(tid, n, true);
	while (!shared->seal)
		sched_yield();
	if (forbid_collector())
		die("seccomp");
	sealed = 1;
	while (!done)
		;
	printf("%s\n", shared->over == 2 ? "not allowed" : shared->over ? "no more" : "sealed");
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	domain = __itt_domain_create("stepped");
	later = __itt_string_handle_create("later");
	handled = __itt_string_handle_create("handled");
	find_collector();
	if (argc > 3 && (!strcmp(what, "jump") || !strcmp(what, "handle")))
		return at_every_instruction(!strcmp(what, "jump"), argv[2],
					    (unsigned)atoi(argv[3]));
	if (argc > 2 && !strcmp(what, "seal"))
		return seal_before_call((unsigned)atoi(argv[2]));
	fprintf(stderr, "itt_stepped: what?\n");
	return 2;
}
