/*
 * The software CUDA's CUPTI, asked directly: what the programs and the small client do not show.
 * The libraries are linked in as they are built, with sanitizers too. Each test is a process of its
 * own.
 */
#include "tap.h"
#include "cuda_app.h"
#include "driver.h"

#include <cupti.h>

#define IS(call, expected) CHECK((call) == (expected), "%s is not %s", #call, #expected)

enum { KERNELS = 10 };

/* what a session was told */
struct told {
	unsigned kinds[CUPTI_ACTIVITY_KIND_COUNT], contexts[8], external[8];
	bool queued, wrong;
	size_t after; /* what GetNextRecord said at the end of a buffer */
};
static struct told first, second;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void settings(const char *name, const char *value)
{
	(void)setenv(name, value, 1);
	sc_config_start();
}

static void requested(uint8_t **buffer, size_t *size, size_t *records)
{
	*size = 4096;
	*records = 7;
	*buffer = aligned_alloc(8, *size);
}

static void read_into(struct told *told, uint8_t *buffer, size_t valid)
{
	CUpti_Activity *record = NULL;
	unsigned count = 0;

	(void)pthread_mutex_lock(&lock);
	while (!cuptiActivityGetNextRecord(buffer, valid, &record)) {
		const CUpti_ActivityKernel13 *kernel = (const void *)record;
		const CUpti_ActivityExternalCorrelation *external = (const void *)record;

		told->kinds[record->kind]++;
		if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
			told->contexts[kernel->contextId % 8]++;
			told->queued |= kernel->queued && kernel->queued <= kernel->start;
			told->wrong |= kernel->start >= kernel->end;
		} else if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
			told->external[external->externalId % 8]++;
		}
		count++;
	}
	told->wrong |= count > 7; /* no more than was asked for */
	(void)pthread_mutex_unlock(&lock);
	free(buffer);
}

static void completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
		      size_t valid)
{
	(void)context, (void)stream, (void)size;
	read_into(&first, buffer, valid);
}

static void requested_v2(uint8_t **buffer, size_t *size, size_t *records,
			 CUpti_BufferCallbackRequestInfo *info)
{
	CHECK(info->structSize >= sizeof(size_t));
	requested(buffer, size, records);
}

static void first_completed(uint8_t *buffer, size_t size, size_t valid,
			    CUpti_BufferCallbackCompleteInfo *info)
{
	(void)size, (void)info;
	read_into(&first, buffer, valid);
}

static void second_completed(uint8_t *buffer, size_t size, size_t valid,
			     CUpti_BufferCallbackCompleteInfo *info)
{
	(void)size, (void)info;
	read_into(&second, buffer, valid);
}

static void launches(cudaStream_t stream)
{
	for (int i = 0; i < KERNELS; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 32, NULL, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
}

static void begin(CUpti_ActivityKind kind)
{
	IS(cuptiActivityRegisterCallbacks(requested, completed), CUPTI_SUCCESS);
	IS(cuptiActivityEnable(kind), CUPTI_SUCCESS);
}

static void end(void)
{
	IS(cuptiActivityFlushAll(1), CUPTI_SUCCESS);
	CHECK(!first.wrong && !second.wrong);
}

static void kinds_come_and_go(void)
{
	begin(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launches(NULL);
	IS(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
	launches(NULL);
	end();
	IS(first.kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], KERNELS);
	CHECK(!first.queued);
	IS(sc_slow(), false); /* nobody wants anything any more */
	IS(cuptiActivityEnable((CUpti_ActivityKind)1000), CUPTI_ERROR_INVALID_KIND);
}

static void one_context_alone(void)
{
	CUcontext contexts[2];

	settings("SOFTCUDA_DEVICES", "2");
	for (int i = 0; i < 2; i++) {
		CUDA_CHECK(cudaSetDevice(i));
		IS(cuCtxGetCurrent(&contexts[i]), CUDA_SUCCESS);
	}
	IS(cuptiActivityRegisterCallbacks(requested, completed), CUPTI_SUCCESS);
	IS(cuptiActivityEnableContext(contexts[1], CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
	   CUPTI_SUCCESS);
	for (int i = 0; i < 2; i++) {
		CUDA_CHECK(cudaSetDevice(i));
		launches(NULL);
	}
	end();
	IS(first.contexts[1], 0);
	IS(first.contexts[2], KERNELS);
}

static void latency_timestamps(void)
{
	IS(cuptiActivityEnableLatencyTimestamps(1), CUPTI_SUCCESS);
	begin(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	launches(NULL);
	end();
	CHECK(first.queued);
}

static void what_is_there_is_dumped(void)
{
	cudaStream_t stream;

	CUDA_CHECK(cudaStreamCreate(&stream));
	begin(CUPTI_ACTIVITY_KIND_DEVICE);
	IS(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_STREAM), CUPTI_SUCCESS);
	end();
	IS(first.kinds[CUPTI_ACTIVITY_KIND_DEVICE], 0);
	IS(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_DEVICE), CUPTI_SUCCESS);
	IS(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT), CUPTI_SUCCESS);
	IS(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_STREAM), CUPTI_SUCCESS);
	end();
	IS(first.kinds[CUPTI_ACTIVITY_KIND_DEVICE], 1);
	IS(first.kinds[CUPTI_ACTIVITY_KIND_CONTEXT], 1);
	IS(first.kinds[CUPTI_ACTIVITY_KIND_STREAM], 2);
}

