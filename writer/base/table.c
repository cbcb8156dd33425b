#include "table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

static_assert(sizeof(struct xs_table_key) == 64, "no bytes between the fields");

static uint64_t hash(const struct xs_table_key *key)
{
	uint64_t words[sizeof(*key) / 8];

	memcpy(words, key, sizeof(words));
	return xs_hash(words, key->form ? sizeof(*key) / 8 : 2);
}

static uint32_t *slot_of(const struct xs_table *table, const struct xs_table_key *key)
{
	uint64_t at = hash(key);

	for (;; at++) {
		uint32_t *slot = &table->index[at & (table->size - 1)];

		if (!*slot || !memcmp(&table->rows[*slot - 1].key, key, sizeof(*key)))
			return slot;
	}
}

static bool grow(struct xs_table *table)
{
	uint32_t room = table->room ? 2 * table->room : 64;
	struct xs_table_row *rows = realloc(table->rows, room * sizeof(*rows));
	uint32_t *index;

	if (!rows)
		return false;
	table->rows = rows;
	index = calloc(2 * room, sizeof(*index));
	if (!index)
		return false;
	free(table->index);
	table->index = index;
	table->room = room;
	table->size = 2 * room;
	for (uint32_t i = 0; i < table->count; i++)
		*slot_of(table, &rows[i].key) = i + 1;
	return true;
}

static struct xs_table_row *find(struct xs_table *table, const struct xs_table_key *key)
{
	uint32_t *slot = table->size ? slot_of(table, key) : NULL;
	struct xs_table_row *row;

	if (slot && *slot)
		return &table->rows[*slot - 1];
	if (table->count >= XS_TABLE_ROWS && key->id != XS_TABLE_OTHERS) {
		struct xs_table_key others = { .id = XS_TABLE_OTHERS,
					       .source = key->source,
					       .type = key->type };

		return find(table, &others);
	}
	if (table->count == table->room && !grow(table))
		return NULL;
	row = &table->rows[table->count++];
	memset(row, 0, sizeof(*row));
	row->key = *key;
	row->low = UINT64_MAX;
	*slot_of(table, key) = table->count;
	return row;
}

/* ---- the histogram ---- */

#define CLASSES 16u
/* of all rows; beyond, percentiles are told from the times that were noted before */
#define BYTES_MAX (128u << 20)

static size_t all_bytes;

/* Power 0 holds 0 … 15, power k from 16 << (k - 1) on. */
static uint8_t power_of(uint64_t ns)
{
	return ns < CLASSES ? 0 : (uint8_t)(60 - __builtin_clzll(ns));
}

static bool cover(struct xs_histogram *times, uint8_t power)
{
	uint8_t first = times->powers && times->first < power ? times->first : power;
	uint8_t last = times->powers && times->first + times->powers - 1 > power
			       ? (uint8_t)(times->first + times->powers - 1)
			       : power;
	size_t bytes = (size_t)(last - first + 1) * CLASSES * sizeof(uint64_t);
	uint64_t *grown = all_bytes < BYTES_MAX ? calloc(1, bytes) : NULL;

	if (!grown)
		return false;
	all_bytes += bytes - times->powers * CLASSES * sizeof(uint64_t);
	if (times->powers)
		memcpy(grown + (size_t)(times->first - first) * CLASSES, times->count,
		       times->powers * CLASSES * sizeof(*grown));
	free(times->count);
	times->count = grown;
	times->first = first;
	times->powers = (uint8_t)(last - first + 1);
	return true;
}

static void note(struct xs_histogram *times, uint64_t ns)
{
	uint8_t power = power_of(ns);
	uint64_t class = power ? (ns >> (power - 1)) - CLASSES : ns;

	if ((uint8_t)(power - times->first) >= times->powers && !cover(times, power))
		return;
	times->count[(size_t)(power - times->first) * CLASSES + class]++;
}

uint64_t xs_table_percentile(const struct xs_table_row *row, double part)
{
	double wanted = part * (double)row->calls;
	uint64_t seen = 0, value = row->high;

	for (size_t i = 0; i < row->times.powers * (size_t)CLASSES; i++) {
		uint8_t power = (uint8_t)(row->times.first + i / CLASSES);
		uint64_t width = power ? 1ull << (power - 1) : 1;

		seen += row->times.count[i];
		if ((double)seen < wanted || !row->times.count[i])
			continue;
		value = (power ? CLASSES + i % CLASSES : i % CLASSES) * width + (width - 1) / 2;
		break;
	}
	return value < row->low ? row->low : value > row->high ? row->high : value;
}

struct xs_table_row *xs_table_add(struct xs_table *table, const struct xs_table_key *key,
				  uint64_t ns)
{
	struct xs_table_row *row = find(table, key);

	if (!row)
		return NULL;
	row->calls++;
	row->total += ns;
	if (ns < row->low)
		row->low = ns;
	if (ns > row->high)
		row->high = ns;
	note(&row->times, ns);
	return row;
}

static int by_total(const void *a, const void *b)
{
	const struct xs_table_row *x = a, *y = b;

	return x->total != y->total    ? (x->total < y->total ? 1 : -1)
	       : x->key.id < y->key.id ? -1
				       : x->key.id > y->key.id;
}

void xs_table_sort(struct xs_table *table)
{
	if (table->count)
		qsort(table->rows, table->count, sizeof(*table->rows), by_total);
	for (uint32_t i = 0; table->size && i < table->size; i++)
		table->index[i] = 0;
	for (uint32_t i = 0; i < table->count; i++)
		*slot_of(table, &table->rows[i].key) = i + 1;
}

void xs_table_fini(struct xs_table *table)
{
	for (uint32_t i = 0; i < table->count; i++) {
		all_bytes -= table->rows[i].times.powers * CLASSES * sizeof(uint64_t);
		free(table->rows[i].times.count);
	}
	free(table->rows);
	free(table->index);
	*table = (struct xs_table){ 0 };
}
