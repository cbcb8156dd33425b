/*
 * Captures, before anything is launched and while others launch: cuda_captures [THREADS [ROUNDS]].
 * In each round each thread captures two kernels, launches two that are in no graph, and the graph.
 * Prints how many kernels its trace must hold.
 */
#include "cuda_app.h"

enum { MOST = 16 };

static int rounds = 10;

static void launch(cudaStream_t stream, int times)
{
	for (int i = 0; i < times; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 32, NULL, stream));
}

static void *work(void *arg)
{
	cudaStream_t stream = arg;

	for (int i = 0; i < rounds; i++) {
		cudaGraphExec_t exec;
		cudaGraph_t graph;

		CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
		launch(stream, 2);
		CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
		launch(stream, 2);
		CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
		CUDA_CHECK(cudaGraphLaunch(exec, stream));
		CUDA_CHECK(cudaStreamSynchronize(stream));
		CUDA_CHECK(cudaGraphExecDestroy(exec));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	cudaStream_t streams[MOST];
	pthread_t threads[MOST];

	rounds = argc > 2 ? atoi(argv[2]) : rounds;
	count = count < MOST ? count : MOST;
	for (int i = 0; i < count; i++)
		CUDA_CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	for (int i = 0; i < count; i++)
		(void)pthread_create(&threads[i], NULL, work, streams[i]);
	for (int i = 0; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	CUDA_CHECK(cudaDeviceSynchronize());
	printf("expected: %d kernels\n", 4 * count * rounds);
	return 0;
}
