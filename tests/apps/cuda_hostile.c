/*
 * What programs do to themselves while CUDA works for them:
 *	cuda_hostile MODE [N]
 * Each mode is right without a tracer, with SOFTCUDA_SYNC=1 (a launch is executed in its call), and
 * prints what it found. See modes[] at the end.
 */
#include "cuda_app.h"

#include <cupti.h>
#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

static atomic_int stop;

static void launch(int times)
{
	for (int i = 0; i < times; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
}

/* A call of the runtime that takes no lock. */
static int device(void)
{
	int number = -1;

	(void)cudaGetDevice(&number);
	return number;
}

/* ---- ends ---- */

static int in_exec(int times)
{
	launch(times);
	printf("expected: %d kernels\n", times);
	fflush(stdout);
	execl("/bin/echo", "echo", "executed", (char *)NULL);
	return 1;
}

static int in_signal(int times)
{
	launch(times);
	printf("expected: %d kernels\n", times);
	fflush(stdout);
	(void)raise(SIGTERM);
	return 1;
}

/* ---- stacks ---- */

static void *work_on_stack(void *times)
{
	launch((int)(intptr_t)times);
	return NULL;
}

static int in_small_threads(int times)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)))
		die("pthread_attr_setstacksize");
	for (int i = 0; i < times; i++) {
		if (pthread_create(&thread, &attr, work_on_stack, (void *)3))
			die("pthread_create");
		(void)pthread_join(thread, NULL);
	}
	printf("expected: %d kernels\n", 3 * times);
	return 0;
}

#define LITTLE 16384u

static void on_little_stack(int number)
{
	(void)number;
	launch(3);
}

/* A handler's stack with a page below that nobody may touch; the first event of all is there. */
static int on_signal_stack(int times)
{
	struct sigaction action = { .sa_handler = on_little_stack, .sa_flags = SA_ONSTACK };
	char *memory = mmap(NULL, 4096 + LITTLE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = memory + 4096, .ss_size = LITTLE };

	if (memory == MAP_FAILED || mprotect(memory, 4096, PROT_NONE) || sigaltstack(&stack, NULL))
		die("a stack");
	CUDA_CHECK(cudaFree(NULL));
	(void)sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < times; i++)
		(void)raise(SIGUSR1);
	printf("expected: %d kernels\n", 3 * times);
	return 0;
}

/* ---- threads that are cancelled ---- */

static void *launches(void *none)
{
	while (!stop) {
		launch(1);
		pthread_testcancel();
	}
	return none;
}

/*
 * What is cancelled at any instruction may take no lock. In a thread's first call libcupti does:
 * the loader allocates its thread-local variables.
 */
static void *asks(void *none)
{
	(void)device();
	(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	while (!stop)
		(void)device();
	return none;
}

static int cancel_many(void *(*body)(void *), int times)
{
	void *result;
	pthread_t thread;

	CUDA_CHECK(cudaFree(NULL));
	for (int i = 0; i < times; i++) {
		thread = start_thread(body, NULL);
		usleep((useconds_t)(i % 10) * 50);
		(void)pthread_cancel(thread);
		if (pthread_join(thread, &result) || result != PTHREAD_CANCELED)
			return 97;
	}
	launch(3);
	printf("cancelled %d\n", times);
	return 0;
}

static int cancel_deferred(int times)
{
	return cancel_many(launches, times);
}

static int cancel_async(int times)
{
	return cancel_many(asks, times);
}

/* Its calls are to be ended already: the first cancellation point ends it, and no call is one. */
static void *is_cancelled(void *reached)
{
	(void)pthread_cancel(pthread_self());
	for (int i = 0; i < 20000; i++) /* several buffers of CUPTI's */
		(void)cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL);
	*(bool *)reached = true;
	pthread_testcancel();
	return NULL;
}

static int cancel_pending(int times)
{
	bool reached = false;

	CUDA_CHECK(cudaFree(NULL));
	for (int i = 0; i < times; i++) {
		(void)pthread_join(start_thread(is_cancelled, &reached), NULL);
		if (!reached)
			return 97;
	}
	printf("expected: %d kernels\n", 20000 * times);
	return 0;
}

/* ---- children ---- */

static void CUDART_CB forks(void *status)
{
	pid_t child = fork();

	if (!child) {
		(void)cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL);
		(void)device();
		_exit(7);
	}
	if (waitpid(child, status, 0) != child)
		*(int *)status = -1;
}

static int fork_in_callback(int times)
{
	int status = 0;

	for (int i = 0; i < times; i++) {
		launch(1);
		CUDA_CHECK(cudaLaunchHostFunc(NULL, forks, &status));
		CUDA_CHECK(cudaDeviceSynchronize());
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
			return 97;
	}
	launch(1);
	printf("expected: %d kernels\n", times + 1);
	return 0;
}

/* ---- libraries ---- */

static void close_it(const char *name)
{
	void *library = name ? dlopen(name, RTLD_NOW) : NULL;

	if (library && (dlclose(library) || dlclose(library)))
		(void)dlerror();
}

