/*
 * Regions, or overlapped tasks, that are open at once, each with so many texts of 1,899 bytes by
 * its id, and in them FEW with one text each; all end, those with few texts last, and five more
 * come, with ten texts:
 *	itt_laden regions|overlapped COUNT TEXTS FEW
 */
#include "itt_app.h"

static __itt_domain *domain;
static __itt_string_handle *name, *key;

static void one(bool regions, unsigned long number, unsigned long texts)
{
	__itt_id id = __itt_id_make(&domain, number);
	char text[1899];

	memset(text, 'x', sizeof(text));
	if (regions)
		__itt_region_begin(domain, id, __itt_null, name);
	else
		__itt_task_begin_overlapped(domain, id, __itt_null, name);
	for (unsigned long i = 0; i < texts; i++)
		__itt_metadata_str_add(domain, id, key, text, sizeof(text));
}

static void end(bool regions, unsigned long number)
{
	if (regions)
		__itt_region_end(domain, __itt_id_make(&domain, number));
	else
		__itt_task_end_overlapped(domain, __itt_id_make(&domain, number));
}

int main(int argc, char **argv)
{
	bool regions = argc > 1 && !strcmp(argv[1], "regions");
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long texts = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	unsigned long all = count + (argc > 4 ? strtoul(argv[4], NULL, 10) : 0);

	domain = __itt_domain_create("laden");
	name = __itt_string_handle_create("one");
	key = __itt_string_handle_create("text");
	for (unsigned long i = 1; i <= all; i++)
		one(regions, i, i <= count ? texts : 1);
	for (unsigned long i = count; i; i--)
		end(regions, i);
	for (unsigned long i = all; i > count; i--)
		end(regions, i);
	name = __itt_string_handle_create("after");
	for (unsigned long i = 1; i <= 5; i++) { /* the drain process may be behind for a while */
		sleep_ms(400);
		one(regions, all + i, 10);
		end(regions, all + i);
	}
	return 0;
}
