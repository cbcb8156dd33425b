/*
 * What SYCL's runtime does, as far as XPTI tells of it: through the framework in software
 * (tests/softxpti).
 *
 *	sycl_app steps N	N commands, each with a call of the Unified Runtime and a wait
 *	sycl_app crash N	the same, and ends by a signal
 *	sycl_app memory		allocations, a buffer; one allocation is not freed
 *	sycl_app devices	allocations on three devices and the host; some are not freed
 *	sycl_app arguments	calls of the Unified Runtime with arguments
 *	sycl_app pointers	calls whose pointers lead nowhere, with counts that are too large
 *	sycl_app hostile	events with everything missing or wrong
 *	sycl_app threads	threads with little stack, one that is cancelled in a call, a child
 *	sycl_app newer N	as steps, of a newer framework and runtime; N: as `arguments`
 *	sycl_app lying		an event whose metadata ends too early, then 3 steps
 *	sycl_app words WORD...	commands as words say (words.h)
 *	sycl_app bench N	how long an event takes, in ns
 *	sycl_app none FILE	a runtime (FILE) that tells nothing
 */
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "app.h"
#include "softxpti.h"
#include "words.h"

static uint8_t sycl, memory, buffers, calls, images;
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
	images = soft_stream("sycl.experimental.image", version);
	soft_text(&kernel, "sycl_device_name", "Device of software");
	soft_text(&kernel, "kernel_name", "scale");
	soft_number(&kernel, "queue_id", 7);
}

static void call_with(uint32_t id, const char *name, int32_t result, void *const *args)
{
	struct xpti_function function = { .id = id, .name = name, .args = args, .result = &result };
	uint64_t number = instance++;

	soft_notify(calls, XPTI_BEGIN(XPTI_FUNCTION_WITH_ARGS), NULL, number, &function);
	soft_notify(calls, XPTI_END(XPTI_FUNCTION_WITH_ARGS), NULL, number, &function);
}

static void call(uint32_t id, const char *name, int32_t result)
{
	call_with(id, name, result, NULL);
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

/* On this device, if it has a name; `handle`: of the Unified Runtime's, NULL: of the host. */
static void allocate_on(const char *device, void *handle, uint64_t address, uint64_t size)
{
	struct xpti_event event = { .payload = &place };
	void *unused = NULL;
	void *const of_device[] = { &unused, &handle, &unused, &unused, &size, &unused },
		    *const of_host[] = { &unused, &unused, &unused, &size, &unused };

	if (device)
		soft_text(&event, "sycl_device_name", device);
	soft_number(&event, "memory_size", size);
	soft_notify(memory, XPTI_BEGIN(XPTI_NODE), &event, instance, "usm::alignedAlloc");
	soft_notify(memory, XPTI_BEGIN(XPTI_ALLOC), &event, instance, "usm::alignedAlloc");
	if (device && handle)
		call_with(51, "urUSMDeviceAlloc", 0, of_device);
	else if (device)
		call_with(50, "urUSMHostAlloc", 0, of_host);
	soft_number(&event, "memory_ptr", address);
	soft_notify(memory, XPTI_END(XPTI_ALLOC), &event, instance++, "usm::alignedAlloc");
	soft_clear(&event);
}

static void allocate(uint64_t address, uint64_t size)
{
	allocate_on(NULL, NULL, address, size);
}

static void release(uint64_t address)
{
	struct xpti_event event = { .payload = &place };

	soft_number(&event, "memory_ptr", address);
	soft_notify(memory, XPTI_BEGIN(XPTI_RELEASE), &event, instance, "usm::free");
	soft_notify(memory, XPTI_END(XPTI_RELEASE), &event, instance++, "usm::free");
	soft_clear(&event);
}

static void on_devices(void)
{
	char one, two;

	for (uint64_t i = 0; i < 3; i++)
		allocate_on("Card", &one, 0x1000 + i * 0x100, 64);
	allocate_on("Card", &two, 0x2000, 1000);
	allocate_on("Processor", &one, 0x3000, 50);
	allocate_on("Processor", NULL, 0x4000, 7);
	allocate(0x5000, 3);
	release(0x1000);
	release(0x3000);
}

/* As the runtime hands them over: the address of each. */
static void with_arguments(void)
{
	void *queue = (void *)0x100, *scale = (void *)0x200, *event = NULL, *none = NULL;
	void *program = (void *)0x300, **ret_kernel = &scale, **ret_event = &event;
	const char *name = "scale";
	uint32_t dimensions = 2, waits = 2, flags = 3;
	size_t sizes[] = { 64, 32, 999 }, *size = sizes, length = 4096, one = 1;
	void *events[] = { (void *)0x11, (void *)0x12 }, **list = events;
	uint64_t origin[] = { 1, 2, 3 }, region[] = { 4, 5, 6 };
	bool blocking = true;

	call_with(1, "urKernelCreate", 0, (void *const[]){ &program, &name, &ret_kernel });
	call_with(2, "urEnqueueKernelLaunch", 0,
		  (void *const[]){ &queue, &scale, &dimensions, &none, &size, &none });
	call_with(3, "urEventWait", 0, (void *const[]){ &waits, &list });
	event = (void *)0x13;
	call_with(4, "urMemBufferCreate", 0,
		  (void *const[]){ &queue, &flags, &length, &none, &ret_event });
	call_with(5, "urMemBufferCreate", 0x7ffffffe,
		  (void *const[]){ &queue, &flags, &length, &none, &ret_event });
	call_with(6, "urEnqueueMemBufferReadRect", 0,
		  (void *const[]){ &queue, &event, &blocking, origin, origin, region, &one, &one,
				   &one, &one, &none, &waits, &list, &none });
	call_with(7, "urEventWait", 0, NULL);
	call_with(8, "urEventWait", 0, (void *const[]){ &waits, NULL });
	call_with(9, "urOfTomorrow", 0, (void *const[]){ NULL });
}

/* To none of it does the runtime object, as it looks at none of it. */
static void with_pointers(void)
{
	enum { PAGE = 4096 };
	char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0),
	     *end = page + PAGE;
	uintptr_t nowhere[] = {
		0, 1, (uintptr_t)end, (uintptr_t)(end - 4), ~(uintptr_t)0, (uintptr_t)1 << 63
	};
	uint32_t many = UINT32_MAX;
	uint64_t size = SIZE_MAX;
	void *queue = (void *)0x100, *list = end - 8, *name = end - 4;

	if (page == MAP_FAILED)
		exit(99);
	memset(page, 'n', PAGE);
	munmap(end, PAGE);
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		void *at = &nowhere[i];

		call_with(1, "urKernelCreate", 0, (void *const[]){ &queue, at, at });
		call_with(2, "urEnqueueKernelLaunch", 0,
			  (void *const[]){ &queue, &queue, &many, at, at, at });
		call_with(3, "urEventWait", 0, (void *const[]){ &many, at });
		call_with(4, "urEventGetInfo", 0, (void *const[]){ &queue, &many, &size, at, at });
		call_with(5, "urQueueCreate", 0, (void *const[]){ &queue, &queue, at, at });
	}
	many = 1;
	call_with(6, "urEventWait", 0, (void *const[]){ &many, &list });
	end[-1] = '\0';
	call_with(7, "urProgramBuild", 0, (void *const[]){ &queue, &queue, &name });
}

