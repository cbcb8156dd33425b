/*
 * Kineto's format: names as PyTorch has them.
 */
#include <string.h>

#include "kineto.h"

bool xs_kineto_is_operation(const char **text, size_t *length)
{
	static const char domain[] = "PyTorch::", backward[] = "Backward";
	const size_t n = sizeof(domain) - 1;

	if (*length <= n || memcmp(*text, domain, n) != 0)
		return false;
	*text += n;
	*length -= n;
	return memmem(*text, *length, "::", 2) ||
	       memmem(*text, *length, backward, sizeof(backward) - 1);
}

const char *xs_chrome_category(const struct xs_process *process, const char **text, size_t *length)
{
	const struct xs_chrome *chrome = xs_chrome_of(process);

	return chrome->kineto && xs_kineto_is_operation(text, length) ? XS_KINETO_OPERATION
								      : chrome->category;
}
