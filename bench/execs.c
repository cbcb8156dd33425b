/*
 * Starts /bin/true again and again, one after the other, as a shell or a build does.
 *
 *	execs COUNT
 *
 * Prints "exec_us <mean>", from vfork to the end of wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1000, status;
	double begin = now_us();

	for (int i = 0; i < count; i++) {
		pid_t pid = vfork();

		if (!pid) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(99);
		}
		if (waitpid(pid, &status, 0) != pid || status) {
			fprintf(stderr, "execs: /bin/true failed\n");
			return 1;
		}
	}
	printf("exec_us %.3f\n", (now_us() - begin) / count);
	return 0;
}
