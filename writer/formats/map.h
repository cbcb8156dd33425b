/*
 * From bytes to a small number that is given at first sight: 0, 1, 2, … Keys are copied; a full map
 * finds what it has.
 */
#ifndef XF_MAP_H
#define XF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XF_NONE UINT32_MAX

struct xf_map {
	uint32_t *slots; /* number + 1; 0: free */
	uint32_t slot_count, count, limit;
	struct xf_key {
		uint32_t at, length, hash;
	} *keys;
	uint32_t key_room;
	char *bytes;
	size_t byte_count, byte_room, byte_limit;
};

/* At most `limit` keys and `bytes` bytes of them. */
void xf_map_init(struct xf_map *map, uint32_t limit, size_t bytes);
void xf_map_free(struct xf_map *map);
/* The key's number; XF_NONE: it is not there. */
uint32_t xf_map_find(const struct xf_map *map, const void *key, size_t length);
/* The same, added if need be; XF_NONE: full. */
uint32_t xf_map_add(struct xf_map *map, const void *key, size_t length);

static inline const void *xf_map_key(const struct xf_map *map, uint32_t number, size_t *ret_length)
{
	*ret_length = map->keys[number].length;
	return map->bytes + map->keys[number].at;
}

/*
 * Room for number `index` in an array of those that were given out (a pointer to its pointer), new
 * ones zeroed; false: no memory.
 */
bool xf_room_for(void *array, uint32_t *room, uint32_t index, size_t size);

#endif
