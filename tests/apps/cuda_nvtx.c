/*
 * NVTX: ranges that are pushed and popped, ranges from one thread to another, marks, domains,
 * categories, payloads, registered strings and names, with kernels inside:
 *	cuda_nvtx [N]
 * By NVTX 3 it finds a tool itself, by NVTX 2 (cuda_nvtx2, where it is a library) the library does.
 */
#include "cuda_app.h"

#include <stdatomic.h>

#ifdef NVTX2
#define NVTX_NO_IMPL
#endif
#include <nvtx3/nvToolsExt.h>
#ifndef NVTX2
#include <nvtx3/nvToolsExtCuda.h>
#if __has_include(<nvtx3/nvToolsExtCounters.h>)
#include <nvtx3/nvToolsExtCounters.h>
#define COUNTERS
#endif
#include <nvtx3/nvToolsExtCudaRt.h>
#endif

static nvtxRangeId_t across;

static nvtxEventAttributes_t event(const char *name)
{
	return (nvtxEventAttributes_t){ .version = 3,
					.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
					.messageType = NVTX_MESSAGE_TYPE_ASCII,
					.message.ascii = name };
}

static void *end_it(void *arg)
{
	(void)arg;
	nvtxNameOsThreadA((uint32_t)gettid(), "ender");
	nvtxRangeEnd(across);
	return NULL;
}

static void nested(nvtxDomainHandle_t domain)
{
	nvtxEventAttributes_t in_domain = event("step"), with_payload = event("payload");

	with_payload.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	with_payload.payload.dValue = 2.5;
	with_payload.category = 7;
	with_payload.colorType = NVTX_COLOR_ARGB;
	with_payload.color = 0xff00ff00;
	nvtxRangePushA("outer");
	nvtxRangePushEx(&with_payload);
	nvtxDomainRangePushEx(domain, &in_domain);
	CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
	nvtxDomainRangePop(domain);
	nvtxRangePop();
	nvtxMarkA("mark");
	nvtxDomainMarkEx(domain, &in_domain);
	nvtxRangePop();
}

/* A thread that is named by another one, before it says anything or after. */
struct named {
	bool before;
	_Atomic uint32_t tid;
	_Atomic int step;
};

static void await(_Atomic int *step, int wanted)
{
	while (atomic_load(step) < wanted)
		sleep_ms(1);
}

static void *is_named(void *arg)
{
	struct named *named = arg;

	if (!named->before) {
		nvtxRangePushA("after");
		nvtxRangePop();
	}
	atomic_store(&named->tid, (uint32_t)gettid());
	atomic_store(&named->step, 1);
	await(&named->step, 2);
	if (named->before) {
		nvtxRangePushA("before");
		nvtxRangePop();
	}
	return NULL;
}

static void name_another(bool before)
{
	struct named named = { .before = before };
	pthread_t thread = start_thread(is_named, &named);

	await(&named.step, 1);
	nvtxNameOsThreadA(atomic_load(&named.tid), before ? "named before" : "named after");
	atomic_store(&named.step, 2);
	(void)pthread_join(thread, NULL);
}

#ifndef NVTX2
static void version_3(nvtxDomainHandle_t domain)
{
	nvtxEventAttributes_t registered = event(NULL);
	cudaStream_t stream;
	CUcontext context;
	nvtxRangeId_t range;

	registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	registered.message.registered = nvtxDomainRegisterStringA(domain, "registered");
	range = nvtxDomainRangeStartEx(domain, &registered);
	nvtxDomainRangeEnd(domain, range);
	nvtxDomainNameCategoryA(domain, 7, "seven");
	nvtxRangePushW(L"wide");
	nvtxRangePop();
	CUDA_CHECK(cudaStreamCreate(&stream));
	nvtxNameCudaStreamA(stream, "my stream");
	if (cuCtxGetCurrent(&context) == CUDA_SUCCESS)
		nvtxNameCuContextA(context, "my context");
	CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
	nvtxNameCuStreamW((CUstream)stream, L"after its work, \u00e4"); /* the last one counts */
}
#endif

#ifdef COUNTERS
static uint64_t counter(nvtxDomainHandle_t domain, const char *name, uint64_t type, uint64_t id)
{
	const nvtxCounterAttr_t attributes = {
		.structSize = sizeof(attributes), .schemaId = type, .name = name, .counterId = id
	};

	return nvtxCounterRegister(domain, &attributes);
}

static void counters(nvtxDomainHandle_t domain)
{
	uint64_t integers = counter(domain, "integers", NVTX_PAYLOAD_ENTRY_TYPE_INT64, 0),
		 reals = counter(NULL, "reals", NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE,
				 NVTX_COUNTER_ID_STATIC_START),
		 bytes = counter(domain, "bytes", NVTX_PAYLOAD_ENTRY_TYPE_INT8, 0),
		 group = counter(domain, "group", NVTX_PAYLOAD_SCHEMA_ID_STATIC_START, 0);
	const int8_t byte = -3;

	nvtxCounterSampleInt64(domain, integers, -7);
	nvtxCounterSampleNoValue(domain, integers, NVTX_COUNTER_SAMPLE_ZERO);
	nvtxCounterSampleNoValue(domain, integers, NVTX_COUNTER_SAMPLE_UNAVAILABLE);
	nvtxCounterSampleFloat64(domain, integers, 4.9);
	nvtxCounterSampleFloat64(NULL, reals, 2.25);
	nvtxCounterSampleInt64(NULL, reals, 3);
	nvtxCounterSample(domain, bytes, &byte, sizeof(byte));
	nvtxCounterSample(domain, bytes, NULL, 0);
	nvtxCounterSample(domain, group, &byte, sizeof(byte));
	nvtxCounterSampleInt64(domain, 12345, 1); /* nobody has registered it */
}
#endif

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 2;
	nvtxDomainHandle_t domain = nvtxDomainCreateA("my domain");

	nvtxNameCategoryA(7, "seven");
#ifndef NVTX2
	nvtxNameCudaDeviceA(0, "my device"); /* CUDA has not begun */
#endif
	CUDA_CHECK(cudaFree(NULL));
	across = nvtxRangeStartA("across");
	for (int i = 0; i < times; i++)
		nested(domain);
	(void)pthread_join(start_thread(end_it, NULL), NULL);
	name_another(true);
	name_another(false);
#ifndef NVTX2
	version_3(domain);
#ifdef COUNTERS
	counters(domain);
	printf("counters\n");
#endif
	printf("expected: 1 ranges my domain::registered\n");
	printf("expected: 1 ranges wide\n");
#endif
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("expected: 1 ranges across\n");
	printf("expected: 1 ranges after\n");
	printf("expected: 1 ranges before\n");
	printf("expected: %d ranges outer\n", times);
	printf("expected: %d ranges payload\n", times);
	printf("expected: %d ranges my domain::step\n", times);
	printf("expected: %d marks mark\n", times);
	printf("expected: %d marks my domain::step\n", times);
	return 0;
}
