/*
 * Which groups of metrics of a Level Zero device a text names ("A,B"). Names that the device has no
 * group of are its programmable metrics (programmable.h), of which one group is made. Inside
 * programs, too: no memory is taken, and nothing large is on the stack.
 */
#ifndef XS_METRIC_GROUPS_H
#define XS_METRIC_GROUPS_H

#include "metric_text.h"
#include "options.h"
#include "programmable.h"

#define XS_DEVICE_GROUPS_MAX 512u

struct xs_group_functions {
	__typeof__(&zetMetricGroupGet) get;
	__typeof__(&zetMetricGroupGetProperties) properties;
	bool programmable; /* there are the next ones */
	struct xs_programmables programmables;
	zet_metric_group_sampling_type_flags_t kind; /* that groups must have */
};

struct xs_chosen {
	zet_metric_group_handle_t group;
	const char *name; /* as long as the room */
};

/* Why there is no such group. */
enum xs_group_problem {
	XS_GROUP_NONE,	    /* it has no group, and no programmable metric, `name` */
	XS_GROUP_MANY,	    /* more than XS_GROUPS_MAX */
	XS_GROUP_PARAMETER, /* the metric has no parameter `name` */
	XS_GROUP_VALUE,	    /* `value` is none of the parameter `name` */
	XS_GROUP_REFUSED,   /* the driver does not make the metric `name` */
	XS_GROUP_UNMADE,    /* nor a group of these metrics */
	XS_GROUP_APART,	    /* it makes several */
	XS_GROUP_KIND	    /* which is of another kind */
};

struct xs_group_room {
	zet_metric_group_handle_t groups[XS_DEVICE_GROUPS_MAX];
	zet_metric_group_properties_t group;
	void *programmables[XS_PROGRAMMABLES_MAX];
	struct xs_programmable known;
	struct xs_parameter parameters[XS_PARAMETERS_MAX];
	zet_value_t values[XS_PARAMETERS_MAX];
	zet_metric_handle_t metrics[XS_MADE_MAX];
	uint32_t metric_count;
	/* names, cut at their commas; those of programmable metrics, whole, and cut */
	char names[XS_PATH_MAX], others[XS_PATH_MAX], cut[XS_PATH_MAX];
	enum xs_group_problem problem;
	const char *name, *value;
};

/* What is before the first `at`, which is cut off; *rest: what is behind, or NULL. */
static inline char *xs_cut(char **rest, char at)
{
	char *piece = *rest, *end = strchr(piece, at);

	if (end)
		*end++ = '\0';
	*rest = end;
	return piece;
}

/* The kind and more of a group, in room->group. */
static inline bool xs_group_tell(const struct xs_group_functions *of,
				 zet_metric_group_handle_t group, struct xs_group_room *room)
{
	room->group = (zet_metric_group_properties_t){
		.stype = ZET_STRUCTURE_TYPE_METRIC_GROUP_PROPERTIES
	};
	return !of->properties(group, &room->group);
}

static inline zet_metric_group_handle_t xs_group_find(const struct xs_group_functions *of,
						      ze_device_handle_t device, const char *name,
						      struct xs_group_room *room)
{
	uint32_t count = XS_DEVICE_GROUPS_MAX;

	if (of->get(device, &count, room->groups))
		return NULL;
	for (uint32_t i = 0; i < count && i < XS_DEVICE_GROUPS_MAX; i++)
		if (xs_group_tell(of, room->groups[i], room) &&
		    room->group.samplingType & of->kind &&
		    !strncmp(room->group.name, name, sizeof(room->group.name)))
			return room->groups[i];
	return NULL;
}

/* ---- programmable metrics ---- */

static inline void *xs_group_fails(struct xs_group_room *room, enum xs_group_problem problem,
				   const char *name)
{
	room->problem = problem;
	room->name = name;
	return NULL;
}

/* Sets "PARAMETER=VALUE". */
static inline bool xs_parameter_set(struct xs_group_room *room, uint32_t count, char *text)
{
	char *equals = strchr(text, '=');

	if (equals)
		*equals++ = '\0';
	room->value = equals ? equals : "";
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(room->parameters[i].name, text))
			continue;
		(void)xs_group_fails(room, XS_GROUP_VALUE, text);
		return xs_parameter_read(room->parameters[i].value_type, room->value,
					 &room->values[i]);
	}
	(void)xs_group_fails(room, XS_GROUP_PARAMETER, text);
	return false;
}

