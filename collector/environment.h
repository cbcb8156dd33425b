/*
 * The program's environment, where another thread may be changing it: see environment.c.
 */
#ifndef XS_ENVIRONMENT_H
#define XS_ENVIRONMENT_H

#include <stdbool.h>

/*
 * Those of its variables that say something to us ("NAME=value", NULL at the end), each with up to
 * 511 bytes. *ret_map is to be given to xs_environment_end().
 */
char *const *xs_environment_begin(void **ret_map);
void xs_environment_end(void *map);
/* The value in the list; NULL: it is not there. */
const char *xs_environment_value(char *const *list, const char *name);
/* The variable's value in the program's own memory; NULL: it is not there. */
char *xs_environment_place(const char *name);
/* While the library's constructor runs there is no other thread: then it is read as it is. */
void xs_environment_is_quiet(bool quiet);

#endif
