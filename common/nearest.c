#include "nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

size_t xs_edit_distance(const char *a, const char *b, size_t b_length)
{
	size_t row[64], a_length = strlen(a);

	if (b_length >= 64)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t replace = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] > row[j - 1])
				row[j] = row[j - 1];
			row[j] = row[j] + 1 < replace ? row[j] + 1 : replace;
		}
	}
	return row[b_length];
}

const char *xs_nearest_name(const char *const *first, size_t count, size_t stride, const char *name,
			    size_t length)
{
	const char *nearest = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < count; i++) {
		const char *one = *(const char *const *)((const char *)first + i * stride);
		size_t d = SIZE_MAX;

		/* a beginning of a name is nearest to it */
		if (one)
			d = length >= 3 && !strncmp(one, name, length)
				    ? 0
				    : xs_edit_distance(one, name, length);
		if (d < best) {
			best = d;
			nearest = one;
		}
	}
	return best <= length / 2 + 1 ? nearest : NULL;
}

void xs_say_unknown_option(char *text, size_t size, const char *program, const char *given,
			   const char *const *first, size_t count, size_t stride)
{
	const char *name = given[0] == '-' && given[1] == '-' ? given + 2 : "", *nearest;
	size_t length = strcspn(name, "=");

	nearest = length ? xs_nearest_name(first, count, stride, name, length) : NULL;
	(void)snprintf(text, size, "%s: unknown option %s; %s%s%s", program, given,
		       nearest ? "did you mean --" : "see ", nearest ? nearest : program,
		       nearest ? "?" : " --help");
}
