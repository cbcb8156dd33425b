/*
 * Metrics of Level Zero that a program makes itself, of a device's programmable ones and values for
 * their parameters: "NAME:PARAMETER=VALUE:…,NAME…". What of zet_api.h 1.11 (level-zero 1.19) that
 * needs is declared here, as Debian's header is older; whoever includes this has zet_api.h.
 */
#ifndef XS_PROGRAMMABLE_H
#define XS_PROGRAMMABLE_H

#include <dlfcn.h>
#include <level_zero/zet_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XS_PROGRAMMABLES_MAX 512u
#define XS_PARAMETERS_MAX    16u
#define XS_MADE_MAX	     200u /* metrics */

#define XS_PROGRAMMABLE_PROPERTIES 0x00010003u
#define XS_PROGRAMMABLE_PARAMETER  0x00010004u

struct xs_programmable { /* zet_metric_programmable_exp_properties_t */
	uint32_t stype;
	void *next;
	char name[128], description[128], component[128];
	uint32_t tier, domain, parameters, sampling, source;
};

struct xs_parameter { /* zet_metric_programmable_param_info_exp_t */
	uint32_t stype;
	void *next;
	int type;
	char name[128];
	int value_type; /* zet_value_info_type_exp_t, the first five of zet_value_type_t */
	zet_value_t standard;
	uint32_t values;
};

struct xs_programmables {
	ze_result_t (*get)(ze_device_handle_t, uint32_t *, void **);
	ze_result_t (*properties)(void *, struct xs_programmable *);
	ze_result_t (*parameters)(void *, uint32_t *, struct xs_parameter *);
	ze_result_t (*make)(void *, uint32_t, zet_value_t *, const char *, const char *, uint32_t *,
			    zet_metric_handle_t *);
	ze_result_t (*groups)(ze_device_handle_t, uint32_t, zet_metric_handle_t *, const char *,
			      const char *, uint32_t *, zet_metric_group_handle_t *);
};

/*
 * A function of a loader that has it or, through an older one, of the driver (NULL: not that, as
 * with several drivers handles are the loader's). NULL: there is none.
 */
static inline void *xs_newer_function(void *loader, ze_driver_handle_t driver, const char *name)
{
	__typeof__(&zeDriverGetExtensionFunctionAddress) extension;
	void *found = dlsym(loader, name);

	*(void **)&extension = dlsym(loader, "zeDriverGetExtensionFunctionAddress");
	if (!found && driver && extension && extension(driver, name, &found))
		found = NULL;
	return found;
}

/* The driver's (NULL: there are several). False: there are none. */
static inline bool xs_programmables_find(struct xs_programmables *ret, void *loader,
					 ze_driver_handle_t driver)
{
	static const char *const names[] = { "zetMetricProgrammableGetExp",
					     "zetMetricProgrammableGetPropertiesExp",
					     "zetMetricProgrammableGetParamInfoExp",
					     "zetMetricCreateFromProgrammableExp2",
					     "zetDeviceCreateMetricGroupsFromMetricsExp" };
	void **const functions[] = { (void **)&ret->get, (void **)&ret->properties,
				     (void **)&ret->parameters, (void **)&ret->make,
				     (void **)&ret->groups };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*functions[i] = xs_newer_function(loader, driver, names[i]);
		if (!*functions[i])
			return false;
	}
	return true;
}

/* The device's, as many as there are room for. */
static inline uint32_t xs_programmables_get(const struct xs_programmables *of,
					    ze_device_handle_t device,
					    void *ret[XS_PROGRAMMABLES_MAX])
{
	uint32_t count = XS_PROGRAMMABLES_MAX;

	if (of->get(device, &count, ret))
		return 0;
	return count < XS_PROGRAMMABLES_MAX ? count : XS_PROGRAMMABLES_MAX;
}

/* What is known of it, and its parameters: *ret_count of them. */
static inline bool xs_programmable_tell(const struct xs_programmables *of, void *one,
					struct xs_programmable *ret,
					struct xs_parameter parameters[XS_PARAMETERS_MAX],
					uint32_t *ret_count)
{
	*ret = (struct xs_programmable){ .stype = XS_PROGRAMMABLE_PROPERTIES };
	if (of->properties(one, ret))
		return false;
	ret->name[sizeof(ret->name) - 1] = ret->description[sizeof(ret->description) - 1] = '\0';
	*ret_count = ret->parameters < XS_PARAMETERS_MAX ? ret->parameters : XS_PARAMETERS_MAX;
	for (uint32_t i = 0; i < *ret_count; i++)
		parameters[i] = (struct xs_parameter){ .stype = XS_PROGRAMMABLE_PARAMETER };
	if (*ret_count && of->parameters(one, ret_count, parameters))
		return false;
	for (uint32_t i = 0; i < *ret_count; i++)
		parameters[i].name[sizeof(parameters[i].name) - 1] = '\0';
	return true;
}

/* False: the text is no such value. */
static inline bool xs_parameter_read(int type, const char *text, zet_value_t *ret)
{
	char *end;

	if (!*text || *text == '-')
		return false;
	memset(ret, 0, sizeof(*ret));
	switch (type) {
	case ZET_VALUE_TYPE_FLOAT32:
		ret->fp32 = strtof(text, &end);
		break;
	case ZET_VALUE_TYPE_FLOAT64:
		ret->fp64 = strtod(text, &end);
		break;
	case ZET_VALUE_TYPE_BOOL8:
		ret->b8 = strtoul(text, &end, 0) != 0;
		break;
	case ZET_VALUE_TYPE_UINT32:
		ret->ui32 = (uint32_t)strtoul(text, &end, 0);
		break;
	default:
		ret->ui64 = strtoull(text, &end, 0);
	}
	return !*end;
}

/* How a value is written for xs_parameter_read(). */
static inline const char *xs_parameter_text(int type, const zet_value_t *value, char text[32])
{
	if (type == ZET_VALUE_TYPE_FLOAT32 || type == ZET_VALUE_TYPE_FLOAT64)
		(void)snprintf(text, 32, "%g",
			       type == ZET_VALUE_TYPE_FLOAT32 ? (double)value->fp32 : value->fp64);
	else
		(void)snprintf(text, 32, "%llu",
			       type == ZET_VALUE_TYPE_BOOL8    ? (unsigned long long)value->b8
			       : type == ZET_VALUE_TYPE_UINT32 ? (unsigned long long)value->ui32
							       : (unsigned long long)value->ui64);
	return text;
}

#endif
