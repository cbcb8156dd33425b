/*
 * NVTX: ranges that are pushed and popped, ranges from one thread to another, marks, domains,
 * categories, payloads, registered strings and names, with kernels inside:
 *	cuda_nvtx [N]
 * By NVTX 3 it finds a tool itself, by NVTX 2 (cuda_nvtx2, where it is a library) the library does.
 */
#include "cuda_app.h"

#ifdef NVTX2
#define NVTX_NO_IMPL
#endif
#include <nvtx3/nvToolsExt.h>
#ifndef NVTX2
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

#ifndef NVTX2
static void version_3(nvtxDomainHandle_t domain)
{
	nvtxEventAttributes_t registered = event(NULL);
	cudaStream_t stream;
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
	nvtxNameCudaDeviceA(0, "my device");
	CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
}
#endif

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 2;
	nvtxDomainHandle_t domain = nvtxDomainCreateA("my domain");

	nvtxNameCategoryA(7, "seven");
	CUDA_CHECK(cudaFree(NULL));
	across = nvtxRangeStartA("across");
	for (int i = 0; i < times; i++)
		nested(domain);
	(void)pthread_join(start_thread(end_it, NULL), NULL);
#ifndef NVTX2
	version_3(domain);
	printf("expected: 1 ranges my domain::registered\n");
	printf("expected: 1 ranges wide\n");
#endif
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("expected: 1 ranges across\n");
	printf("expected: %d ranges outer\n", times);
	printf("expected: %d ranges payload\n", times);
	printf("expected: %d ranges my domain::step\n", times);
	printf("expected: %d marks mark\n", times);
	printf("expected: %d marks my domain::step\n", times);
	return 0;
}
