/*
 * From bytes to a small number that is given at first sight: 0, 1, 2, … Keys are copied; a full map
 * finds what it has.
 */
#ifndef XM_MAP_H
#define XM_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XM_NONE UINT32_MAX

struct xm_map {
	uint32_t *slots; /* number + 1; 0: free */
	uint32_t slot_count, count, limit;
	struct xm_key {
		uint32_t at, length, hash;
	} *keys;
	uint32_t key_room;
	char *bytes;
	size_t byte_count, byte_room, byte_limit;
};

/* At most `limit` keys and `bytes` bytes of them. */
void xm_map_init(struct xm_map *map, uint32_t limit, size_t bytes);
void xm_map_free(struct xm_map *map);
/* The key's number; XM_NONE: it is not there. */
uint32_t xm_map_find(const struct xm_map *map, const void *key, size_t length);
/* The same, added if need be; XM_NONE: full. */
uint32_t xm_map_add(struct xm_map *map, const void *key, size_t length);

static inline const void *xm_map_key(const struct xm_map *map, uint32_t number, size_t *ret_length)
{
	*ret_length = map->keys[number].length;
	return map->bytes + map->keys[number].at;
}

/*
 * Room for number `index` in an array of those that were given out (a pointer to its pointer), new
 * ones zeroed; false: no memory.
 */
bool xm_room_for(void *array, uint32_t *room, uint32_t index, size_t size);

#endif
