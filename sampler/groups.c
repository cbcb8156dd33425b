#include "groups.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "programmed.h"

#define DEVICE_GROUPS_MAX 512u

struct functions {
	__typeof__(&zetMetricGroupGet) get;
	__typeof__(&zetMetricGroupGetProperties) properties;
};

static zet_metric_group_handle_t find(const struct functions *ze, ze_device_handle_t device,
				      const char *name)
{
	static zet_metric_group_handle_t groups[DEVICE_GROUPS_MAX];
	zet_metric_group_properties_t group;
	uint32_t count = DEVICE_GROUPS_MAX;

	if (ze->get(device, &count, groups))
		return NULL;
	for (uint32_t i = 0; i < count && i < DEVICE_GROUPS_MAX; i++) {
		group = (zet_metric_group_properties_t){
			.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
		};
		if (!ze->properties(groups[i], &group) &&
		    group.samplingType & ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED &&
		    !strncmp(group.name, name, sizeof(group.name)))
			return groups[i];
	}
	return NULL;
}

uint32_t xs_groups_choose(void *loader, ze_driver_handle_t driver, ze_device_handle_t device,
			  const char *wanted, struct xs_chosen ret[XS_GROUPS_MAX],
			  const char **ret_why)
{
	struct functions ze;
	char text[XS_PATH_MAX], others[XS_PATH_MAX], *rest = text;
	uint32_t count = 0;
	size_t used = 0;

	*ret_why = "it has no such group of metrics";
	*(void **)&ze.get = dlsym(loader, "zetMetricGroupGet");
	*(void **)&ze.properties = dlsym(loader, "zetMetricGroupGetProperties");
	if (!ze.get || !ze.properties)
		return 0;
	(void)snprintf(text, sizeof(text), "%s", wanted);
	while (rest) {
		const char *name = strsep(&rest, ",");
		zet_metric_group_handle_t group = find(&ze, device, name);

		if (!group) { /* all names and their commas are as long as `text` at most */
			used += (size_t)snprintf(others + used, sizeof(others) - used, "%s%s",
						 used ? "," : "", name);
			continue;
		}
		if (count == XS_GROUPS_MAX - 1 && rest) {
			*ret_why = "these are too many groups of metrics";
			return 0;
		}
		ret[count++] = (struct xs_chosen){ group, strdup(name) };
	}
	if (used) {
		ret[count] = (struct xs_chosen){
			xs_programmed_group(loader, driver, device, others, ret_why), strdup(others)
		};
		if (!ret[count++].group)
			return 0;
	}
	return count;
}
