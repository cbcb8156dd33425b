/*
 * What tests/gpu/run traces on a machine with a GPU, built by nvcc with the static CUDA runtime:
 *	work loop N	N empty launches, a wait after each 100
 *	work streams N	N kernels in each of 8 streams, and their time by events
 *	work graph N	a graph of three kernels, launched N times
 * Prints the time of one launch, waits included, and how many kernels its trace must hold.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <cuda_runtime.h>

#define CHECK(call)                                                                        \
	do {                                                                               \
		cudaError_t error_ = (call);                                               \
		if (error_ != cudaSuccess) {                                               \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_)); \
			exit(98);                                                          \
		}                                                                          \
	} while (0)

__global__ void empty()
{
}

__global__ void spin(long long cycles)
{
	for (long long end = clock64() + cycles; clock64() < end;)
		;
}

static double now_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static long loop(long count)
{
	double start = now_ns();

	for (long i = 1; i <= count; i++) {
		empty<<<1, 1>>>();
		if (i % 100 == 0)
			CHECK(cudaStreamSynchronize(0));
	}
	CHECK(cudaDeviceSynchronize());
	printf("%.1f ns a launch\n", (now_ns() - start) / count);
	return count;
}

static long streams(long count)
{
	cudaStream_t stream[8];
	cudaEvent_t begin, end;
	float ms;

	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	for (cudaStream_t &one : stream)
		CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
	for (long i = 0; i < count; i++)
		for (cudaStream_t &one : stream)
			empty<<<4, 64, 0, one>>>();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaEventRecord(begin, stream[0]));
	spin<<<1, 1, 0, stream[0]>>>(20000000);
	CHECK(cudaEventRecord(end, stream[0]));
	CHECK(cudaEventSynchronize(end));
	CHECK(cudaEventElapsedTime(&ms, begin, end));
	printf("spin: %.0f ns\n", ms * 1e6);
	return 8 * count + 1;
}

static long graph(long count)
{
	cudaStream_t stream;
	cudaGraph_t made;
	cudaGraphExec_t ready;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < 3; i++)
		empty<<<1, 1, 0, stream>>>();
	CHECK(cudaStreamEndCapture(stream, &made));
	CHECK(cudaGraphInstantiateWithFlags(&ready, made, 0));
	for (long i = 0; i < count; i++)
		CHECK(cudaGraphLaunch(ready, stream));
	CHECK(cudaStreamSynchronize(stream));
	return 3 * count;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[2]) : 1000;
	const char *what = argc > 1 ? argv[1] : "loop";
	long kernels;

	CHECK(cudaFree(0));
	kernels = !strcmp(what, "streams") ? streams(count) :
		  !strcmp(what, "graph")   ? graph(count) :
					     loop(count);
	printf("expected: %ld kernels\n", kernels);
	return 0;
}
