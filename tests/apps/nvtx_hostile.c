/*
 * What programs may do with NVTX:
 *	nvtx_hostile MODE [N]
 * Each mode is right without a tracer. See modes[] at the end.
 */
#include "cuda_app.h"

#include <nvtx3/nvToolsExt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

/* ---- handlers ---- */

static atomic_int handled;
static sigjmp_buf outside;
static volatile sig_atomic_t may_jump;

static void everything(void)
{
	int device;

	nvtxRangePushA("in handler");
	(void)cudaGetDevice(&device); /* takes no lock */
	nvtxMarkA("mark");
	nvtxRangePop();
}

static void on_timer(int number)
{
	(void)number;
	handled++;
	everything();
	if (may_jump)
		siglongjmp(outside, 1);
}

static void every_millisecond(void)
{
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };

	CUDA_CHECK(cudaFree(NULL));
	(void)sigaction(SIGPROF, &action, NULL);
	(void)setitimer(ITIMER_PROF, &timer, NULL);
}

static void no_more(void)
{
	struct itimerval none = { { 0, 0 }, { 0, 0 } };

	(void)setitimer(ITIMER_PROF, &none, NULL);
	(void)signal(SIGPROF, SIG_IGN);
}

static int interrupt(int times)
{
	every_millisecond();
	while (handled < times) {
		nvtxRangePushA("outer");
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
		nvtxRangePop();
	}
	no_more();
	nvtxRangePushA("last");
	nvtxRangePop();
	printf("expected: 1 tasks NVTX::last\n");
	return 0;
}

/* Out of any instruction of NVTX's and CUDA's functions, of those that take no lock. */
static int jump(int times)
{
	int device;

	every_millisecond();
	while (handled < times) {
		(void)sigsetjmp(outside, 1);
		may_jump = 1;
		for (int i = 0; i < 1000; i++) {
			nvtxRangePushA("outer");
			(void)cudaGetDevice(&device);
			nvtxRangePop();
		}
		may_jump = 0;
	}
	no_more();
	nvtxRangePushA("last");
	nvtxRangePop();
	printf("expected: 1 tasks NVTX::last\n");
	return 0;
}

/* ---- threads ---- */

static pthread_barrier_t all;

static void *in_thread(void *number)
{
	(void)pthread_barrier_wait(&all); /* all are alive at once */
	for (int i = 0; i < 10; i++) {
		nvtxRangePushA("outer");
		nvtxRangePushA((intptr_t)number % 2 ? "odd" : "even");
		nvtxRangePop();
		nvtxRangePop();
	}
	return NULL;
}

static int threads(int count)
{
	pthread_t *thread = calloc((size_t)count, sizeof(*thread));
	pthread_attr_t attr;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 65536);
	(void)pthread_barrier_init(&all, NULL, (unsigned)count);
	for (intptr_t i = 0; i < count; i++)
		if (pthread_create(&thread[i], &attr, in_thread, (void *)i))
			die("pthread_create");
	for (int i = 0; i < count; i++)
		(void)pthread_join(thread[i], NULL);
	free(thread);
	printf("expected: %d tasks NVTX::outer\n", 10 * count);
	printf("expected: %d tasks NVTX::odd\n", 10 * (count / 2));
	printf("expected: %d tasks NVTX::even\n", 10 * (count - count / 2));
	return 0;
}

/* ---- names ---- */

static const char *const odd_names[] = {
	"",
	"\xff\xfe\x80 no UTF-8",
	"cut \xe2\x82",
	"\"}],\"traceEvents\":[{\"ph\":\"X\"",
	"\\u0000 \\ \" ' \n\r\t\x01\x7f",
	"\x1b[31mred",
	"%s%n%d",
	"NVTX::a::b",
};

static nvtxEventAttributes_t event(const char *name)
{
	return (nvtxEventAttributes_t){ .version = NVTX_VERSION,
					.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
					.messageType = NVTX_MESSAGE_TYPE_ASCII,
					.message.ascii = name };
}

/* In every place that takes a name. */
static void name_all(const char *name)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA(name);
	nvtxEventAttributes_t attributes = event(name), registered = event(NULL);
	nvtxRangeId_t range;

	nvtxNameCategoryA(5, name);
	nvtxDomainNameCategoryA(domain, 5, name);
	nvtxNameOsThreadA((uint32_t)gettid(), name);
	attributes.category = 5;
	registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	registered.message.registered = nvtxDomainRegisterStringA(domain, name);
	nvtxRangePushA(name);
	nvtxDomainRangePushEx(domain, &attributes);
	nvtxDomainMarkEx(domain, &registered);
	range = nvtxDomainRangeStartEx(domain, &registered);
	nvtxDomainRangeEnd(domain, range);
	nvtxDomainRangePop(domain);
	nvtxRangePop();
	nvtxDomainDestroy(domain);
}

static int names(int times)
{
	static char mega[1 << 20];

	memset(mega, 'x', sizeof(mega) - 1);
	for (int i = 0; i < times; i++) {
		for (size_t n = 0; n < ARRAY_SIZE(odd_names); n++)
			name_all(odd_names[n]);
		name_all(mega);
	}
	nvtxRangePushA("last");
	nvtxRangePop();
	printf("expected: 1 tasks NVTX::last\n");
	return 0;
}

/* ---- what no program should do ---- */

/* Attributes that are empty, from another version or of kinds that nobody knows; ends of nothing.
 */
static int nonsense(int times)
{
	nvtxEventAttributes_t odd[4] = { { 0 }, event("short"), event("kind"), event(NULL) };

	odd[1].size = 8;
	odd[2].messageType = 99;
	odd[2].payloadType = 99;
	odd[3].payloadType = -1;
	for (int i = 0; i < times; i++) {
		nvtxRangePop();
		nvtxRangeEnd(12345);
		nvtxDomainRangePop(NULL);
		for (size_t n = 0; n < ARRAY_SIZE(odd); n++) {
			nvtxRangePushEx(&odd[n]);
			nvtxMarkEx(&odd[n]);
			nvtxRangeEnd(nvtxRangeStartEx(&odd[n]));
			nvtxRangePop();
		}
		nvtxRangePushA(NULL);
		nvtxRangePop();
	}
	nvtxRangePushA("last");
	nvtxRangePop();
	printf("expected: 1 tasks NVTX::last\n");
	return 0;
}

static const struct {
	const char *name;
	int (*run)(int number);
} modes[] = {
	/* a handler at 1 kHz that traces, and goes back or leaves by a jump */
	{ "interrupt", interrupt },
	{ "jump", jump },
	{ "threads", threads },
	/* names that are long, no UTF-8, JSON */
	{ "names", names },
	{ "nonsense", nonsense },
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
