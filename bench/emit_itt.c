/*
 * An ITT task: what xstrace and unitrace see.
 */
#include <ittnotify.h>

#include "emit.h"

static __itt_domain *domain;
static __itt_string_handle *name;

void emit_init(void)
{
	domain = __itt_domain_create("app");
	name = __itt_string_handle_create("t0");
}

void emit_pairs(long count)
{
	for (long i = 0; i < count; i++) {
		__itt_task_begin(domain, __itt_null, __itt_null, name);
		__itt_task_end(domain);
	}
}
