/*
 * Does what its words say, one after the other, so that a test knows what was traced when:
 *
 *	tasks NAME COUNT	as fast as they come
 *	paced NAME COUNT US	with US microseconds of sleep after each
 *	slow NAME MS		one task that takes so long
 *	open NAME		a task that is never ended
 *	marker NAME
 *	thread NAME COUNT	a thread that makes these tasks and ends; it is joined
 *	child WORDS… end	a process that does these words; it is waited for at the end
 *	sleep MS
 *	wait			prints "ready" and a number, from 1, and waits for a line on stdin
 *	signal NUMBER		to itself
 *
 * All names are of the domain "steps".
 */
#include <signal.h>
#include <sys/wait.h>
#include "itt_app.h"

static __itt_domain *domain;

static __itt_string_handle *name(const char *text)
{
	return __itt_string_handle_create(text);
}

struct tasks {
	__itt_string_handle *name;
	long count, pause_us;
};

static void *make_tasks(void *arg)
{
	const struct tasks *tasks = arg;

	for (long i = 0; i < tasks->count; i++) {
		finished_task(domain, tasks->name);
		if (tasks->pause_us)
			usleep((useconds_t)tasks->pause_us);
	}
	return NULL;
}

static void wait_for_line(void)
{
	static int number;
	char c = 0;

	printf("ready %d\n", ++number);
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
		;
}

static char **behind_end(char **word)
{
	while (*word && strcmp(*word, "end"))
		word++;
	return *word ? word + 1 : word;
}

static void do_words(char **word)
{
	struct tasks tasks = { 0 };

	while (*word && strcmp(*word, "end")) {
		char *what = *word++;

		if (!strcmp(what, "tasks") || !strcmp(what, "thread")) {
			tasks = (struct tasks){ name(word[0]), atol(word[1]), 0 };
			word += 2;
			if (what[1] == 'a')
				make_tasks(&tasks);
			else
				pthread_join(start_thread(make_tasks, &tasks), NULL);
		} else if (!strcmp(what, "paced")) {
			tasks = (struct tasks){ name(word[0]), atol(word[1]), atol(word[2]) };
			word += 3;
			make_tasks(&tasks);
		} else if (!strcmp(what, "slow")) {
			task_begin(domain, name(word[0]));
			sleep_ms(atol(word[1]));
			task_end(domain);
			word += 2;
		} else if (!strcmp(what, "open")) {
			task_begin(domain, name(*word++));
		} else if (!strcmp(what, "marker")) {
			__itt_marker(domain, __itt_null, name(*word++), __itt_scope_task);
		} else if (!strcmp(what, "sleep")) {
			sleep_ms(atol(*word++));
		} else if (!strcmp(what, "wait")) {
			wait_for_line();
		} else if (!strcmp(what, "signal")) {
			kill(getpid(), atoi(*word++));
		} else if (!strcmp(what, "child")) {
			if (fork() == 0) {
				do_words(word);
				exit(0);
			}
			word = behind_end(word);
		} else {
			errno = EINVAL;
			die(what);
		}
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	domain = __itt_domain_create("steps");
	do_words(argv + 1);
	while (wait(NULL) > 0)
		;
	return 0;
}
