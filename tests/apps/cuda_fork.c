/*
 * A child that is forked, before its parent uses CUDA or after:
 *	cuda_fork before|after|maps
 * Forked before, both use the device; forked after, the child is told that it cannot, as by
 * NVIDIA's. maps: after; the child prints what it has mapped of shared memory.
 */
#include "cuda_app.h"

#include <sys/wait.h>

enum { KERNELS = 20 };

static void work(void)
{
	for (int i = 0; i < KERNELS; i++)
		CUDA_CHECK(cuda_app_launch(CUDA_EMPTY, 1, 32, NULL, NULL));
	CUDA_CHECK(cudaDeviceSynchronize());
}

static int print_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "rw-s") || strstr(line, "r--s"))
			fputs(line, stdout);
	return fflush(stdout);
}

static int child(bool after, bool maps)
{
	if (maps)
		return print_maps();
	if (after)
		return cuda_app_launch(CUDA_EMPTY, 1, 1, NULL, NULL) == cudaSuccess;
	work();
	return 0;
}

int main(int argc, char **argv)
{
	bool maps = argc > 1 && !strcmp(argv[1], "maps"),
	     after = maps || (argc > 1 && !strcmp(argv[1], "after"));
	int status = -1;
	pid_t pid;

	if (after)
		work();
	pid = fork();
	if (!pid)
		exit(child(after, maps));
	work();
	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "the child ended with %d\n", status);
		return 97;
	}
	printf("process: %d\nexpected: %d kernels\n", (int)getpid(), KERNELS * (after ? 2 : 1));
	printf("process: %d\nexpected: %d kernels\n", (int)pid, after ? 0 : KERNELS);
	return 0;
}
