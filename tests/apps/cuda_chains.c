/*
 * Who waits for whom, many times. The n-th kernel has a grid of n blocks, but for `phases`.
 *	turns STREAMS N: N times a kernel in a stream, an event, and a kernel in the next one, which
 *		waits for that
 *	again N TIMES: N times a kernel, TIMES recordings of one event, and a wait for it
 *	events N: N kernels, each with an event of its own; then a wait for each event
 *	streams N: N times a new stream, a kernel in it, a wait for the device
 *	far N: a kernel and an event; N recordings of another event; waits for the first event, of
 *		another stream and of the host, and one for each stream
 *	early: a launch that takes long; meanwhile another thread waits for the same, still empty,
 *		stream; then the first one waits
 *	phases FILE: four streams in turns, each of which waits for the one before, and some memory;
 *		when there is FILE, a kernel of another device, and the streams the other way round
 */
#include "cuda_app.h"

#define MOST 1024

static unsigned grid;

static void launch(cudaStream_t stream)
{
	CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, ++grid, 1, NULL, stream));
}

static cudaStream_t new_stream(void)
{
	cudaStream_t stream;

	CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

static cudaEvent_t new_event(void)
{
	cudaEvent_t event;

	CUDA_CHECK(cudaEventCreateWithFlags(&event, 0));
	return event;
}

static void turns(int streams, int count)
{
	cudaStream_t stream[MOST];
	cudaEvent_t event = new_event();

	for (int i = 0; i < streams; i++)
		stream[i] = new_stream();
	for (int i = 0; i < count; i++) {
		cudaStream_t to = stream[(i + 1) % streams];

		launch(stream[i % streams]);
		CUDA_CHECK(cudaEventRecord(event, stream[i % streams]));
		CUDA_CHECK(cudaStreamWaitEvent(to, event, 0));
		launch(to);
	}
	CUDA_CHECK(cudaDeviceSynchronize());
}

static void again(int count, int times)
{
	cudaStream_t stream = new_stream();
	cudaEvent_t event = new_event();

	for (int i = 0; i < count; i++) {
		launch(stream);
		for (int k = 0; k < times; k++)
			CUDA_CHECK(cudaEventRecord(event, stream));
		CUDA_CHECK(cudaEventSynchronize(event));
	}
}

static void events(int count)
{
	static cudaEvent_t event[MOST];
	cudaStream_t stream = new_stream();

	for (int i = 0; i < count; i++) {
		event[i] = new_event();
		launch(stream);
		CUDA_CHECK(cudaEventRecord(event[i], stream));
	}
	for (int i = 0; i < count; i++)
		CUDA_CHECK(cudaEventSynchronize(event[i]));
}

static void streams(int count)
{
	for (int i = 0; i < count; i++) {
		cudaStream_t stream = new_stream();

		launch(stream);
		CUDA_CHECK(cudaDeviceSynchronize());
		CUDA_CHECK(cudaStreamDestroy(stream));
	}
}

static void far(int count)
{
	cudaStream_t stream[2] = { new_stream(), new_stream() };
	cudaEvent_t first = new_event(), other = new_event();

	launch(stream[0]);
	CUDA_CHECK(cudaEventRecord(first, stream[0]));
	for (int i = 0; i < count; i++)
		CUDA_CHECK(cudaEventRecord(other, stream[1]));
	CUDA_CHECK(cudaStreamWaitEvent(stream[1], first, 0));
	launch(stream[1]);
	CUDA_CHECK(cudaEventSynchronize(first));
	for (int i = 0; i < 2; i++)
		CUDA_CHECK(cudaStreamSynchronize(stream[i]));
}

/* A hundred times each stream's kernel, whose grid tells the stream; each waits for the one before
 * it. */
static void in_turns(cudaStream_t *stream, int from, int step, cudaEvent_t event)
{
	for (int i = 0; i < 400; i++) {
		int which = from + step * (i % 4);

		if (i % 4)
			CUDA_CHECK(cudaStreamWaitEvent(stream[which], event, 0));
		CUDA_CHECK(
			cuda_app_launch(CUDA_EMPTY, (unsigned)which + 1, 1, NULL, stream[which]));
		CUDA_CHECK(cudaEventRecord(event, stream[which]));
	}
	CUDA_CHECK(cudaDeviceSynchronize());
}

static void phases(const char *file)
{
	cudaStream_t stream[4];
	cudaEvent_t event = new_event();
	void *memory;

	for (int i = 0; i < 4; i++)
		stream[i] = new_stream();
	CUDA_CHECK(cudaMalloc(&memory, 1000000));
	in_turns(stream, 0, 1, event);
	while (access(file, F_OK) != 0)
		sleep_ms(10);
	CUDA_CHECK(cudaSetDevice(1));
	CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 9, 1, NULL, NULL));
	CUDA_CHECK(cudaDeviceSynchronize());
	CUDA_CHECK(cudaSetDevice(0));
	CUDA_CHECK(cudaMalloc(&memory, 1000));
	in_turns(stream, 3, -1, event);
}

static void *waits(void *stream)
{
	sleep_ms(50);
	CUDA_CHECK(cudaStreamSynchronize(stream));
	return NULL;
}

/* A stream that waits for the default one, which is busy, keeps a launch waiting. */
static void early(void)
{
	uint64_t ns = 200000000;
	void *args[] = { &ns };
	cudaStream_t stream;
	pthread_t other;

	CUDA_CHECK(cudaStreamCreate(&stream));
	other = start_thread(waits, stream);
	CUDA_CHECK(cuda_app_launch(CUDA_SPIN, 1, 1, args, NULL));
	launch(stream);
	CUDA_CHECK(cudaStreamSynchronize(stream));
	(void)pthread_join(other, NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int count = argc > 2 ? atoi(argv[2]) : 0, more = argc > 3 ? atoi(argv[3]) : 0;

	if (count > MOST && strcmp(what, "far") != 0)
		return 2;
	if (!strcmp(what, "turns"))
		turns(count, more);
	else if (!strcmp(what, "again"))
		again(count, more);
	else if (!strcmp(what, "events"))
		events(count);
	else if (!strcmp(what, "streams"))
		streams(count);
	else if (!strcmp(what, "far"))
		far(count);
	else if (!strcmp(what, "phases"))
		phases(argv[2]);
	else if (!strcmp(what, "early"))
		early();
	else
		return 2;
	return 0;
}
