#include "pairs.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PAIRS   65536u
#define MAX_BENDING 4096u /* whose bounds are kept in parts: about 10 KiB each */

void xm_pairs_init(struct xm_pairs *pairs)
{
	xf_map_init(&pairs->map, MAX_PAIRS, MAX_PAIRS * 8);
}

static struct xm_pair *pair_of(struct xm_pairs *pairs, uint32_t a, uint32_t b)
{
	uint32_t key[2] = { a < b ? a : b, a < b ? b : a };
	uint32_t index = xf_map_add(&pairs->map, key, sizeof(key));

	if (index == XF_NONE || !xf_room_for(&pairs->all, &pairs->room, index, sizeof(*pairs->all)))
		return NULL;
	pairs->all[index].first = key[0];
	pairs->all[index].second = key[1];
	pairs->all[index].bounds.is_plain = index >= MAX_BENDING;
	return &pairs->all[index];
}

struct xm_pair *xm_pairs_message(struct xm_pairs *pairs, uint32_t from, int64_t sent, uint32_t to,
				 int64_t seen)
{
	struct xm_pair *pair = from == to ? NULL : pair_of(pairs, from, to);

	if (!pair)
		return NULL;
	if (pair->first == from)
		xm_bounds_add(&pair->bounds, true, sent, seen - sent);
	else
		xm_bounds_add(&pair->bounds, false, seen, sent - seen);
	return pair;
}

void xm_pairs_together(struct xm_pairs *pairs, uint32_t a, int64_t a_time, uint32_t b,
		       int64_t b_time)
{
	struct xm_pair *pair = a == b ? NULL : pair_of(pairs, a, b);

	if (!pair)
		return;
	if (!pair->samples)
		pair->samples = calloc(1, sizeof(*pair->samples));
	if (!pair->samples)
		return;
	if (pair->first == a)
		xm_samples_add(pair->samples, a_time, b_time - a_time);
	else
		xm_samples_add(pair->samples, b_time, a_time - b_time);
}

void xm_pairs_free(struct xm_pairs *pairs)
{
	for (uint32_t i = 0; i < pairs->room; i++) {
		xm_bounds_free(&pairs->all[i].bounds);
		free(pairs->all[i].samples);
	}
	free(pairs->all);
	xf_map_free(&pairs->map);
}
