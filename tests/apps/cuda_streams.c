/*
 * Kernels, copies and fills in several streams, by one thread or many, on one device or all:
 *	cuda_streams [--streams N] [--kernels N] [--threads N] [--devices N] [--end
 *return|_exit|abort] What the kernels compute is checked. Prints how much its trace must hold.
 */
#include "cuda_app.h"

#include <getopt.h>

enum { COUNT = 1024 };

static unsigned streams = 2, kernels = 5, threads = 1, devices = 1;
static char end = 'r';

static void one_stream(cudaStream_t stream)
{
	size_t bytes = COUNT * sizeof(int);
	int count = COUNT, *host = calloc(COUNT, sizeof(int)), *at;
	void *args[] = { &at, &count };

	CUDA_CHECK(cudaMalloc((void **)&at, bytes));
	CUDA_CHECK(cudaMemsetAsync(at, 0, bytes, stream));
	CUDA_CHECK(cudaMemcpyAsync(at, host, bytes, cudaMemcpyHostToDevice, stream));
	for (unsigned i = 0; i < kernels; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_INCREMENT, 4, 256, args, stream));
	CUDA_CHECK(cudaMemcpyAsync(host, at, bytes, cudaMemcpyDeviceToHost, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++) {
		if (host[i] != (int)kernels) {
			fprintf(stderr, "wrong: %d\n", host[i]);
			exit(97);
		}
	}
	CUDA_CHECK(cudaFree(at));
	free(host);
}

static void *one_thread(void *arg)
{
	cudaStream_t stream;

	CUDA_CHECK(cudaSetDevice((int)((uintptr_t)arg % devices)));
	for (unsigned i = 0; i < streams || end == 'n'; i++) {
		CUDA_CHECK(cudaStreamCreate(&stream));
		one_stream(stream);
		CUDA_CHECK(cudaStreamDestroy(stream));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "streams", 1, NULL, 's' }, { "kernels", 1, NULL, 'k' },
		{ "threads", 1, NULL, 't' }, { "devices", 1, NULL, 'd' },
		{ "end", 1, NULL, 'e' },     { NULL, 0, NULL, 0 }
	};
	pthread_t started[64];

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'e')
			end = *optarg;
		else if (c == 's' || c == 'k' || c == 't' || c == 'd')
			*(c == 's'   ? &streams
			  : c == 'k' ? &kernels
			  : c == 't' ? &threads
				     : &devices) = (unsigned)atoi(optarg);
		else
			return 2;
	}
	if (!threads || threads > 64 || !devices)
		return 2;
	for (unsigned i = 0; i < threads; i++)
		started[i] = start_thread(one_thread, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < threads; i++)
		(void)pthread_join(started[i], NULL);
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("expected: %u kernels\n", threads * streams * kernels);
	printf("expected: %u copies\n", threads * streams * 2);
	printf("expected: %u fills\n", threads * streams);
	fflush(stdout);
	if (end == '_')
		_exit(0);
	if (end == 'a')
		abort();
	return 0;
}
