/*
 * Numbers and strings as JSON, fast: the writers' inner loops are made of these.
 */
#ifndef XS_JSON_H
#define XS_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define XS_JSON_MICROS_MAX 24 /* bytes that xs_json_micros() may write */

/* Decimal digits of a value; returns the end. At most 20 bytes. */
char *xs_json_uint(char *out, uint64_t value);

/* ns as microseconds with exactly three decimals ("1234.567"); returns the end. May write past it, within XS_JSON_MICROS_MAX. */
char *xs_json_micros(char *out, uint64_t ns);

/*
 * The text as the inside of a JSON string: escaped, and valid UTF-8 whatever it was (bad bytes become U+FFFD). Writes at most 6 * length
 * bytes; returns the end.
 */
char *xs_json_escape(char *out, const char *text, size_t length);

#endif
