/*
 * The least that a launcher of a preloaded library costs: one variable, one child, its status.
 *
 *	empty_launcher LIBRARY PROGRAM [ARGUMENT...]
 *
 * Linked as xstrace is. With bench/empty_preload.c it is what start-up is compared with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 3 || setenv("LD_PRELOAD", argv[1], 1)) {
		fprintf(stderr, "usage: empty_launcher LIBRARY PROGRAM [ARGUMENT...]\n");
		return 125;
	}
	pid = vfork();
	if (!pid) {
		execv(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 125;
	return WEXITSTATUS(status);
}
