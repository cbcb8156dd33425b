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

/* How functions are found that the loader at hand may be too old for. */
struct xs_newer {
	void *library; /* the loader; NULL: it is not asked */
	__typeof__(&zeDriverGetExtensionFunctionAddress) extension;
	ze_driver_handle_t driver; /* NULL: there are several, and handles are the loader's */
};

/* NULL: there is none. */
static inline void *xs_newer_function(const struct xs_newer *from, const char *name)
{
	void *found = from->library ? dlsym(from->library, name) : NULL;

	if (!found && from->driver && from->extension &&
	    from->extension(from->driver, name, &found))
		found = NULL;
	return found;
}

/* Of a loader outside the programs; driver: as above. */
static inline struct xs_newer xs_newer_of(void *loader, ze_driver_handle_t driver)
{
	struct xs_newer from = { .library = loader, .driver = driver };

	*(void **)&from.extension = dlsym(loader, "zeDriverGetExtensionFunctionAddress");
	return from;
}

/* False: there are none. */
static inline bool xs_programmables_find(struct xs_programmables *ret, const struct xs_newer *from)
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
		*functions[i] = xs_newer_function(from, names[i]);
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

/* "12", "0x1f". NULL: it is none; or what is behind it. */
static inline const char *xs_read_whole(const char *at, uint64_t *ret)
{
	const char *begin = at;

	*ret = 0;
	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
		for (begin = at += 2;; at++) {
			int digit = *at >= '0' && *at <= '9'   ? *at - '0'
				    : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10
				    : *at >= 'A' && *at <= 'F' ? *at - 'A' + 10
							       : -1;

			if (digit < 0)
				return at > begin ? at : NULL;
			*ret = *ret * 16 + (uint64_t)digit;
		}
	}
	for (; *at >= '0' && *at <= '9'; at++)
		*ret = *ret * 10 + (uint64_t)(*at - '0');
	return at > begin ? at : NULL;
}

/*
 * "0.25", "1.5e9", with a point whatever the program's language is. NULL: it is none; or what is
 * behind it. Exact as far as 15 digits go.
 */
static inline const char *xs_read_number(const char *at, double *ret)
{
	int exponent = 0, digits = 0;
	uint64_t scale = 0;
	double power = 1;

	*ret = 0;
	for (; (*at >= '0' && *at <= '9') || (*at == '.' && !scale); at++) {
		scale |= *at == '.';
		if (*at == '.')
			continue;
		*ret = *ret * 10 + (*at - '0');
		exponent -= scale != 0;
		digits++;
	}
	if (!digits)
		return NULL;
	if (*at == 'e' || *at == 'E') {
		bool less = at[1] == '-';

		at = xs_read_whole(at + 1 + (less || at[1] == '+'), &scale);
		if (!at || scale > 300)
			return NULL;
		exponent += less ? -(int)scale : (int)scale;
	}
	for (int i = exponent < 0 ? -exponent : exponent; i > 0 && i < 400; i--)
		power *= 10;
	*ret = exponent < 0 ? *ret / power : *ret * power;
	return at;
}

/* False: the text is no such value. */
static inline bool xs_parameter_read(int type, const char *text, zet_value_t *ret)
{
	bool real = type == ZET_VALUE_TYPE_FLOAT32 || type == ZET_VALUE_TYPE_FLOAT64;
	uint64_t whole = 0;
	double number = 0;
	const char *end = real ? xs_read_number(text, &number) : xs_read_whole(text, &whole);

	memset(ret, 0, sizeof(*ret));
	switch (type) {
	case ZET_VALUE_TYPE_FLOAT32:
		ret->fp32 = (float)number;
		break;
	case ZET_VALUE_TYPE_FLOAT64:
		ret->fp64 = number;
		break;
	case ZET_VALUE_TYPE_BOOL8:
		ret->b8 = whole != 0;
		break;
	case ZET_VALUE_TYPE_UINT32:
		ret->ui32 = (uint32_t)whole;
		break;
	default:
		ret->ui64 = whole;
	}
	return end && !*end;
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
