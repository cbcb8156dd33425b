/*
 * A task "outer", and in it so many tasks "inner", each with a value, that a small ring loses most
 * of them:
 *	itt_crowded COUNT
 */
#include "itt_app.h"

int main(int argc, char **argv)
{
	__itt_domain *domain = __itt_domain_create("crowded");
	__itt_string_handle *outer = __itt_string_handle_create("outer"),
			    *inner = __itt_string_handle_create("inner"),
			    *key = __itt_string_handle_create("value");

	task_begin(domain, outer);
	for (unsigned long i = 0; argc > 1 && i < strtoul(argv[1], NULL, 10); i++) {
		task_begin(domain, inner);
		__itt_metadata_add(domain, __itt_null, key, __itt_metadata_u64, 1, &i);
		task_end(domain);
	}
	task_end(domain);
	return 0;
}
