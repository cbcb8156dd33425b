#include "kernel_filter.h"

#include <string.h>

#include "options.h"

/* Does the name hold one of the pieces, which have commas or newlines between and perhaps blanks around them? */
static bool holds_any(const char *name, const char *pieces)
{
	while (*(pieces += strspn(pieces, ", \t\r\n"))) {
		size_t n = strcspn(pieces, ",\r\n");
		size_t length = n;

		while (pieces[length - 1] == ' ' || pieces[length - 1] == '\t')
			length--;
		if (memmem(name, strlen(name), pieces, length))
			return true;
		pieces += n;
	}
	return false;
}

bool xs_kernel_wanted(const struct xs_options *options, const char *name)
{
	if (options->include_kernels[0] && !holds_any(name, options->include_kernels))
		return false;
	return !options->exclude_kernels[0] || !holds_any(name, options->exclude_kernels);
}
