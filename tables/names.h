/*
 * Texts that come often, by number. They are kept as they stand in the trace: strings of JSON, with
 * their quotes.
 */
#ifndef XT_NAMES_H
#define XT_NAMES_H

#include "map.h"
#include "scan.h"

struct xt_names {
	struct xf_map map;
};

/* The text (without quotes: {"", 0}) of number n, for who reads it at once. */
static inline struct xf_text xt_name(const struct xt_names *names, uint32_t number)
{
	struct xf_text text;

	text.p = xf_map_key(&names->map, number, &text.n);
	return text;
}

#endif
