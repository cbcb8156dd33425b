#include "programmed.h"

#include "options.h"
#include "programmable.h"

struct making {
	struct xs_programmables functions;
	ze_device_handle_t device;
	zet_metric_handle_t metrics[XS_MADE_MAX];
	uint32_t count;
	char why[2 * XS_PATH_MAX];
};

/* Sets "PARAMETER=VALUE". False: it is told. */
static bool set(struct making *making, const struct xs_parameter *parameters, uint32_t count,
		zet_value_t *values, char *text)
{
	char *equals = strchr(text, '=');

	if (equals)
		*equals++ = '\0';
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(parameters[i].name, text))
			continue;
		if (equals && xs_parameter_read(parameters[i].value_type, equals, &values[i]))
			return true;
		(void)snprintf(making->why, sizeof(making->why),
			       "%s=%s is no value of the metric's parameter", text,
			       equals ? equals : "");
		return false;
	}
	(void)snprintf(making->why, sizeof(making->why),
		       "the metric has no parameter %s, see xstrace --metric-list", text);
	return false;
}

/* Makes metrics of "NAME:PARAMETER=VALUE:…". */
static bool make(struct making *making, char *text)
{
	void *all[XS_PROGRAMMABLES_MAX];
	uint32_t count = xs_programmables_get(&making->functions, making->device, all),
		 parameter_count, more = XS_MADE_MAX - making->count;
	struct xs_parameter parameters[XS_PARAMETERS_MAX];
	zet_value_t values[XS_PARAMETERS_MAX];
	struct xs_programmable known;
	char *rest = text;

	(void)strsep(&rest, ":");
	for (uint32_t i = 0; i < count; i++) {
		if (!xs_programmable_tell(&making->functions, all[i], &known, parameters,
					  &parameter_count) ||
		    strcmp(known.name, text) != 0)
			continue;
		for (uint32_t k = 0; k < parameter_count; k++)
			values[k] = parameters[k].standard;
		while (rest)
			if (!set(making, parameters, parameter_count, values, strsep(&rest, ":")))
				return false;
		if (!making->functions.make(all[i], parameter_count, values, known.name,
					    known.description, &more,
					    making->metrics + making->count) &&
		    more && more <= XS_MADE_MAX - making->count) {
			making->count += more;
			return true;
		}
		(void)snprintf(making->why, sizeof(making->why),
			       "the driver does not make the metric %s with these values", text);
		return false;
	}
	(void)snprintf(making->why, sizeof(making->why),
		       "it has no group of metrics, and no programmable metric, %s", text);
	return false;
}

zet_metric_group_handle_t xs_programmed_group(void *loader, ze_driver_handle_t driver,
					      ze_device_handle_t device, const char *wanted,
					      const char **ret_why)
{
	static struct making making;
	void *all[XS_PROGRAMMABLES_MAX];
	zet_metric_group_handle_t groups[XS_MADE_MAX];
	char text[XS_PATH_MAX], *rest = text;
	uint32_t count = XS_MADE_MAX;

	making.device = device;
	making.count = 0;
	if (!xs_programmables_find(&making.functions, loader, driver) ||
	    !xs_programmables_get(&making.functions, device, all))
		return NULL;
	*ret_why = making.why;
	(void)snprintf(text, sizeof(text), "%s", wanted);
	while (rest)
		if (!make(&making, strsep(&rest, ",")))
			return NULL;
	if (making.functions.groups(device, making.count, making.metrics, "xstrace", "of --group",
				    &count, groups) ||
	    !count) {
		*ret_why = "the driver makes no group of these metrics";
		return NULL;
	}
	if (count == 1)
		return groups[0];
	*ret_why = "these metrics cannot be counted at once; name fewer by --group";
	return NULL;
}
