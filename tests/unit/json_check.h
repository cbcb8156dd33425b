/*
 * Is a text JSON, to the letter of RFC 8259, and UTF-8? Written without a look at
 * writer/base/json.c, which it is to judge.
 */
#ifndef JSON_CHECK_H
#define JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* A whole text. False: *ret_at is where it goes wrong. */
bool json_check(const char *text, size_t length, size_t *ret_at);
/* The inside of a string. */
bool json_check_string(const char *text, size_t length, size_t *ret_at);

#endif