static int close_libraries(int times)
{
	char *preload = getenv("LD_PRELOAD");

	launch(1);
	for (int i = 0; i < times; i++) {
		void *again = dlopen("libcupti.so.13", RTLD_NOW);

		if (again)
			(void)dlclose(again);
		close_it(getenv("CUDA_INJECTION64_PATH"));
		close_it(preload);
		launch(1);
	}
	printf("expected: %d kernels\n", times + 1);
	return 0;
}

/* ---- a subscriber of the program's own ---- */

static void CUPTIAPI hear(void *calls, CUpti_CallbackDomain domain, CUpti_CallbackId id,
			  const void *data)
{
	(void)domain, (void)id, (void)data;
	atomic_fetch_add((atomic_int *)calls, 1);
}

/* Of those who come and go beside another; what CUPTI answers to it is its own matter. */
static void subscribe_once(void *library, atomic_int *calls)
{
	CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *,
				 CUpti_SubscriberParams *);
	CUptiResult (*enable)(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain);
	CUptiResult (*unsubscribe)(CUpti_SubscriberHandle);
	CUpti_SubscriberParams params = { .structSize = sizeof(params),
					  .subscriberName = "hostile",
					  .allowMultipleSubscribers = 1 };
	CUpti_SubscriberHandle handle = NULL;

	*(void **)&subscribe = dlsym(library, "cuptiSubscribe_v2");
	*(void **)&enable = dlsym(library, "cuptiEnableDomain");
	*(void **)&unsubscribe = dlsym(library, "cuptiUnsubscribe");
	if (!subscribe || subscribe(&handle, hear, calls, &params))
		return;
	(void)enable(1, handle, CUPTI_CB_DOMAIN_RUNTIME_API);
	launch(1);
	(void)unsubscribe(handle);
}

static int subscribe_often(int times)
{
	static atomic_int calls;
	void *library = dlopen("libcupti.so.13", RTLD_NOW);

	if (!library)
		die("libcupti");
	launch(1);
	for (int i = 0; i < times; i++) {
		subscribe_once(library, &calls);
		launch(1);
	}
	printf("heard %d\nexpected: %d kernels\n", (int)calls, 2 * times + 1);
	return 0;
}

/* It asks the CUPTI that a tool has opened for records of calls, and gives its own numbers. */
static int number_externally(int times)
{
	CUptiResult (*enable)(CUpti_ActivityKind);
	CUptiResult (*push)(CUpti_ExternalCorrelationKind, uint64_t);
	CUptiResult (*pop)(CUpti_ExternalCorrelationKind, uint64_t *);
	void *library = dlopen("libcupti.so.12", RTLD_NOW);
	uint64_t last = 0;

	if (!library)
		die("libcupti");
	*(void **)&enable = dlsym(library, "cuptiActivityEnable");
	*(void **)&push = dlsym(library, "cuptiActivityPushExternalCorrelationId");
	*(void **)&pop = dlsym(library, "cuptiActivityPopExternalCorrelationId");
	launch(1);
	(void)enable(CUPTI_ACTIVITY_KIND_RUNTIME);
	for (int i = 0; i < times; i++) {
		(void)push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1000 + (uint64_t)i);
		launch(1);
		(void)pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
		if (last != 1000 + (uint64_t)i)
			return 97;
	}
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("expected: %d kernels\n", times + 1);
	return 0;
}

/* ---- pauses, resets, limits ---- */

static void *toggles(void *none)
{
	while (!stop) {
		(void)setenv("PTI_ENABLE_COLLECTION", "1", 1);
		usleep(100);
		(void)setenv("PTI_ENABLE_COLLECTION", "0", 1);
		usleep(100);
	}
	return none;
}

static int toggle(int times)
{
	pthread_t thread = start_thread(toggles, NULL);

	launch(times);
	stop = 1;
	(void)pthread_join(thread, NULL);
	printf("launched %d\n", times);
	return 0;
}

/* One thread that pauses itself: what it launches in between is known. */
static int turns(int times)
{
	int wanted = 0;

	for (int i = 0; i < times; i++) {
		(void)setenv("PTI_ENABLE_COLLECTION", "1", 1);
		launch(i % 7);
		wanted += i % 7;
		(void)setenv("PTI_ENABLE_COLLECTION", "0", 1);
		launch(i % 5);
		if (i % 16 == 0)
			usleep(100);
	}
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("expected: %d kernels\n", wanted);
	return 0;
}

static void *resets(void *none)
{
	while (!stop) {
		(void)cudaDeviceReset();
		usleep(500);
	}
	return none;
}

static int reset(int times)
{
	pthread_t thread = start_thread(resets, NULL);

	for (int i = 0; i < times; i++)
		(void)cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL);
	stop = 1;
	(void)pthread_join(thread, NULL);
	printf("done\n");
	return 0;
}

