/*
 * Calls of the toy API: so many launches as asked, and one that fails. It prints their times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <toy_api.h>

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	toy_queue queue;
	uint64_t start, end;

	(void)toyQueueCreate(0, &queue);
	for (int i = 0; i < count; i++) {
		(void)toyLaunch(queue, i % 2 ? "odd" : "even", &start, &end);
		printf("%s %llu\n", i % 2 ? "odd" : "even", (unsigned long long)(end - start));
	}
	(void)toyLaunch(NULL, "none", &start, &end);
	return toyQueueDestroy(queue);
}
