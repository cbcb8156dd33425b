/*
 * A program that does what its arguments say, step by step, for tests of what is recorded when.
 *
 *	+NAME  begins the task app::NAME        -      ends the innermost one
 *	frame:NAME  begins the frame NAME        end:NAME  ends it
 *	=NAME  a finished task                  pause, resume: ITT's
 *	set:V, put:V, unset, clear: PTI_ENABLE_COLLECTION by setenv, putenv, unsetenv, clearenv
 *	fork   a child does the steps that follow, and this process ends as it did
 *	exec   the program anew, with the steps that follow
 *	say:TEXT, sleep:MS
 *	wait   for a line on stdin (or its end)
 *	loop:NAME  finished tasks of 1 ms until a line comes on stdin (or its end); prints how many
 */
#include <poll.h>
#include <sys/wait.h>
#include "itt_app.h"

#define VARIABLE "PTI_ENABLE_COLLECTION"

static __itt_domain *domain;

static void wait_for_line(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
		;
}

static void loop(const char *name)
{
	__itt_string_handle *handle = __itt_string_handle_create(name);
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	long n = 0;

	do {
		task_begin(domain, handle);
		sleep_ms(1);
		task_end(domain);
		n++;
	} while (poll(&in, 1, 0) == 0);
	wait_for_line();
	printf("%s: %ld\n", name, n);
}

static void step_fork(void)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork");
	if (child == 0)
		return;
	if (waitpid(child, &status, 0) < 0)
		die("waitpid");
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

static void put(const char *value)
{
	static char text[8][64]; /* the environment keeps the string itself */
	static int used;

	snprintf(text[used], sizeof(text[used]), VARIABLE "=%s", value);
	putenv(text[used++ % 8]);
}

static bool is(const char **step, const char *prefix)
{
	size_t n = strlen(prefix);

	if (strncmp(*step, prefix, n))
		return false;
	*step += n;
	return true;
}

static void control_step(const char *step)
{
	if (is(&step, "pause"))
		__itt_pause();
	else if (is(&step, "resume"))
		__itt_resume();
	else if (is(&step, "set:"))
		setenv(VARIABLE, step, 1);
	else if (is(&step, "put:"))
		put(step);
	else if (is(&step, "unset"))
		unsetenv(VARIABLE);
	else if (is(&step, "clear"))
		clearenv();
	else
		die(step);
}

static bool frame_step(const char *step)
{
	if (is(&step, "frame:"))
		__itt_frame_begin_v3(__itt_domain_create(step), NULL);
	else if (is(&step, "end:"))
		__itt_frame_end_v3(__itt_domain_create(step), NULL);
	else
		return false;
	return true;
}

static void do_step(const char *step)
{
	if (frame_step(step))
		return;
	if (is(&step, "+"))
		task_begin(domain, __itt_string_handle_create(step));
	else if (is(&step, "-"))
		task_end(domain);
	else if (is(&step, "="))
		finished_task(domain, __itt_string_handle_create(step));
	else if (is(&step, "say:"))
		puts(step);
	else if (is(&step, "sleep:"))
		sleep_ms(atol(step));
	else if (is(&step, "wait"))
		wait_for_line();
	else if (is(&step, "loop:"))
		loop(step);
	else if (is(&step, "fork"))
		step_fork();
	else
		control_step(step);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	domain = __itt_domain_create("app");
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "exec")) {
			argv[i] = argv[0];
			execv("/proc/self/exe", argv + i);
			die("exec");
		}
		do_step(argv[i]);
	}
	return 0;
}
