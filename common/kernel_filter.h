/* --include-kernels, --exclude-kernels and --exclude-calls. */
#ifndef XS_KERNEL_FILTER_H
#define XS_KERNEL_FILTER_H

#include <stdbool.h>
#include <stddef.h>

struct xs_options;

/*
 * Makes pieces of names of a text: commas and ends of lines lie between them, blanks around them
 * go. One in double quotes may hold commas, and quotes behind a backslash. In place: each piece
 * with its NUL, an empty one behind the last; `text` has room for one byte more than its length
 * with NUL.
 */
void xs_names_split(char *text);

/*
 * Is device work of the kernel to be shown? A piece is part of the name as it is shown: `plain`, of
 * a C++ name. NULL: the traced process cannot tell; what that would decide passes, and the drain
 * process asks again. A piece that begins with _Z is part of the name as the driver tells it.
 */
bool xs_kernel_wanted(const struct xs_options *options, const char *name, const char *plain);
/* Is a call of the function to be shown? */
bool xs_function_wanted(const struct xs_options *options, const char *name);

#endif
