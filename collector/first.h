/* What must run before all else at the end of the program: see first.c. */
#ifndef XS_FIRST_H
#define XS_FIRST_H

#include <stdbool.h>

/*
 * Calls the function once when the program ends by exit() or by the return of main(), before what
 * others have registered. In a program that is not started by xstrace (library/) only what was
 * registered before runs after it. There is one such function.
 */
void xs_first_at_exit(void (*function)(void));
/* For exits.c alone. */
bool xs_first_is_wanted(void) __attribute__((no_sanitize("address", "thread", "undefined")));
void xs_first_run(void);

#endif
