/*
 * The syntax of options' values, beyond numbers and choices.
 */
#ifndef XS_OPTION_VALUES_H
#define XS_OPTION_VALUES_H

#include <stdbool.h>

bool xs_is_session(const char *text);
/* A process's number, from 1 to 4194304, the kernel's greatest. */
bool xs_is_pid(const char *text);
/* "0,3,8-15" */
bool xs_is_numbers(const char *text);
/* "NAME:A-B" */
bool xs_is_iterations(const char *text);
#define XS_EXPORT_PROMETHEUS "prometheus:"
/* that, and something */
bool xs_is_export(const char *text);
/* "task:NAME>TIME", "marker:NAME" */
bool xs_is_trigger(const char *text);

#endif
