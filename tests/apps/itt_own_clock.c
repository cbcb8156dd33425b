/*
 * Tasks at times of clocks that nobody can place: itt_own_clock ZERO BASE FREQUENCY [DAYS]. The
 * clock shows ZERO units when the program begins, says that it shows BASE, and passes as the
 * program likes. Each call tells of what was long ago, or is yet to come; with DAYS, it jumps there
 * in the end, and back.
 */
#define INTEL_ITTNOTIFY_API_PRIVATE
#include "itt_app.h"

#include <stdlib.h>

static unsigned long long base, frequency;

static void ITTAPI info(__itt_clock_info *ret, void *data)
{
	(void)data;
	ret->clock_base = base;
	ret->clock_freq = frequency;
}

int main(int argc, char **argv)
{
	unsigned long long zero = strtoull(argv[1], NULL, 0), ms;
	__itt_domain *domain = __itt_domain_create("own");
	__itt_string_handle *outer = __itt_string_handle_create("outer"),
			    *inner = __itt_string_handle_create("inner");
	__itt_string_handle *plain = __itt_string_handle_create("plain"),
			    *mark = __itt_string_handle_create("mark");
	__itt_string_handle *lapped = __itt_string_handle_create("lapped"),
			    *open = __itt_string_handle_create("open");
	__itt_clock_domain *clock;

	if (argc < 4)
		return 2;
	base = strtoull(argv[2], NULL, 0);
	frequency = strtoull(argv[3], NULL, 0);
	ms = frequency / 1000;
	clock = __itt_clock_domain_create(info, NULL);
	for (unsigned i = 0; i < 3; i++) {
		unsigned long long at = zero + 10 * i * ms;

		__itt_task_begin(domain, __itt_null, __itt_null, plain);
		__itt_task_begin_ex(domain, clock, at, __itt_null, __itt_null, outer);
		__itt_task_begin_ex(domain, clock, at + 1 * ms, __itt_null, __itt_null, inner);
		__itt_task_end_ex(domain, clock, at + 3 * ms);
		__itt_task_begin_ex(domain, clock, at + 3 * ms, __itt_null, __itt_null, inner);
		__itt_marker_ex(domain, clock, at + 4 * ms, __itt_null, mark, __itt_scope_task);
		__itt_task_end_ex(domain, clock, at + 5 * ms);
		__itt_task_end_ex(domain, clock, at + 5 * ms);
		__itt_task_begin_overlapped_ex(domain, clock, at, __itt_id_make(domain, i),
					       __itt_null, lapped);
		__itt_task_end_overlapped_ex(domain, clock, at + 7 * ms, __itt_id_make(domain, i));
		__itt_task_end(domain);
	}
	if (argc > 4) {
		unsigned long long days = strtoull(argv[4], NULL, 0) * 86400 * frequency;

		__itt_task_begin_ex(domain, clock, zero + days, __itt_null, __itt_null, mark);
		__itt_task_end_ex(domain, clock, zero + days + 1 * ms);
	}
	__itt_task_begin_ex(domain, clock, zero + 100 * ms, __itt_null, __itt_null, open);
	return 0;
}
