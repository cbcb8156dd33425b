#include "option_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

bool xs_is_session(const char *text)
{
	size_t n =
		strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");

	return n && n <= 128 && !text[n];
}

bool xs_is_pid(const char *text)
{
	size_t n = strspn(text, "0123456789");
	unsigned long pid = n && n < 8 ? strtoul(text, NULL, 10) : 0;

	return !text[n] && pid && pid <= 4194304;
}

bool xs_is_export(const char *text)
{
	return !strncmp(text, XS_EXPORT_PROMETHEUS, sizeof(XS_EXPORT_PROMETHEUS) - 1) &&
	       text[sizeof(XS_EXPORT_PROMETHEUS) - 1];
}

/* A decimal number from *text on, which is moved behind it. */
static bool take_number(const char **text, uint64_t *ret)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*ret = strtoull(*text, &end, 10);
	*text = end;
	return !errno;
}

/* "7" or "3-7". */
static bool take_range(const char **text, uint64_t *ret_first, uint64_t *ret_last)
{
	if (!take_number(text, ret_first))
		return false;
	*ret_last = *ret_first;
	if (**text != '-')
		return true;
	++*text;
	return take_number(text, ret_last) && *ret_first <= *ret_last;
}

static bool find_number(const char *text, uint64_t number, bool *ret_listed, uint64_t *ret_highest)
{
	uint64_t first, last;

	*ret_listed = false;
	*ret_highest = 0;
	for (;; text++) {
		if (!take_range(&text, &first, &last))
			return false;
		*ret_listed |= number >= first && number <= last;
		if (last > *ret_highest)
			*ret_highest = last;
		if (*text != ',')
			return !*text;
	}
}

bool xs_is_numbers(const char *text)
{
	uint64_t highest;
	bool listed;

	return find_number(text, 0, &listed, &highest);
}

bool xs_is_listed(const char *list, uint64_t number)
{
	uint64_t highest;
	bool listed;

	return find_number(list, number, &listed, &highest) && listed;
}

uint64_t xs_highest_listed(const char *list)
{
	uint64_t highest;
	bool listed;

	(void)find_number(list, 0, &listed, &highest);
	return highest;
}

bool xs_is_iterations(const char *text)
{
	const char *mark = strrchr(text, ':'); /* a name may hold others: "domain::task" */
	uint64_t first, last;

	if (!mark || mark == text || mark[-1] == ':')
		return false;
	mark++;
	return take_range(&mark, &first, &last) && first && !*mark;
}

bool xs_is_trigger(const char *text)
{
	const char *mark = strrchr(text, '>');
	uint64_t ns;

	if (!strncmp(text, "marker:", 7))
		return text[7];
	return !strncmp(text, "task:", 5) && mark && mark > text + 5 &&
	       !xs_parse_time(mark + 1, &ns);
}

int xs_parse_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 },  { "s", 1e9 },
		      { "", 1e9 }, { "m", 60e9 }, { "h", 3600e9 } };
	double number;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	number = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].suffix) && number * units[i].ns < 9e18) {
			*ret_ns = (uint64_t)(number * units[i].ns + 0.5);
			return 0;
		}
	return -EINVAL;
}
