/*
 * Pieces of JSON text, one behind the other. Each function returns the end of what it has put.
 */
#ifndef XS_PUT_H
#define XS_PUT_H

#include <stdint.h>
#include <string.h>

#include "json.h"

/* Inlined always: the lengths of most texts are known when this is compiled. */
static inline __attribute__((always_inline)) char *xs_put(char *out, const char *text)
{
	size_t n = strlen(text);

	memcpy(out, text, n);
	return out + n;
}

static inline char *xs_put_escaped(char *out, const char *text)
{
	return xs_json_escape(out, text, strlen(text));
}

static inline __attribute__((always_inline)) char *xs_put_count(char *out, const char *key,
								uint64_t value)
{
	return xs_json_uint(xs_put(out, key), value);
}

#endif
