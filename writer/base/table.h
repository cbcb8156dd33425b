/*
 * What reports count: a row for each name (and shape, size, …), found by its key, with the
 * distribution of its times.
 *
 * Memory depends on the number of different keys alone, and is bounded: from XS_TABLE_ROWS rows on,
 * what is new is counted in one row for all others. Totals stay right.
 */
#ifndef XS_TABLE_H
#define XS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define XS_TABLE_ROWS	65536u
#define XS_TABLE_OTHERS 0xffffffffu /* in place of an id */

/* All bytes count, unused ones must be 0. */
struct xs_table_key {
	uint32_t id;	      /* name key as for xs_text_of(), or XS_TABLE_OTHERS */
	uint8_t source, type; /* enum xs_source, enum xs_device_type */
	uint8_t tile, memory, simd;
	uint8_t form;	/* of what follows: enum xs_form */
	uint8_t device; /* 1: of work on a device */
	uint8_t place;	/* of device work: the device's number + 1 */
	uint64_t shape[6];
};

enum xs_form { XS_FORM_PLAIN, XS_FORM_SHAPE, XS_FORM_BYTES /* shape[0] */ };

/*
 * A log-linear histogram: 16 classes for each power of two, so what it says is off by at most 1/32
 * of the value (below 16 ns it is exact). It covers the powers that came.
 */
struct xs_histogram {
	uint64_t *count;
	uint8_t first, powers;
};

struct xs_table_row {
	struct xs_table_key key;
	uint64_t calls, failed, total, low, high;
	uint64_t queued, submit; /* device work: sums */
	/* parallel regions: sums over threads, threads times the longest work; the most threads */
	uint64_t work, waited, late, longest, threads;
	uint32_t kernel; /* id of an XS_KERNEL record; 0: none */
	struct xs_histogram times;
};

struct xs_table {
	struct xs_table_row *rows;
	uint32_t *index; /* number of the row + 1; 0: free */
	uint32_t count, room, size;
};

/* Counts one; returns its row, for what else is to be noted, or NULL: no memory. */
struct xs_table_row *xs_table_add(struct xs_table *table, const struct xs_table_key *key,
				  uint64_t ns);
/* The time that this part (0 … 1) of all took at most. */
uint64_t xs_table_percentile(const struct xs_table_row *row, double part);
/* The largest total first. */
void xs_table_sort(struct xs_table *table);
void xs_table_fini(struct xs_table *table);

#endif
