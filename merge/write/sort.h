/*
 * Records of any size in the order of their keys, more of them than there is memory for: sorted
 * pieces go to a temporary file that has no name, and are merged when they are read.
 */
#ifndef XM_SORT_H
#define XM_SORT_H

#include <stdint.h>

struct xm_key_of_record {
	uint32_t track, kind;
	/*
	 * earlier starts first; of one start the later end first; then by kind, then as they came
	 */
	int64_t start, end;
};

struct xm_record {
	struct xm_key_of_record key;
	uint32_t length;
	const char *data;
};

struct xm_sort;

/* fd: an empty file for what does not fit into memory; taken over. NULL: no memory. */
struct xm_sort *xm_sort_create(int fd);
/* 0 or -errno. */
int xm_sort_add(struct xm_sort *sort, const struct xm_key_of_record *key, const char *data,
		uint32_t length);
/* Ends the adding. 0 or -errno. */
int xm_sort_start(struct xm_sort *sort);
/* The next record, valid until the next call. 1, 0: no more, -errno. */
int xm_sort_next(struct xm_sort *sort, struct xm_record *ret);
void xm_sort_free(struct xm_sort *sort);

#endif
