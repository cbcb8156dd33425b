/*
 * Waits of every kind: for a stream, for an event (recorded twice, in two streams), for a device,
 * by the thread that launched and by another one. A letter for each thing done, in two streams:
 *	a b: a kernel is launched in stream 0, 1	A B: stream 0, 1 is waited for
 *	e f: the event is recorded in stream 0, 1	E: it is waited for
 *	D: the device is waited for			w: stream 1 waits for the event
 *	cuda_waits LETTERS [LETTERS of another thread, behind]
 */
#include "cuda_app.h"

static cudaStream_t streams[2];
static cudaEvent_t event;

static void step(char letter)
{
	int which = letter == 'b' || letter == 'B' || letter == 'f';

	switch (letter) {
	case 'a':
	case 'b':
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, streams[which]));
		break;
	case 'A':
	case 'B':
		CUDA_CHECK(cudaStreamSynchronize(streams[which]));
		break;
	case 'e':
	case 'f':
		CUDA_CHECK(cudaEventRecord(event, streams[which]));
		break;
	case 'E':
		CUDA_CHECK(cudaEventSynchronize(event));
		break;
	case 'w':
		CUDA_CHECK(cudaStreamWaitEvent(streams[1], event, 0));
		break;
	default:
		CUDA_CHECK(cudaDeviceSynchronize());
		break;
	}
}

static void *run(void *letters)
{
	for (const char *at = letters; *at; at++)
		step(*at);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	for (int i = 0; i < 2; i++)
		CUDA_CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	CUDA_CHECK(cudaEventCreate(&event));
	(void)run(argv[1]);
	if (argc > 2)
		(void)pthread_join(start_thread(run, argv[2]), NULL);
	return 0;
}
