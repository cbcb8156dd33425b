/*
 * Between the generated wrappers of the toy API and toy.c.
 */
#ifndef XS_TOY_H
#define XS_TOY_H

#include <stdbool.h>
#include <toy_api.h>

extern struct toy_functions xs_toy_target; /* the functions below us */
/* Generated: puts the wrappers into the table, all of them or those that device times need. */
void xs_toy_wrap(struct toy_functions *functions, bool all);
toy_result xs_hook_toyLaunch(toy_queue queue, const char *kernel, uint64_t *start, uint64_t *end);

#endif
