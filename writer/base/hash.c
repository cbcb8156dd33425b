#include "hash.h"

#include <sys/random.h>
#include <time.h>

uint64_t xs_hash_secret(void)
{
	static uint64_t secret;

	if (__builtin_expect(!secret, 0)) {
		struct timespec now = { 0, 0 };

		/* without: what few could guess */
		if (getrandom(&secret, sizeof(secret), GRND_NONBLOCK) != (ssize_t)sizeof(secret) &&
		    !clock_gettime(CLOCK_MONOTONIC, &now))
			secret = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15ull ^
				 (uint64_t)(uintptr_t)&now;
		secret |= 1ull << 63 | 1;
	}
	return secret;
}
