/*
 * The text that says what metrics are (XS_METRICS_SCOPE): a line for the group, and one for each
 * metric, with its unit.
 */
#ifndef XS_METRIC_TEXT_H
#define XS_METRIC_TEXT_H

#include <string.h>

#define XS_GROUPS_MAX 8u /* of metrics, that a device samples at once */

/* At most `most` bytes of the text, as far as there is room before `end`; it stays one line. */
static inline char *xs_metric_put(char *o, const char *end, const char *text, size_t most)
{
	size_t length = strnlen(text, most);

	if (length > (size_t)(end - o))
		length = (size_t)(end - o);
	memcpy(o, text, length);
	for (size_t i = 0; i < length; i++)
		if (o[i] == '\n')
			o[i] = ' ';
	return o + length;
}

/* "\nGpuTime[ns]"; of units unitrace shows percent as a sign, and none as nothing. */
static inline char *xs_metric_put_line(char *o, const char *end, const char *name, size_t most,
				       const char *unit)
{
	if (o < end)
		*o++ = '\n';
	o = xs_metric_put(o, end, name, most);
	if (!unit || !unit[0] || strstr(unit, "null"))
		return o;
	o = xs_metric_put(o, end, "[", 1);
	o = strstr(unit, "percent") ? xs_metric_put(o, end, "%", 1)
				    : xs_metric_put(o, end, unit, most);
	return xs_metric_put(o, end, "]", 1);
}

#endif
