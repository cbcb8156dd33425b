/*
 * Ends with work on its way: behind a kernel that never ends a copy, a fill, two launches of a
 * graph and a kernel, and a copy of nothing, which is no work.
 *	cuda_left HOW	return, _exit, kill
 */
#include "cuda_app.h"

#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	uint64_t for_ever = 3600000000000ull;
	void *args[] = { &for_ever };
	static char data[64];
	cudaGraphExec_t graph_exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	void *at;

	if (argc < 2)
		return 1;
	CUDA_CHECK(cudaStreamCreate(&stream));
	CUDA_CHECK(cudaMalloc(&at, sizeof(data)));
	CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, stream));
	CUDA_CHECK(cudaMemsetAsync(at, 0, sizeof(data), stream));
	CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
	CUDA_CHECK(cudaGraphInstantiate(&graph_exec, graph, 0));
	CUDA_CHECK(cudaGraphLaunch(graph_exec, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));

	CUDA_CHECK(cuda_app_launch(CUDA_SPIN, 1, 1, args, stream));
	CUDA_CHECK(cudaMemcpyAsync(at, data, sizeof(data), cudaMemcpyHostToDevice, stream));
	CUDA_CHECK(cudaMemcpyAsync(at, data, 0, cudaMemcpyHostToDevice, stream));
	CUDA_CHECK(cudaMemsetAsync(at, 0, sizeof(data), stream));
	CUDA_CHECK(cudaGraphLaunch(graph_exec, stream));
	CUDA_CHECK(cudaGraphLaunch(graph_exec, stream));
	CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, stream));
	puts("left");
	(void)fflush(stdout);
	if (!strcmp(argv[1], "kill"))
		(void)kill(getpid(), SIGKILL);
	if (!strcmp(argv[1], "_exit"))
		_exit(0);
	return 0;
}
