#include "map.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_of(const unsigned char *p, size_t n)
{
	uint64_t h = n * 0x9e3779b97f4a7c15ull;

	for (; n >= 8; p += 8, n -= 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdull;
		h ^= h >> 32;
	}
	for (; n; p++, n--)
		h = (h ^ *p) * 0x100000001b3ull;
	h = (h ^ h >> 32) * 0xff51afd7ed558ccdull;
	return (uint32_t)(h >> 32);
}

void xf_map_init(struct xf_map *map, uint32_t limit, size_t bytes)
{
	memset(map, 0, sizeof(*map));
	map->limit = limit;
	map->byte_limit = bytes < UINT32_MAX ? bytes : UINT32_MAX;
}

void xf_map_free(struct xf_map *map)
{
	free(map->slots);
	free(map->keys);
	free(map->bytes);
	memset(map, 0, sizeof(*map));
}

/* The slot of the key, or the free one where it belongs. */
static uint32_t *slot_of(const struct xf_map *map, const void *key, size_t length, uint32_t hash)
{
	uint32_t at = hash & (map->slot_count - 1);

	while (map->slots[at]) {
		const struct xf_key *found = &map->keys[map->slots[at] - 1];

		if (found->hash == hash && found->length == length &&
		    !memcmp(map->bytes + found->at, key, length))
			break;
		at = (at + 1) & (map->slot_count - 1);
	}
	return &map->slots[at];
}

uint32_t xf_map_find(const struct xf_map *map, const void *key, size_t length)
{
	return map->count ? *slot_of(map, key, length, hash_of(key, length)) - 1 : XF_NONE;
}

static bool grow(struct xf_map *map, size_t length)
{
	if (map->count == map->key_room) {
		uint32_t room = map->key_room ? 2 * map->key_room : 16;
		uint32_t *slots = calloc(4 * (size_t)room, sizeof(*slots));
		struct xf_key *keys = slots ? realloc(map->keys, room * sizeof(*keys)) : NULL;

		if (!keys) {
			free(slots);
			return false;
		}
		free(map->slots);
		map->slots = slots;
		map->slot_count = 4 * room;
		map->keys = keys;
		map->key_room = room;
		for (uint32_t i = 0; i < map->count; i++) {
			uint32_t at = keys[i].hash & (map->slot_count - 1);

			while (slots[at])
				at = (at + 1) & (map->slot_count - 1);
			slots[at] = i + 1;
		}
	}
	if (!map->bytes || map->byte_count + length > map->byte_room) {
		size_t room = 2 * (map->byte_room + length) + 64;
		char *bytes = realloc(map->bytes, room);

		if (!bytes)
			return false;
		map->bytes = bytes;
		map->byte_room = room;
	}
	return true;
}

uint32_t xf_map_add(struct xf_map *map, const void *key, size_t length)
{
	uint32_t hash = hash_of(key, length), *slot;

	if (map->count) {
		slot = slot_of(map, key, length, hash);
		if (*slot)
			return *slot - 1;
	}
	if (map->count >= map->limit || map->byte_count + length > map->byte_limit ||
	    !grow(map, length))
		return XF_NONE;
	slot = slot_of(map, key, length, hash);
	map->keys[map->count] =
		(struct xf_key){ (uint32_t)map->byte_count, (uint32_t)length, hash };
	memcpy(map->bytes + map->byte_count, key, length);
	map->byte_count += length;
	*slot = ++map->count;
	return map->count - 1;
}

bool xf_room_for(void *array, uint32_t *room, uint32_t index, size_t size)
{
	void **pointer = array, *grown;
	uint32_t wanted = *room ? *room : 64;

	if (index < *room)
		return true;
	while (wanted <= index)
		wanted *= 2;
	grown = realloc(*pointer, wanted * size);
	if (!grown)
		return false;
	memset((char *)grown + *room * size, 0, (wanted - *room) * size);
	*pointer = grown;
	*room = wanted;
	return true;
}
