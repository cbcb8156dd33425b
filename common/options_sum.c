/*
 * The sum of a run's options, which each process looks at before it believes them.
 */
#include <assert.h>
#include <stddef.h>

#include "options.h"

static_assert(offsetof(struct xs_options, include_kernels) % sizeof(uint64_t) == 0 &&
		      sizeof(struct xs_options) % sizeof(uint64_t) == 0,
	      "whole words");

uint64_t xs_options_sum(const struct xs_options *options)
{
	size_t size = options->has_names ? sizeof(*options)
					 : offsetof(struct xs_options, include_kernels);
	const uint64_t *words = (const uint64_t *)options;
	uint64_t sum = 0xcbf29ce484222325ull; /* FNV-1a, of words */

	for (size_t i = 0; i < size / sizeof(*words); i++) {
		sum = (sum ^ words[i]) * 0x100000001b3ull;
		sum ^= sum >> 32; /* or the words' high bits reached no low one */
	}
	return sum ? sum : 1;
}