/* Makes metrics of "NAME:PARAMETER=VALUE:…". */
static inline bool xs_metrics_make(const struct xs_group_functions *of, ze_device_handle_t device,
				   char *text, struct xs_group_room *room)
{
	const struct xs_programmables *programmables = &of->programmables;
	uint32_t count = xs_programmables_get(programmables, device, room->programmables),
		 parameters, more = XS_MADE_MAX - room->metric_count;
	char *rest = text;

	(void)xs_cut(&rest, ':');
	(void)xs_group_fails(room, XS_GROUP_NONE, text);
	for (uint32_t i = 0; i < count; i++) {
		if (!xs_programmable_tell(programmables, room->programmables[i], &room->known,
					  room->parameters, &parameters) ||
		    strcmp(room->known.name, text) != 0)
			continue;
		for (uint32_t k = 0; k < parameters; k++)
			room->values[k] = room->parameters[k].standard;
		while (rest)
			if (!xs_parameter_set(room, parameters, xs_cut(&rest, ':')))
				return false;
		(void)xs_group_fails(room, XS_GROUP_REFUSED, text);
		if (programmables->make(room->programmables[i], parameters, room->values,
					room->known.name, room->known.description, &more,
					room->metrics + room->metric_count) ||
		    !more || more > XS_MADE_MAX - room->metric_count)
			return false;
		room->metric_count += more;
		return true;
	}
	return false;
}

/* A group of the metrics that room->others names. */
static inline zet_metric_group_handle_t xs_group_make(const struct xs_group_functions *of,
						      ze_device_handle_t device,
						      struct xs_group_room *room)
{
	uint32_t count = XS_DEVICE_GROUPS_MAX;
	char *rest = room->cut;

	memcpy(room->cut, room->others, sizeof(room->cut));
	if (!of->programmable)
		return xs_group_fails(room, XS_GROUP_NONE, room->others);
	for (room->metric_count = 0; rest;)
		if (!xs_metrics_make(of, device, xs_cut(&rest, ','), room))
			return NULL;
	if (of->programmables.groups(device, room->metric_count, room->metrics, "xstrace",
				     "of --group", &count, room->groups) ||
	    !count)
		return xs_group_fails(room, XS_GROUP_UNMADE, room->others);
	if (count > 1)
		return xs_group_fails(room, XS_GROUP_APART, room->others);
	if (!xs_group_tell(of, room->groups[0], room) || !(room->group.samplingType & of->kind))
		return xs_group_fails(room, XS_GROUP_KIND, room->others);
	return room->groups[0];
}

/* How many; 0: the room says why. */
static inline uint32_t xs_groups_choose(const struct xs_group_functions *of,
					ze_device_handle_t device, const char *wanted,
					struct xs_group_room *room,
					struct xs_chosen ret[XS_GROUPS_MAX])
{
	const char *end = room->others + sizeof(room->others) - 1;
	char *rest = room->names, *o = room->others;
	uint32_t count = 0;

	*xs_metric_put(rest, rest + sizeof(room->names) - 1, wanted, XS_PATH_MAX) = '\0';
	while (rest) {
		const char *name = xs_cut(&rest, ',');
		zet_metric_group_handle_t group = xs_group_find(of, device, name, room);

		if (group && count == XS_GROUPS_MAX) {
			(void)xs_group_fails(room, XS_GROUP_MANY, wanted);
			return 0;
		}
		if (group)
			ret[count++] = (struct xs_chosen){ group, name };
		else
			o = xs_metric_put(xs_metric_put(o, end, ",", o > room->others), end, name,
					  XS_PATH_MAX);
	}
	if (o == room->others)
		return count;
	*o = '\0';
	(void)xs_group_fails(room, XS_GROUP_MANY, wanted);
	if (count == XS_GROUPS_MAX)
		return 0;
	ret[count] = (struct xs_chosen){ xs_group_make(of, device, room), room->others };
	return ret[count].group ? count + 1 : 0;
}

/* The problem, for people. */
static inline const char *xs_groups_why(const struct xs_group_room *room, char *text, size_t size)
{
	static const char *const texts[] = {
		[XS_GROUP_NONE] = "it has no such group of metrics, nor a programmable metric: %s",
		[XS_GROUP_MANY] = "%s are too many groups of metrics",
		[XS_GROUP_PARAMETER] = "the metric has no parameter %s, see xstrace --metric-list",
		[XS_GROUP_VALUE] = "%s=%s is no value of the metric's parameter",
		[XS_GROUP_REFUSED] = "the driver does not make the metric %s with these values",
		[XS_GROUP_UNMADE] = "the driver makes no group of the metrics %s",
		[XS_GROUP_APART] =
			"these metrics cannot be counted at once: %s; name fewer by --group",
		[XS_GROUP_KIND] = "the driver makes another kind of group of the metrics %s",
	};

	(void)snprintf(text, size, texts[room->problem], room->name, room->value);
	return text;
}

#endif
