/*
 * Calls from places that are known by name, in code without frame pointers: cl_stacks [what]
 *
 *	chain N         a call under N frames of chain(); a kernel launch under launch()
 *	threads         one in a thread, under in_thread()
 *	plugin F…       dlopens F, calls its plugin(), dlcloses it; then the next
 *	replaced F G    the same, with the file G moved in its place after dlopen()
 *	                (G "-": F is removed)
 *	handler         a call in a handler that interrupts interrupted(), on a stack of its own
 *	coroutine       a call in a coroutine, whose stack is the program's own memory
 *	realigned N     a call under a frame of N bytes more, which lies at a multiple of 64
 *	deep            a call with little room left on a thread's stack
 *	made thread     calls under code made at run time that keeps a number in rbp: the
 *	                address of memory above its stack, which is gone at the second call
 *	made coroutine  the same on such a stack
 *	killed          a call under chain(), then SIGKILL
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

static void run_thread_with(const pthread_attr_t *attributes, void *(*function)(void *), void *with)
{
	pthread_t thread;

	REQUIRE(!pthread_create(&thread, attributes, function, with));
	REQUIRE(!pthread_join(thread, NULL));
}

static void run_thread(void *(*function)(void *))
{
	run_thread_with(NULL, function, NULL);
}

enum { MADE_STACK = 256 << 10, MADE_ABOVE = 16384 };

/* As a frame would be at this place: the next one is there, too, and code of this program. */
static void fill(uintptr_t *above)
{
	for (size_t i = 0; i < MADE_ABOVE / sizeof(*above); i += 2) {
		above[i] = (uintptr_t)(above + i + 2);
		above[i + 1] = (uintptr_t)chain + 1;
	}
}

/* `room`: the stack that this runs on, and what lies above it. */
NOINLINE void *run_made(void *room)
{
	static const unsigned char bytes[] = {
		0x55,		  /* push %rbp */
		0x48, 0x89, 0xfd, /* mov %rdi, %rbp */
		0xff, 0xd6,	  /* call *%rsi */
		0x5d,		  /* pop %rbp */
		0xc3,		  /* ret */
	};
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*made)(void *, void (*)(void));
	char *above = (char *)room + MADE_STACK;

	REQUIRE(code != MAP_FAILED);
	memcpy(code, bytes, sizeof(bytes));
	*(void **)&made = code;
	for (int i = 0; i < 2; i++) {
		made(above + MADE_ABOVE / 2, leaf);
		munmap(above, MADE_ABOVE);
	}
	sink++;
	return NULL;
}

static char *made_room;

static void made_coroutine(void)
{
	run_made(made_room);
	swapcontext(&to, &from);
}

static void run_made_on(const char *stack)
{
	pthread_attr_t attributes;

	made_room = mmap(NULL, MADE_STACK + MADE_ABOVE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(made_room != MAP_FAILED);
	fill((uintptr_t *)(made_room + MADE_STACK));
	if (!strcmp(stack, "thread")) {
		REQUIRE(!pthread_attr_init(&attributes));
		REQUIRE(!pthread_attr_setstack(&attributes, made_room, MADE_STACK));
		run_thread_with(&attributes, run_made, made_room);
		return;
	}
	REQUIRE(!getcontext(&to));
	to.uc_stack.ss_sp = made_room;
	to.uc_stack.ss_size = MADE_STACK;
	makecontext(&to, made_coroutine, 0);
	REQUIRE(!swapcontext(&from, &to));
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
	else if (!strcmp(what, "made") && argc > 2)
		run_made_on(argv[2]);
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
