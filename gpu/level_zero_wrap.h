/*
 * Between the generated Level Zero wrappers (interpose/generate.py) and gpu/level_zero*.c.
 */
#ifndef XS_LEVEL_ZERO_WRAP_H
#define XS_LEVEL_ZERO_WRAP_H

#include <string.h>

#include "call_values.h"
#include "level_zero_functions.h"
#include "level_zero_tables.h"

extern struct xs_ze_tables xs_ze; /* the functions below us; NULL: none */
extern bool xs_ze_calls;          /* record the calls that are hooked for other reasons too */

/*
 * Keeps a function as the one below its wrapper. False: another one is there already, which is another loader's.
 * xs_ze_put() also puts the wrapper in its place; again: what is there may be replaced, the same loader has made its table anew.
 */
bool xs_ze_take(void **target, void *real);
void xs_ze_put(void **entry, void **target, void *wrapper, bool again);

/* Generated: puts the wrappers into one of the loader's tables, all of them or those that device times need. */
void xs_ze_wrap(uint32_t number, uint32_t version, void *entries, bool all, bool again);
/* Generated: the wrapper of an extension function found at `real`, or `real`. */
void *xs_ze_wrap_extension(const char *name, void *real, bool all);

#endif
