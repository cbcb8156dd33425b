/*
 * Graphs: one that is built node by node, one that two streams capture, one that holds the first as
 * a child and a loop; each is launched N times, behind PLAIN kernels that are in none: cuda_graphs
 * [N [PLAIN]]. What they compute is checked. Prints how much their trace must hold.
 */
#include "cuda_app.h"

enum { COUNT = 256, TURNS = 3 };

static const size_t bytes = COUNT * sizeof(int);
static int *at, *turns, host[COUNT], called;

static void count_call(void *data)
{
	++*(int *)data;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t *after, size_t count,
				  enum cuda_kernel kernel, void **args)
{
	struct cudaKernelNodeParams params = { .func = (void *)(uintptr_t)cuda_app_kernel(kernel),
					       .gridDim = { 2, 1, 1 },
					       .blockDim = { 128, 1, 1 },
					       .kernelParams = args };
	cudaGraphNode_t node;

	CUDA_CHECK(cudaGraphAddKernelNode(&node, graph, after, count, &params));
	return node;
}

/* fill, two kernels, a call of the host, copy: 2 kernels, 1 copy, 1 fill */
static cudaGraph_t build(void)
{
	struct cudaMemsetParams fill = { .dst = at, .elementSize = 1, .width = bytes, .height = 1 };
	struct cudaHostNodeParams call = { .fn = count_call, .userData = &called };
	int count = COUNT;
	void *args[] = { &at, &count };
	cudaGraphNode_t first, kernels[2], last;
	cudaGraph_t graph;

	CUDA_CHECK(cudaGraphCreate(&graph, 0));
	CUDA_CHECK(cudaGraphAddMemsetNode(&first, graph, NULL, 0, &fill));
	kernels[0] = add_kernel(graph, &first, 1, CUDA_INCREMENT, args);
	kernels[1] = add_kernel(graph, &first, 1, CUDA_INCREMENT, args);
	CUDA_CHECK(cudaGraphAddHostNode(&last, graph, kernels, 2, &call));
	CUDA_CHECK(cudaGraphAddMemcpyNode1D(&first, graph, &last, 1, host, at, bytes,
					    cudaMemcpyDeviceToHost));
	return graph;
}

/* a kernel in each of two streams, and a copy: 2 kernels, 1 copy */
static cudaGraph_t capture(cudaStream_t stream)
{
	int count = COUNT;
	void *args[] = { &at, &count };
	cudaStream_t other;
	cudaEvent_t forked, joined;
	cudaGraph_t graph;

	CUDA_CHECK(cudaStreamCreate(&other));
	CUDA_CHECK(cudaEventCreate(&forked));
	CUDA_CHECK(cudaEventCreate(&joined));
	CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA_CHECK(cuda_app_launch(CUDA_INCREMENT, 1, 64, args, stream));
	CUDA_CHECK(cudaEventRecord(forked, stream));
	CUDA_CHECK(cudaStreamWaitEvent(other, forked, 0));
	CUDA_CHECK(cuda_app_launch(CUDA_INCREMENT, 1, 64, args, other));
	CUDA_CHECK(cudaEventRecord(joined, other));
	CUDA_CHECK(cudaStreamWaitEvent(stream, joined, 0));
	CUDA_CHECK(cudaMemcpyAsync(host, at, bytes, cudaMemcpyDeviceToHost, stream));
	CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
	CUDA_CHECK(cudaStreamDestroy(other));
	return graph;
}

/* the child, then a copy of the number of turns, and a loop of as many kernels */
static cudaGraph_t nest(cudaGraph_t child)
{
	static const int wanted = TURNS;
	struct cudaGraphNodeParams loop = { .type = cudaGraphNodeTypeConditional };
	cudaGraphConditionalHandle handle;
	cudaGraphNode_t nodes[3];
	cudaGraph_t graph;
	void *args[] = { &turns, &handle };

	CUDA_CHECK(cudaGraphCreate(&graph, 0));
	CUDA_CHECK(cudaGraphAddChildGraphNode(&nodes[0], graph, NULL, 0, child));
	CUDA_CHECK(cudaGraphAddMemcpyNode1D(&nodes[1], graph, &nodes[0], 1, turns, &wanted,
					    sizeof(wanted), cudaMemcpyHostToDevice));
	CUDA_CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	loop.conditional.handle = handle;
	loop.conditional.type = cudaGraphCondTypeWhile;
	loop.conditional.size = 1;
	CUDA_CHECK(cudaGraphAddNode(&nodes[2], graph, &nodes[1], NULL, 1, &loop));
	(void)add_kernel(loop.conditional.phGraph_out[0], NULL, 0, CUDA_COUNTDOWN, args);
	return graph;
}

/* What they compute the first graph's fill makes undone. */
static void launch_plain(cudaStream_t stream, int plain)
{
	int count = COUNT;
	void *args[] = { &at, &count };

	for (int i = 0; i < plain; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_INCREMENT, 2, 128, args, stream));
}

static void launch(cudaGraph_t graph, cudaStream_t stream, int times)
{
	cudaGraphExec_t exec;

	CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < times; i++)
		CUDA_CHECK(cudaGraphLaunch(exec, stream));
	CUDA_CHECK(cudaStreamSynchronize(stream));
	CUDA_CHECK(cudaGraphExecDestroy(exec));
}

static void check(int value, int calls)
{
	for (int i = 0; i < COUNT; i++) {
		if (host[i] != value || called != calls) {
			fprintf(stderr, "wrong: %d not %d, %d calls not %d\n", host[i], value,
				called, calls);
			exit(97);
		}
	}
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 4, plain = argc > 2 ? atoi(argv[2]) : 0;
	cudaStream_t stream;
	cudaGraph_t built, captured, nested;

	CUDA_CHECK(cudaStreamCreate(&stream));
	CUDA_CHECK(cudaMalloc((void **)&at, bytes));
	CUDA_CHECK(cudaMalloc((void **)&turns, sizeof(*turns)));
	built = build();
	launch_plain(stream, plain);
	launch(built, stream, times);
	check(2, times);
	captured = capture(stream);
	launch(captured, stream, times);
	check(2 + 2 * times, times);
	nested = nest(built);
	launch(nested, stream, times);
	check(2, 2 * times);
	CUDA_CHECK(cudaGraphDestroy(nested));
	CUDA_CHECK(cudaGraphDestroy(captured));
	CUDA_CHECK(cudaGraphDestroy(built));
	printf("expected: %d kernels\n", (2 + 2 + 2 + TURNS) * times + plain);
	printf("expected: %d copies\n", (1 + 1 + 1 + 1) * times);
	printf("expected: %d fills\n", 2 * times);
	printf("expected: %d hosts\n", 2 * times);
	printf("expected: %d graphs\n", 3 * times);
	return 0;
}
