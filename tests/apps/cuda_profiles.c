/*
 * A program that takes CUPTI's records of activity for itself:
 *	cuda_profiles HOW WHEN
 * HOW it gets CUPTI's functions: linked, open (dlopen), default, next or program (dlsym of
 * RTLD_DEFAULT, RTLD_NEXT, its own handle). WHEN: see modes[]. With SOFTCUDA_SYNC=1 what it prints
 * is always the same: records by kind, and what it was handed that is not its own. With a third
 * argument it also tells whether the times are those of CUPTI's own clock.
 */
#include "cuda_app.h"

#include <cupti.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define BYTES	(64u << 10)
#define BUFFERS 4096u

static struct {
	CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc,
					  CUpti_BuffersCallbackCompleteFunc);
	CUptiResult (*enable)(CUpti_ActivityKind);
	CUptiResult (*disable)(CUpti_ActivityKind);
	CUptiResult (*disable_context)(CUcontext, CUpti_ActivityKind);
	CUptiResult (*register_clock)(CUpti_TimestampCallbackFunc);
} cupti;

static void *_Atomic own[BUFFERS];
static atomic_int owned, foreign, kernels, others, clocks, timed, second;
static uint64_t clock_from; /* 0: it has no clock of its own */

static void CUPTIAPI request(uint8_t **buffer, size_t *size, size_t *records)
{
	int n = atomic_fetch_add(&owned, 1);

	if (n >= (int)BUFFERS)
		die("buffers");
	*buffer = aligned_alloc(8, BYTES);
	*size = BYTES;
	*records = 0;
	own[n] = *buffer;
}

static uint64_t CUPTIAPI own_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + 7000000000000000000u;
}

static void look_at(const CUpti_Activity *record)
{
	const CUpti_ActivityKernel4 *kernel = (const void *)record;
	struct timespec now;

	if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
		others++;
		return;
	}
	kernels++;
	timed += kernel->start >= clock_from && kernel->end <= own_clock();
	clock_gettime(CLOCK_REALTIME, &now);
	/* CUPTI's own clock, and not one that somebody else has registered */
	if (kernel->end / 1000000000 + 600 < (uint64_t)now.tv_sec)
		clocks++;
}

static void CUPTIAPI complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
			      size_t valid)
{
	CUpti_Activity *record = NULL;
	unsigned n = 0;

	(void)context, (void)stream, (void)size;
	while (n < BUFFERS && own[n] != buffer)
		n++;
	if (n == BUFFERS) {
		foreign++;
		return;
	}
	own[n] = NULL;
	while (!cuptiActivityGetNextRecord(buffer, valid, &record))
		look_at(record);
	free(buffer);
}

static void CUPTIAPI complete_second(CUcontext context, uint32_t stream, uint8_t *buffer,
				     size_t size, size_t valid)
{
	second++;
	complete(context, stream, buffer, size, valid);
}

static void find(const char *how)
{
	void *handle = !strcmp(how, "open")	 ? dlopen("libcupti.so.13", RTLD_NOW)
		       : !strcmp(how, "program") ? dlopen(NULL, RTLD_NOW)
		       : !strcmp(how, "next")	 ? RTLD_NEXT
						 : RTLD_DEFAULT;

	cupti.register_callbacks = cuptiActivityRegisterCallbacks;
	cupti.enable = cuptiActivityEnable;
	cupti.disable = cuptiActivityDisable;
	cupti.disable_context = cuptiActivityDisableContext;
	cupti.register_clock = cuptiActivityRegisterTimestampCallback;
	if (!strcmp(how, "linked"))
		return;
	*(void **)&cupti.register_callbacks = dlsym(handle, "cuptiActivityRegisterCallbacks");
	*(void **)&cupti.enable = dlsym(handle, "cuptiActivityEnable");
	*(void **)&cupti.disable = dlsym(handle, "cuptiActivityDisable");
	*(void **)&cupti.disable_context = dlsym(handle, "cuptiActivityDisableContext");
	*(void **)&cupti.register_clock = dlsym(handle, "cuptiActivityRegisterTimestampCallback");
}

