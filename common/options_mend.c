/*
 * Options that come from memory which others could write: none is left that cannot be given.
 */
#include <string.h>

#include "options.h"

static bool mend_number(const struct xs_option *row, uint64_t *value, uint64_t otherwise)
{
	if ((*value >= row->low && *value <= row->high) || *value == otherwise ||
	    (row->type == XS_OPT_COUNT && row->choices && *value == UINT64_MAX))
		return true;
	*value = otherwise;
	return false;
}

static bool mend_choice(const struct xs_option *row, uint32_t *value, uint32_t otherwise)
{
	uint32_t highest = 0;

	for (const char *bar = strchr(row->choices, '|'); bar; bar = strchr(bar + 1, '|'))
		highest++;
	if (*value <= highest)
		return true;
	*value = otherwise;
	return false;
}

/*
 * Names and files, which the launcher makes pieces of, have an empty one behind the last: their
 * field is a byte longer than the option takes.
 */
static bool mend_text(const struct xs_option *row, char *text)
{
	bool pieces = row->type == XS_OPT_TEXT && row->adds != XS_LAST;
	size_t size = row->high + pieces;

	if (pieces ? !text[size - 1] && !text[size - 2] : memchr(text, '\0', size) != NULL)
		return true;
	memset(text, 0, size);
	return false;
}

static bool mend(const struct xs_option *row, char *field, const char *otherwise)
{
	switch (row->type) {
	case XS_OPT_FLAG:
		if (*(unsigned char *)field <= 1)
			return true;
		*(bool *)field = false;
		return false;
	case XS_OPT_COUNT:
	case XS_OPT_MAYBE_COUNT:
	case XS_OPT_SIZE:
	case XS_OPT_TIME:
		return mend_number(row, (uint64_t *)field, *(const uint64_t *)otherwise);
	case XS_OPT_CHOICE:
		return mend_choice(row, (uint32_t *)field, *(const uint32_t *)otherwise);
	case XS_OPT_TEXT:
	case XS_OPT_MAYBE_TEXT:
	case XS_OPT_CHECKED:
		return mend_text(row, field);
	}
	return true;
}

bool xs_options_mend(struct xs_options *options)
{
	static struct xs_options defaults;
	bool whole = options->has_names <= 1;

	options->has_names = options->has_names != 0;
	xs_options_default(&defaults);
	for (size_t i = 0; i < xs_option_count; i++) {
		const struct xs_option *row = &xs_option_table[i];

		if (row->offset >= offsetof(struct xs_options, include_kernels) &&
		    !options->has_names)
			continue;
		whole &= mend(row, (char *)options + row->offset,
			      (const char *)&defaults + row->offset);
	}
	return whole;
}
