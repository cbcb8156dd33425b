/*
 * Steps of equal work, each an ITT task: for bench/diff, which must know how much slower a program
 * really is.
 *
 * steps COUNT WORK: COUNT tasks "step", each WORK rounds of arithmetic.
 */
#include <ittnotify.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t spin(unsigned long rounds)
{
	uint64_t x = 88172645463325252u;

	for (unsigned long i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}

int main(int argc, char **argv)
{
	__itt_domain *domain = __itt_domain_create("bench");
	__itt_string_handle *name = __itt_string_handle_create("step");
	uint64_t sum = 0;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: steps COUNT WORK\n");
		return 2;
	}
	for (long n = strtol(argv[1], NULL, 10); n > 0; n--) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		sum += spin(strtoul(argv[2], NULL, 10));
		__itt_task_end(domain);
	}
	return sum == 1;
}
