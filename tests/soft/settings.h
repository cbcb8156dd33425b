/*
 * Settings of the drivers in software: environment variables, which README.md of each driver tells.
 * A wrong one ends the program with status 124, since a test that runs with other settings than it
 * asked for shows nothing. Each driver has a copy of its own, hidden.
 */
#ifndef SOFT_SETTINGS_H
#define SOFT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Ends the program: variable `name` has a value that is not taken. */
void soft_bad(const char *name, const char *value, const char *why) __attribute__((noreturn));

/* The number in variable `name`; `otherwise` where it is not set. */
uint64_t soft_number(const char *name, uint64_t otherwise, uint64_t least, uint64_t most);

/*
 * Reads variable `name`: NAME=NS,… where NAME is a kernel's or a kind of command's; "*" is for all
 * others. False: it tells none.
 */
bool soft_durations(const char *name);
/* What it tells of `name`; `otherwise` where it tells nothing. */
uint64_t soft_duration_ns(const char *name, uint64_t otherwise);

#endif
