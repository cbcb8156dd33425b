/*
 * What SYCL's runtime does, as far as XPTI tells of it: through the framework in software
 * (tests/softxpti).
 *
 *	sycl_app steps N	N commands, each with a call of the Unified Runtime and a wait
 *	sycl_app crash N	the same, and ends by a signal
 *	sycl_app memory		allocations, a buffer; one allocation is not freed
 *	sycl_app hostile	events with everything missing or wrong
 *	sycl_app threads	threads with little stack, one that is cancelled in a call, a child
 *	sycl_app newer N	as steps, of a framework of version 2
 *	sycl_app lying		an event whose metadata ends too early, then 3 steps
 *	sycl_app bench N	how long an event takes, in ns
 *	sycl_app none FILE	a runtime (FILE) that tells nothing
 */
#include <dlfcn.h>
#include <sys/wait.h>

#include "app.h"
#include "softxpti.h"

static uint8_t sycl, memory, buffers, calls;
static _Atomic uint64_t instance = 100;
static struct xpti_payload place = { .name = "main", .file = "program.cpp", .line = 20 };
static struct xpti_event kernel = { .payload = &place };

static void start(unsigned version)
{
	sycl = soft_stream("sycl", version);
	(void)soft_stream("sycl.debug", version);
	memory = soft_stream("sycl.experimental.mem_alloc", version);
	buffers = soft_stream("sycl.experimental.buffer", version);
	calls = soft_stream("ur.call", version);
	soft_text(&kernel, "sycl_device_name", "Device of software");
	soft_text(&kernel, "kernel_name", "scale");
	soft_number(&kernel, "queue_id", 7);
}

static void call(uint32_t id, const char *name, int32_t result)
{
	struct xpti_function function = { .id = id, .name = name, .result = &result };
	uint64_t number = instance++;

	soft_notify(calls, XPTI_BEGIN(XPTI_FUNCTION_WITH_ARGS), NULL, number, &function);
	soft_notify(calls, XPTI_END(XPTI_FUNCTION_WITH_ARGS), NULL, number, &function);
}

#define EVENTS 7 /* of a step */

static void step(int i)
{
	uint64_t number = instance++;

	soft_notify(sycl, XPTI_BEGIN(XPTI_NODE), &kernel, number, NULL);
	soft_notify(sycl, XPTI_BEGIN(XPTI_TASK), &kernel, number, NULL);
	call(30, "urEnqueueKernelLaunch", i % 2 ? 4 : 0);
	soft_notify(sycl, XPTI_END(XPTI_TASK), &kernel, number, NULL);
	soft_notify(sycl, XPTI_BEGIN(XPTI_WAIT), NULL, number, "event.wait[55f0c0ffee00]");
	soft_notify(sycl, XPTI_END(XPTI_WAIT), NULL, number, "event.wait[55f0c0ffee00]");
}

static void steps(int count)
{
	for (int i = 0; i < count; i++)
		step(i);
}

static void allocate(uint64_t address, uint64_t size)
{
	struct xpti_event event = { .payload = &place };

	soft_number(&event, "memory_size", size);
	soft_notify(memory, XPTI_BEGIN(XPTI_NODE), &event, instance, "usm::alignedAlloc");
	soft_notify(memory, XPTI_BEGIN(XPTI_ALLOC), &event, instance, "usm::alignedAlloc");
	soft_number(&event, "memory_ptr", address);
	soft_notify(memory, XPTI_END(XPTI_ALLOC), &event, instance++, "usm::alignedAlloc");
	soft_clear(&event);
}

static void release(uint64_t address)
{
	struct xpti_event event = { .payload = &place };

	soft_number(&event, "memory_ptr", address);
	soft_notify(memory, XPTI_BEGIN(XPTI_RELEASE), &event, instance, "usm::free");
	soft_notify(memory, XPTI_END(XPTI_RELEASE), &event, instance++, "usm::free");
	soft_clear(&event);
}

static void all_memory(void)
{
	struct xpti_memory part = { .handle = 1, .pointer = 2, .size = 4096 };
	struct xpti_buffer buffer = {
		.user = 0x2000, .element_size = 8, .dimensions = 2, .range = { 10, 20 }
	};
	struct xpti_event event = { .payload = &place };

	allocate(0x10000, 4096);
	allocate(0x20000, 1000);
	release(0x10000);
	release(0x10000);
	release(0x99990);
	soft_notify(memory, XPTI_BEGIN(XPTI_ALLOC), NULL, 1, &part);
	soft_notify(memory, XPTI_END(XPTI_ALLOC), NULL, 1, &part);
	soft_notify(buffers, XPTI_BEGIN(XPTI_MEMORY_OBJECT), &event, 1, &buffer);
	soft_notify(buffers, XPTI_BEGIN(XPTI_ACCESSOR), &event, 1,
		    &(struct xpti_accessor){ .buffer = 0x2000, .mode = 1026 });
	soft_notify(buffers, XPTI_END(XPTI_MEMORY_OBJECT), &event, 1, &buffer);
}