static void all_memory(void)
{
	struct xpti_memory part = { .handle = 1, .pointer = 2, .size = 4096 };
	struct xpti_buffer buffer = {
		.user = 0x2000, .element_size = 8, .dimensions = 2, .range = { 10, 20 }
	};
	struct xpti_image image = {
		.user = 0x3000, .dimensions = 2, .range = { 16, 8, 99 }, .format = 7
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
	soft_notify(images, XPTI_BEGIN(XPTI_MEMORY_OBJECT), &event, 1, &image);
	soft_notify(images, XPTI_BEGIN(XPTI_ACCESSOR), &event, 1,
		    &(struct xpti_image_accessor){ .image = 0x3000, .mode = { 1024, 1 } });
	soft_notify(images, XPTI_END(XPTI_MEMORY_OBJECT), NULL, 1, &image);
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
	struct xpti_image endless = { .dimensions = UINT32_MAX, .filtering.there = 77 };
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
	soft_notify(images, XPTI_BEGIN(XPTI_MEMORY_OBJECT), &event, 1, &endless);
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

static void command(const char *name)
{
	struct xpti_event event = { .payload = &place };

	soft_text(&event, "kernel_name", name);
	soft_notify(sycl, XPTI_BEGIN(XPTI_TASK), &event, instance, NULL);
	call(30, "urEnqueueKernelLaunch", 0);
	soft_notify(sycl, XPTI_END(XPTI_TASK), &event, instance++, NULL);
	soft_clear(&event);
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
	if (!strcmp(what, "newer") && argc > 2 && !strcmp(argv[2], "arguments"))
		what = argv[2];
	if (!strcmp(what, "memory"))
		all_memory();
	else if (!strcmp(what, "devices"))
		on_devices();
	else if (!strcmp(what, "arguments"))
		with_arguments();
	else if (!strcmp(what, "pointers"))
		with_pointers();
	else if (!strcmp(what, "hostile"))
		hostile();
	else if (!strcmp(what, "lying"))
		lying();
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "crash")) {
		steps(count);
		abort();
	} else if (!strcmp(what, "words"))
		do_words(argv + 2, command);
	else if (!strcmp(what, "bench"))
		bench(count);
	else
		steps(count);
	return 0;
}
