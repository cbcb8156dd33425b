/*
 * "Did you mean …": which of the known names somebody meant who typed another one.
 */
#ifndef XS_NEAREST_H
#define XS_NEAREST_H

#include <stddef.h>

/*
 * The name of a table that is most like `name` (`length` bytes); NULL: none is like it. `first` is
 * the name in the first of the table's `count` rows (NULL there: a row without a name), and a row
 * has `stride` bytes.
 */
const char *xs_nearest_name(const char *const *first, size_t count, size_t stride, const char *name,
			    size_t length);
/*
 * The line about an option that `program` does not have, as it was given ("--outptu=x", "-y"), with
 * the nearest of the table's names if there is one. Without a newline; cut to `size` bytes.
 */
void xs_say_unknown_option(char *text, size_t size, const char *program, const char *given,
			   const char *const *first, size_t count, size_t stride);

#endif
