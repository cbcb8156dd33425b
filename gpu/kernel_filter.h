/* --include-kernels and --exclude-kernels. */
#ifndef XS_KERNEL_FILTER_H
#define XS_KERNEL_FILTER_H

#include <stdbool.h>

struct xs_options;

/* Is device work of the kernel to be shown? */
bool xs_kernel_wanted(const struct xs_options *options, const char *name);

#endif