static void hostile(void)
{
	struct xpti_function odd = { .id = UINT32_MAX };
	struct xpti_payload none = { NULL }, huge = { .line = UINT32_MAX };
	struct xpti_event event = { .payload = &huge }, bare = { .payload = &none };
	struct xpti_buffer wide = { .user = 1,
				    .element_size = UINT32_MAX,
				    .dimensions = UINT32_MAX,
				    .range = { SIZE_MAX, SIZE_MAX, SIZE_MAX } };
	char *text = malloc(1 << 20);

	if (!text)
		die("malloc");
	memset(text, 'x', (1 << 20) - 1);
	text[(1 << 20) - 1] = '\0';
	huge.name = huge.file = text;
	for (uint8_t stream = 0; stream < 8; stream++)
		for (uint16_t type = 0; type < 128; type++) {
			soft_notify(stream, type, NULL, 0, NULL);
			if (stream == sycl ||
			    stream == memory) /* which read no data of their own */
				soft_notify(stream, type, &bare, 0, "]");
			soft_notify(stream, type, &bare, UINT64_MAX, NULL);
		}
	soft_text(&event, "kernel_name", text);
	soft_text(&event, "queue_id", "");
	for (int i = 0; i < 50; i++)
		soft_number(&event, "unknown", (uint64_t)i);
	soft_notify(sycl, XPTI_BEGIN(XPTI_NODE), &event, 5, NULL);
	soft_notify(sycl, XPTI_BEGIN(XPTI_TASK), &event, 5, text);
	soft_notify(sycl, XPTI_BEGIN(XPTI_DIAGNOSTICS), &event, 5, text);
	soft_notify(sycl, XPTI_BEGIN(XPTI_WAIT), &event, 5, text);
	soft_notify(buffers, XPTI_BEGIN(XPTI_MEMORY_OBJECT), &event, 1, &wide);
	soft_notify(buffers, XPTI_END(XPTI_MEMORY_OBJECT), &event, 1, &wide);
	for (int i = 0; i < 100; i++) /* never ended */
		soft_notify(calls, XPTI_BEGIN(XPTI_FUNCTION_WITH_ARGS), NULL, instance++, &odd);
	odd.name = text;
	soft_notify(calls, XPTI_END(XPTI_FUNCTION_WITH_ARGS), NULL, 3, &odd);
	call(77, "urEventWait", 0); /* is one again */
	free(text);
}

/* An event that says it has more than it has: what the runtime is of is not known. */
static void lying(void)
{
	kernel.metadata.count += 3;
	step(0);
	kernel.metadata.count -= 3;
	steps(3);
}

static void *small(void *arg)
{
	(void)arg;
	steps(10);
	return NULL;
}

static void *cancelled(void *arg)
{
	struct xpti_function function = { .id = 42, .name = "urEventWait" };

	soft_notify(calls, XPTI_BEGIN(XPTI_FUNCTION_WITH_ARGS), NULL, 9, &function);
	*(_Atomic int *)arg = 1;
	for (;;)
		pause();
	return NULL;
}

static void threads(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	_Atomic int inside = 0;
	pid_t child;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	for (int i = 0; i < 8; i++) {
		if (pthread_create(&thread, &attributes, small, NULL))
			die("pthread_create");
		pthread_join(thread, NULL);
	}
	thread = start_thread(cancelled, &inside);
	while (!inside)
		sleep_ms(1);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	child = fork();
	if (!child) {
		steps(5);
		exit(0);
	}
	waitpid(child, NULL, 0);
}

static void bench(int count)
{
	struct xpti_function function = { .id = 30, .name = "urEnqueueKernelLaunch" };
	uint64_t begin, task, run, all;

	steps(1000);
	begin = now_ns();
	for (int i = 0; i < count; i++) {
		soft_notify(sycl, XPTI_BEGIN(XPTI_TASK), &kernel, 1, NULL);
		soft_notify(sycl, XPTI_END(XPTI_TASK), &kernel, 1, NULL);
	}
	task = now_ns();
	for (int i = 0; i < count; i++) {
		soft_notify(calls, XPTI_BEGIN(XPTI_FUNCTION_WITH_ARGS), NULL, 2, &function);
		soft_notify(calls, XPTI_END(XPTI_FUNCTION_WITH_ARGS), NULL, 2, &function);
	}
	run = now_ns();
	steps(count);
	all = now_ns();
	printf("task %.1f\ncall %.1f\ncommand %.1f\n", (double)(task - begin) / count / 2,
	       (double)(run - task) / count / 2, (double)(all - run) / count / EVENTS);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "steps";
	int count = argc > 2 ? atoi(argv[2]) : 1;

	if (!strcmp(what, "none"))
		return argc > 2 && dlopen(argv[2], RTLD_NOW) ? 0 : 99;
	start(!strcmp(what, "newer") ? 2 : 1);
	if (!strcmp(what, "memory"))
		all_memory();
	else if (!strcmp(what, "hostile"))
		hostile();
	else if (!strcmp(what, "lying"))
		lying();
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "crash")) {
		steps(count);
		abort();
	} else if (!strcmp(what, "bench"))
		bench(count);
	else
		steps(count);
	return 0;
}