/* Some MiB more than it has already. */
static int limit(int mebibytes)
{
	struct rlimit limit;
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%lu", &pages) != 1 || getrlimit(RLIMIT_AS, &limit))
		die("statm");
	fclose(file);
	limit.rlim_cur = pages * 4096 + ((rlim_t)mebibytes << 20);
	if (setrlimit(RLIMIT_AS, &limit))
		die("setrlimit");
	launch(1000);
	printf("expected: 1000 kernels\n");
	return 0;
}

static int just_launch(int times)
{
	launch(times);
	printf("expected: %d kernels\n", times);
	return 0;
}

/* ---- jumps ---- */

static sigjmp_buf out;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static void __attribute__((noinline)) ask_driver(int times)
{
	volatile char deeper[4096];
	CUdevice number;

	for (int i = 0; i < times; i++) {
		deeper[i % 4096] = (char)i;
		(void)cuCtxGetDevice(&number);
		(void)deeper[i % 4096];
	}
}

/* A handler leaves a launch by a jump; then the program itself calls the driver, from deeper
 * frames. */
static int jump_out(int times)
{
	struct itimerval soon = { .it_value.tv_usec = 20000 };
	uint64_t ns = 10000000000;

	CUDA_CHECK(cudaFree(NULL));
	(void)signal(SIGALRM, jump);
	(void)setitimer(ITIMER_REAL, &soon, NULL);
	if (!sigsetjmp(out, 1))
		(void)cuda_app_launch(CUDA_SPIN, 1, 1, (void *[]){ &ns }, NULL);
	ask_driver(times);
	printf("asked: %d\n", times);
	return 0;
}

/*
 * Calls that fault on a pointer are left by a jump, each from the same frame; then launches follow,
 * one by one and with copies in between, in frames that are the same again.
 */
static int jump_from_faults(int times)
{
	static char from[4096];
	void *to;

	CUDA_CHECK(cudaMalloc(&to, sizeof(from)));
	(void)signal(SIGSEGV, jump);
	for (volatile int i = 0; i < 10; i++)
		if (!sigsetjmp(out, 1))
			(void)cudaGetDevice((int *)8);
	for (int i = 0; i < times; i++) {
		launch(1);
		(void)device();
		if (i % 10 == 0)
			CUDA_CHECK(cudaMemsetAsync(to, i, sizeof(from), NULL));
	}
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("expected: %d kernels\n", times);
	return 0;
}

/* ---- processes that share memory ---- */

static atomic_int turn; /* odd: the child's */

static void CUDART_CB no_work(void *unused)
{
	(void)unused;
}

static void CUDART_CB lets_child_work(void *unused)
{
	(void)unused;
	turn++;
	while (turn & 1)
		;
}

static int child_of_clone(void *times)
{
	for (int i = 0; i < (int)(intptr_t)times; i++) {
		while (!(turn & 1))
			;
		CUDA_CHECK(cudaLaunchHostFunc(NULL, no_work, NULL));
		turn++;
	}
	syscall(SYS_exit, 0);
	return 0;
}

/* A child has the variables of our thread, and makes each of its calls within one of ours. */
static int clone_child(int times)
{
	char *stack =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t child;

	CUDA_CHECK(cudaFree(NULL));
	child = clone(child_of_clone, stack + (1 << 20), CLONE_VM | SIGCHLD,
		      (void *)(intptr_t)times);
	if (child < 0)
		die("clone");
	for (int i = 0; i < times; i++)
		CUDA_CHECK(cudaLaunchHostFunc(NULL, lets_child_work, NULL));
	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	launch(times);
	printf("child: %d\nexpected: %d kernels\n", status, times);
	return 0;
}

/* ---- rights ---- */

/* glibc has each thread of the process do it, and waits for all. */
static int set_user(int times)
{
	launch(times);
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("setuid: %d\n", setuid(getuid()));
	printf("expected: %d kernels\n", times);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(int number);
} modes[] = {
	{ "launch", just_launch },
	/* programs that end by exec, or by SIGTERM */
	{ "exec", in_exec },
	{ "sigterm", in_signal },
	/* threads of the least stack; handlers on 16 KiB */
	{ "threads", in_small_threads },
	{ "sigstack", on_signal_stack },
	/* threads cancelled between calls, at any instruction of one, or before their first one */
	{ "deferred", cancel_deferred },
	{ "async", cancel_async },
	{ "pending", cancel_pending },
	/* a function that CUDA calls on a thread of its own forks */
	{ "fork", fork_in_callback },
	/* libcupti and the injected library are closed more often than opened */
	{ "dlclose", close_libraries },
	/* a second subscriber of CUPTI's comes and goes */
	{ "subscriber", subscribe_often },
	{ "external", number_externally },
	{ "toggle", toggle },
	{ "turns", turns },
	/* the device is reset while another thread launches */
	{ "reset", reset },
	/* so many MiB of address space are left */
	{ "limit", limit },
	{ "jump", jump_out },
	{ "faults", jump_from_faults },
	/* another process in this thread */
	{ "clone", clone_child },
	{ "setuid", set_user },
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
