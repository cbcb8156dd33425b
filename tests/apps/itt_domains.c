/*
 * One string handle in very many domains: itt_domains DOMAINS. Two tasks in each, the second one at
 * a time when the handle has been used in all.
 *	price: <ns of this thread's time>	a second task
 */
#include "itt_app.h"

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1;
	__itt_domain **domains = calloc((size_t)count, sizeof(__itt_domain *));
	__itt_string_handle *name = __itt_string_handle_create("same");
	struct timespec begin, end;
	char text[32];

	for (long i = 0; i < count; i++) {
		(void)snprintf(text, sizeof(text), "domain%ld", i);
		domains[i] = __itt_domain_create(text);
		finished_task(domains[i], name);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	for (long i = 0; i < count; i++)
		finished_task(domains[i], name);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	printf("price: %ld\n",
	       ((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec) / count);
	printf("expected: %ld tasks\n", 2 * count);
	free(domains);
	return 0;
}