static void launch(int times)
{
	for (int i = 0; i < times; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
	CUDA_CHECK(cudaDeviceSynchronize());
}

static void take(CUpti_BuffersCallbackCompleteFunc callback)
{
	printf("register %d\n", (int)cupti.register_callbacks(request, callback));
}

static void enable(void)
{
	printf("enable %d\n", (int)cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

static bool tells_clocks;

static void tell(void)
{
	(void)cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	printf("records %d others %d foreign %d second %d\n", (int)kernels, (int)others,
	       (int)foreign, (int)second);
	if (clock_from)
		printf("by its clock %d\n", (int)timed);
	if (tells_clocks)
		printf("another clock %d\n", (int)clocks);
}

static void early(void)
{
	take(complete);
	enable();
	launch(200);
	tell();
}

static void late(void)
{
	launch(50);
	take(complete);
	enable();
	launch(200);
	tell();
	(void)cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch(50);
	tell();
}

/* What it wants is enabled first, as in older samples; one of them not any more. */
static void kept(void)
{
	enable();
	launch(50);
	(void)cupti.enable(CUPTI_ACTIVITY_KIND_MEMSET);
	(void)cupti.disable(CUPTI_ACTIVITY_KIND_MEMSET);
	take(complete);
	launch(200);
	tell();
}

static void twice(void)
{
	late();
	take(complete_second);
	enable();
	launch(50);
	tell();
	printf("refused %d\n", (int)cupti.register_callbacks(NULL, NULL));
	launch(50);
	tell();
}

static void finalized(void)
{
	launch(50);
	printf("finalize %d\n", (int)cuptiFinalize());
	take(complete);
	enable();
	launch(100);
	tell();
	printf("finalize %d\n", (int)cuptiFinalize());
	take(complete);
	enable();
	launch(100);
	tell();
}

/* CUPTI in the child has nothing to do with what the parent does. */
static void forked(void)
{
	int status = 0;
	pid_t child;

	launch(50);
	fflush(stdout);
	child = fork();
	if (!child) {
		take(complete);
		enable();
		tell();
		fflush(stdout);
		_exit(7);
	}
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
		die("the child");
	launch(50);
	printf("expected: 100 kernels\n");
}

static atomic_bool stop;

static void *launches(void *none)
{
	while (!stop)
		(void)cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL);
	return none;
}

/* While others launch: how many of theirs there are is not known, but all of its own are. */
static void threads(void)
{
	pthread_t thread[4];
	int before;

	for (int i = 0; i < 4; i++)
		thread[i] = start_thread(launches, NULL);
	usleep(50000);
	take(complete);
	enable();
	launch(100);
	stop = true;
	for (int i = 0; i < 4; i++)
		(void)pthread_join(thread[i], NULL);
	(void)cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	before = kernels;
	launch(1000);
	(void)cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	printf("its own %d, then %d, foreign %d\n", before >= 100, kernels - before, (int)foreign);
}

/* A CUPTI of which nothing else is used. */
static void refused(void)
{
	launch(50);
	printf("refused %d\n", (int)cupti.register_callbacks(request, NULL));
	launch(50);
	printf("expected: 100 kernels\n");
}

static void disable(CUpti_ActivityKind kind)
{
	printf("disable %d\n", (int)cupti.disable(kind));
}

static void fill(int times)
{
	void *memory = NULL;

	CUDA_CHECK(cudaMalloc(&memory, 4096));
	for (int i = 0; i < times; i++)
		CUDA_CHECK(cudaMemset(memory, i, 4096));
	CUDA_CHECK(cudaFree(memory));
}

/* Without callbacks nobody would get the records, as far as it knows. */
static void unheard(void)
{
	fill(50);
	disable(CUPTI_ACTIVITY_KIND_MEMSET);
	fill(50);
	enable();
	disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch(50);
	take(complete);
	fill(50);
	launch(50);
	tell();
	enable();
	launch(50);
	disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launch(50);
	tell();
}

static void context(void)
{
	CUcontext current = NULL;

	launch(50);
	(void)cuCtxGetCurrent(&current);
	printf("disable %d\n",
	       (int)cupti.disable_context(current, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	launch(50);
	take(complete);
	enable();
	launch(50);
	tell();
}

static void take_clock(void)
{
	clock_from = own_clock();
	printf("clock %d\n", (int)cupti.register_clock(own_clock));
}

static void clock_first(void)
{
	take_clock();
	launch(50);
	printf("the same clock %d\n", (int)cupti.register_clock(own_clock));
	launch(50);
	take(complete);
	enable();
	launch(200);
	tell();
}

static void clock_later(void)
{
	launch(50);
	printf("no clock %d\n", (int)cupti.register_clock(NULL));
	launch(50);
	take_clock();
	launch(50);
	take(complete);
	enable();
	launch(200);
	tell();
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "early", early },
	{ "late", late },
	{ "kept", kept },
	{ "twice", twice },
	{ "finalized", finalized },
	{ "forked", forked },
	{ "threads", threads },
	{ "refused", refused },
	{ "unheard", unheard },
	{ "context", context },
	{ "clock_first", clock_first },
	{ "clock_later", clock_later },
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	tells_clocks = argc > 3;
	find(argv[1]);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcmp(argv[2], modes[i].name) != 0)
			continue;
		modes[i].run();
		return 0;
	}
	fprintf(stderr, "no such mode\n");
	return 2;
}
