/*
 * A plug-in with its own static copy of ittnotify, as real ones have. Its copy lives in memory
 * that dlclose() unmaps, and the next dlopen() may put the same addresses to other use: a
 * collector that keeps a pointer into it crashes, or shows an old name.
 */
#include "itt_app.h"

__attribute__((visibility("default"))) void plugin_work(int round);

void plugin_work(int round)
{
	__itt_domain *domain = __itt_domain_create("plugin");
	char name[32];

	snprintf(name, sizeof(name), "round %d", round);
	finished_task(domain, __itt_string_handle_create(name));
}