static void external_ids_nest(void)
{
	const CUpti_ExternalCorrelationKind kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
	uint64_t id = 0;

	CUDA_CHECK(cudaFree(NULL));
	begin(CUPTI_ACTIVITY_KIND_RUNTIME);
	IS(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), CUPTI_SUCCESS);
	IS(cuptiActivityPopExternalCorrelationId(kind, &id), CUPTI_ERROR_QUEUE_EMPTY);
	IS(cuptiActivityPushExternalCorrelationId(kind, 1), CUPTI_SUCCESS);
	IS(cuptiActivityPushExternalCorrelationId(kind, 2), CUPTI_SUCCESS);
	launches(NULL);
	IS(cuptiActivityPopExternalCorrelationId(kind, &id), CUPTI_SUCCESS);
	IS(id, 2);
	launches(NULL);
	IS(cuptiActivityPopExternalCorrelationId(kind, &id), CUPTI_SUCCESS);
	launches(NULL);
	end();
	IS(first.external[1], KERNELS + 1); /* launches, and the wait */
	IS(first.external[2], KERNELS + 1);
	IS(first.kinds[CUPTI_ACTIVITY_KIND_RUNTIME], 3 * (KERNELS + 1));
}

static void hear_nothing(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
			 const void *told)
{
	(void)domain, (void)cbid, (void)told;
	++*(unsigned *)data;
}

