/*
 * A program that contains xstrace and uses CUDA: LAUNCHES kernels within each of three traces; the
 *last is saved as PATH. What the driver tells late belongs to the trace all the same.
 *
 *	library_cuda PATH LAUNCHES [OPTIONS]
 *
 * With LATE=1 in the environment it has used CUDA before it prepares the first.
 */
#include "cuda_app.h"
#include "xstrace/xstrace.h"

/* The call that has launched it is an event, too. */
static bool has_call(const struct xstrace_trace *trace, uint64_t correlation)
{
	struct xstrace_event event;

	for (size_t i = 0; i < xstrace_trace_count(trace); i++)
		if (!xstrace_trace_event(trace, i, &event) && event.correlation == correlation &&
		    (event.type == XSTRACE_CUDA_RUNTIME || event.type == XSTRACE_CUDA_DRIVER))
			return strstr(event.name, "Launch");
	return false;
}

static size_t count_kernels(const struct xstrace_trace *trace)
{
	struct xstrace_event event;
	size_t kernels = 0;

	for (size_t i = 0; i < xstrace_trace_count(trace); i++)
		kernels += !xstrace_trace_event(trace, i, &event) &&
			   event.type == XSTRACE_CONCURRENT_KERNEL &&
			   has_call(trace, event.correlation);
	return kernels;
}

int main(int argc, char **argv)
{
	int launches = argc > 2 ? atoi(argv[2]) : 10;
	struct xstrace_config config = { .size = sizeof(config),
					 .options = argc > 3 ? argv[3] : NULL };
	struct xstrace_trace *trace;

	if (getenv("LATE")) {
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
		CUDA_CHECK(cudaDeviceSynchronize());
	}
	if (xstrace_prepare(&config))
		printf("prepare: %s\n", xstrace_why());
	CUDA_CHECK(cudaFree(NULL));
	for (int n = 0; n < 3; n++) {
		if (xstrace_start())
			printf("start: %s\n", xstrace_why());
		xstrace_push_correlation(100 + (uint64_t)n);
		xstrace_push_user_correlation(200 + (uint64_t)n);
		xstrace_range_push("launches");
		for (int i = 0; i < launches; i++)
			CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL));
		xstrace_range_pop();
		xstrace_pop_user_correlation();
		xstrace_pop_correlation();
		CUDA_CHECK(cudaDeviceSynchronize());
		if (xstrace_stop(&trace))
			printf("stop: %s\n", xstrace_why());
		printf("kernels %zu\n", count_kernels(trace));
		if (n == 2 && argc > 1 && xstrace_trace_save(trace, argv[1]))
			printf("save: %s\n", xstrace_why());
		xstrace_trace_free(trace);
	}
	return 0;
}
