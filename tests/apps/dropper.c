/*
 * A program that starts as root, drops its privileges, and then traces from a new thread, which
 * may no longer open what root made. Not root: status 77, "skipped".
 */
#include <grp.h>
#include "itt_app.h"

#define NOBODY 65534

static __itt_domain *domain;

static void *trace_after(void *arg)
{
	(void)arg;
	finished_task(domain, __itt_string_handle_create("after"));
	return NULL;
}

int main(void)
{
	if (geteuid() != 0) {
		printf("skipped: not root\n");
		return 77;
	}
	domain = __itt_domain_create("dropper");
	finished_task(domain, __itt_string_handle_create("before"));
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		die("setuid");
	for (int i = 0; i < 4; i++)
		pthread_join(start_thread(trace_after, NULL), NULL);
	finished_task(domain, __itt_string_handle_create("main"));
	printf("uid: %d\n", (int)getuid());
	printf("expected: 1 tasks dropper::before\nexpected: 4 tasks dropper::after\n");
	printf("expected: 1 tasks dropper::main\nexpected: 6 tasks\n");
	return 0;
}
