/*
 * Places in tables whose keys traced processes choose. A secret of this process is in them, so that
 * nobody can choose keys that meet in one place.
 */
#ifndef XS_HASH_H
#define XS_HASH_H

#include <stdint.h>

/* Random, odd; the same as long as the process lives. */
uint64_t xs_hash_secret(void);

static inline uint32_t xs_hash(const uint64_t *words, uint32_t count)
{
	uint64_t secret = xs_hash_secret(), hash = secret >> 7;

	for (uint32_t i = 0; i < count; i++) {
		hash = (hash ^ words[i]) * secret;
		hash ^= hash >> 32;
	}
	return (uint32_t)(hash * secret >> 32);
}

static inline uint32_t xs_hash_id(uint32_t id)
{
	uint64_t secret = xs_hash_secret();

	return (uint32_t)((id ^ secret >> 40) * secret >> 32);
}

#endif