static void one_subscriber_alone(void)
{
	CUpti_SubscriberParams params = { .structSize = CUpti_SubscriberParams_STRUCT_SIZE,
					  .allowMultipleSubscribers = 1 };
	CUpti_SubscriberHandle one, other;
	unsigned heard = 0;

	IS(cuptiSubscribe(&one, hear_nothing, &heard), CUPTI_SUCCESS);
	IS(cuptiSubscribe(&other, hear_nothing, &heard),
	   CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	IS(cuptiSubscribe_v2(&other, hear_nothing, &heard, &params),
	   CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	IS(cuptiEnableCallback(1, one, CUPTI_CB_DOMAIN_RUNTIME_API,
			       CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
	   CUPTI_SUCCESS);
	launches(NULL);
	IS(heard, 2 * KERNELS);
	IS(cuptiUnsubscribe(one), CUPTI_SUCCESS);
	launches(NULL);
	IS(heard, 2 * KERNELS);
	IS(cuptiSubscribe(&other, hear_nothing, &heard), CUPTI_SUCCESS);
}

static void two_subscribers(void)
{
	CUpti_SubscriberParams params = { .structSize = CUpti_SubscriberParams_STRUCT_SIZE,
					  .subscriberName = "one",
					  .allowMultipleSubscribers = 1 };
	CUpti_SubscriberHandle one, other;
	char name[64] = "";
	unsigned heard = 0;

	IS(cuptiSubscribe_v2(&one, hear_nothing, &heard, &params), CUPTI_SUCCESS);
	params.oldSubscriberName = name;
	params.oldSubscriberSize = sizeof(name);
	IS(cuptiSubscribe_v2(&other, hear_nothing, &heard, &params), CUPTI_SUCCESS);
	CHECK(!strcmp(name, "CUPTI for one"), "%s", name);
	IS(cuptiActivityRegisterCallbacks_v2(one, requested_v2, first_completed), CUPTI_SUCCESS);
	IS(cuptiActivityRegisterCallbacks_v2(other, requested_v2, second_completed), CUPTI_SUCCESS);
	IS(cuptiActivityEnable_v2(one, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, NULL), CUPTI_SUCCESS);
	IS(cuptiActivityEnable_v2(other, CUPTI_ACTIVITY_KIND_RUNTIME, NULL), CUPTI_SUCCESS);
	launches(NULL);
	IS(cuptiActivityEnable_v2(other, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, NULL),
	   CUPTI_SUCCESS);
	IS(cuptiUnsubscribe(one), CUPTI_SUCCESS);
	launches(NULL);
	end();
	IS(first.kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], KERNELS);
	IS(first.kinds[CUPTI_ACTIVITY_KIND_RUNTIME], 0);
	IS(second.kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], KERNELS);
	IS(second.kinds[CUPTI_ACTIVITY_KIND_RUNTIME], 2 * (KERNELS + 1));
}

/* What is not full is handed back when it is asked for, and until then has no times. */
static void flushed_when_asked(void)
{
	unsigned early;

	begin(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	IS(cuptiActivityFlushPeriod(1), CUPTI_SUCCESS);
	launches(NULL);
	sleep_ms(50);
	(void)pthread_mutex_lock(&lock);
	early = first.kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL];
	(void)pthread_mutex_unlock(&lock);
	CHECK(early < KERNELS, "%u kernels", early);
	IS(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
	IS(first.kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], KERNELS);
}

static void *launch_in_thread(void *arg)
{
	cudaStream_t stream;

	CUDA_CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < 20; i++)
		launches(stream);
	CUDA_CHECK(cudaStreamDestroy(stream));
	return arg;
}

static void many_threads(void)
{
	pthread_t threads[6];

	begin(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	IS(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
	for (int i = 0; i < 6; i++)
		threads[i] = start_thread(launch_in_thread, NULL);
	for (int i = 0; i < 6; i++)
		(void)pthread_join(threads[i], NULL);
	end();
	IS(first.kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL], 6 * 20 * KERNELS);
	IS(first.kinds[CUPTI_ACTIVITY_KIND_RUNTIME], 6 * (20 * (KERNELS + 1) + 2));
}

static void torn_buffers_are_read_no_further(void)
{
	uint64_t buffer[64] = { 0 };
	CUpti_Activity *record = NULL;
	size_t size = 0;

	IS(cuptiActivityGetNextRecord((uint8_t *)buffer, sizeof(buffer), &record),
	   CUPTI_ERROR_INVALID_KIND);
	buffer[0] = CUPTI_ACTIVITY_KIND_RUNTIME;
	IS(cuptiActivityGetNextRecord((uint8_t *)buffer, 39, &record), CUPTI_ERROR_INVALID_KIND);
	IS(cuptiActivityGetNextRecord((uint8_t *)buffer, 40, &record), CUPTI_SUCCESS);
	IS(cuptiActivityGetNextRecord((uint8_t *)buffer, 40, &record),
	   CUPTI_ERROR_MAX_LIMIT_REACHED);
	IS(cuptiActivityGetStructSize(CUPTI_ACTIVITY_KIND_RUNTIME, 0, &size), CUPTI_SUCCESS);
	IS(size, 40);
	IS(cuptiActivityGetStructSize(CUPTI_ACTIVITY_KIND_RUNTIME, 28, &size),
	   CUPTI_ERROR_NOT_SUPPORTED);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("kinds come and go", kinds_come_and_go);
	tap_run("one context alone", one_context_alone);
	tap_run("latency timestamps", latency_timestamps);
	tap_run("what is there is dumped", what_is_there_is_dumped);
	tap_run("external ids nest", external_ids_nest);
	tap_run("one subscriber alone", one_subscriber_alone);
	tap_run("two subscribers", two_subscribers);
	tap_run("flushed when asked", flushed_when_asked);
	tap_run("many threads", many_threads);
	tap_run("torn buffers are read no further", torn_buffers_are_read_no_further);
	return tap_done();
}
