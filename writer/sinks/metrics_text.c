/*
 * Names, kernels and values as unitrace's files of metrics have them.
 */
#include "metrics_text.h"

#include <stdio.h>
#include <string.h>

#include "device_record.h"
#include "put.h"
#include "summary.h"
#include "task_record.h"
#include "text.h"

char *xs_metrics_put_names(char *o, const char *names, size_t length, uint32_t count)
{
	const char *at = names, *end = names + length;

	for (uint32_t i = 0; i < count && at <= end; i++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		char *from = ++o;

		stop = stop ? stop : end;
		o[-1] = ',';
		o = xs_plain(o, at, (size_t)(stop - at));
		for (; from < o; from++)
			if (*from == ',' || *from == '"')
				*from = ';'; /* nobody quotes these */
		at = stop + 1;
	}
	return o;
}

char *xs_metrics_put_kernel(char *o, const struct xs_process *process, const struct xs_work *work,
			    bool detailed)
{
	struct xs_table_key key = xs_work_key(work, detailed);
	char name[XS_ROW_NAME_MAX];
	size_t length;

	key.tile = 0;
	length = xs_row_name(process, &key, false, name);
	*o++ = '"';
	for (size_t i = 0; i < length; i++) {
		if (name[i] == '"')
			*o++ = '"';
		*o++ = name[i];
	}
	/* what a graph's kernels did together is the graph's */
	for (uint32_t i = 0; i < work->fact_count && work->record->work != XS_WORK_KERNEL; i++)
		if (!strcmp(work->facts[i].key ? work->facts[i].key : "", "graph"))
			o = xs_put_count(o, " ", work->facts[i].value);
	*o++ = '"';
	return o;
}

/* As unitrace prints it: numbers with a fraction get six digits of it. */
char *xs_metrics_put_value(char *o, uint64_t value, uint8_t type)
{
	float single;
	double number;
	uint32_t bits = (uint32_t)value;

	memcpy(&single, &bits, sizeof(single));
	memcpy(&number, &value, sizeof(number));
	if (type == XS_VALUE_U64)
		return xs_json_uint(o, value);
	if (type == XS_VALUE_FLOAT || type == XS_VALUE_DOUBLE)
		return o + sprintf(o, "%f", type == XS_VALUE_FLOAT ? (double)single : number);
	return o;
}
