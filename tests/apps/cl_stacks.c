/*
 * Calls from places that are known by name, in code without frame pointers: cl_stacks [what]
 *
 *	chain N    a call under N frames of chain() and a kernel launch under launch()
 *	threads    one in a thread, under in_thread()
 *	plugin F…  dlopens F, calls its plugin(), dlcloses it; then the next
 *	replaced F G  the same, with the file G moved in its place after dlopen() (G "-": F is
 *removed) handler    a call in a signal handler that interrupts interrupted(), on a stack of its
 *own coroutine  a call in a coroutine, whose stack is the program's own memory realigned N  a call
 *under a frame of N bytes more that lies at a multiple of 64 deep       a call with little room
 *left on a thread's stack killed     a call under chain(), then SIGKILL
 */
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "cl_app.h"

#ifdef __clang__
#define NOINLINE static __attribute__((noinline))
#else
#define NOINLINE static __attribute__((noinline, noclone, noipa))
#endif

static const char source[] = "kernel void empty(int x) {}\n";
static struct cl_app cl;
static cl_command_queue queue;
static volatile int sink;

NOINLINE void leaf(void)
{
	CHECK(clRetainContext(cl.context));
	CHECK(clReleaseContext(cl.context));
	sink++;
}

NOINLINE void launch(void)
{
	const size_t one = 1;
	cl_kernel kernel = cl_app_kernel(&cl, "empty");
	cl_int x = 0;

	CHECK(clSetKernelArg(kernel, 0, sizeof(x), &x));
	CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
	CHECK(clFinish(queue));
	CHECK(clReleaseKernel(kernel));
	sink++;
}

NOINLINE void chain(int depth)
{
	volatile char room[24];

	room[0] = (char)depth;
	if (depth)
		chain(depth - 1);
	else
		leaf();
	sink += room[0];
}

/*
 * its frame has no fixed size, and lies at a multiple of 64: the end of the frame is found in
 * another way
 */
NOINLINE void realigned(int size)
{
	_Alignas(64) volatile char aligned[64];
	char *room = __builtin_alloca((size_t)size);

	memset(room, 1, (size_t)size);
	aligned[0] = room[size / 2];
	chain(1);
	sink += aligned[0];
}

NOINLINE void *in_thread(void *unused)
{
	(void)unused;
	leaf();
	sink++;
	return NULL;
}

static void handler(int number)
{
	(void)number;
	leaf();
	sink++;
}

NOINLINE void interrupted(void)
{
	raise(SIGUSR1);
	sink++;
}

static ucontext_t from, to;

NOINLINE void coroutine(void)
{
	leaf();
	sink++;
	swapcontext(&to, &from);
}

NOINLINE void resume(void)
{
	const size_t size = 128 << 10;
	char *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(room != MAP_FAILED && !getcontext(&to));
	to.uc_stack.ss_sp = room;
	to.uc_stack.ss_size = size;
	makecontext(&to, coroutine, 0);
	REQUIRE(!swapcontext(&from, &to));
	leaf(); /* on the old stack again */
	munmap(room, size);
	sink++;
}

NOINLINE void *near_the_end(void *unused)
{
	pthread_attr_t attributes;
	char *lowest, here;
	size_t size;

	(void)unused;
	REQUIRE(!pthread_getattr_np(pthread_self(), &attributes));
	REQUIRE(!pthread_attr_getstack(&attributes, (void **)&lowest, &size));
	/* as much as a call without us needs, and some */
	memset(__builtin_alloca((size_t)(&here - lowest) - 6144), 1, 1);
	leaf();
	sink++;
	return NULL;
}

static void run_thread(void *(*function)(void *))
{
	pthread_t thread;

	REQUIRE(!pthread_create(&thread, NULL, function, NULL));
	REQUIRE(!pthread_join(thread, NULL));
}

NOINLINE void run_plugin(const char *path, const char *replacement)
{
	void *plugin = dlopen(path, RTLD_NOW);
	void (*entry)(void (*)(void));

	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	if (replacement)
		REQUIRE(!(*replacement == '-' ? unlink(path) : rename(replacement, path)));
	*(void **)&entry = dlsym(plugin, "plugin");
	entry(leaf);
	dlclose(plugin);
}

static void run_handler(void)
{
	static char room[65536];
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

	REQUIRE(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL));
	interrupted();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "chain";
	cl_int err;

	cl_app_open(&cl, source);
	queue = clCreateCommandQueueWithProperties(cl.context, cl.device, NULL, &err);
	CHECK(err);
	if (!strcmp(what, "threads"))
		run_thread(in_thread);
	else if (!strcmp(what, "plugin"))
		for (int i = 2; i < argc; i++)
			run_plugin(argv[i], NULL);
	else if (!strcmp(what, "replaced") && argc > 3)
		run_plugin(argv[2], argv[3]);
	else if (!strcmp(what, "handler"))
		run_handler();
	else if (!strcmp(what, "coroutine"))
		resume();
	else if (!strcmp(what, "deep"))
		run_thread(near_the_end);
	else if (!strcmp(what, "realigned"))
		realigned(argc > 2 ? atoi(argv[2]) : 100);
	else
		chain(argc > 2 ? atoi(argv[2]) : 0);
	if (!strcmp(what, "killed"))
		raise(SIGKILL);
	launch();
	CHECK(clReleaseCommandQueue(queue));
	cl_app_close(&cl);
	return 0;
}
