/*
 * A column of a row group, as it is written: pages, and what the footer says of them
 * (github.com/apache/parquet-format, parquet.thrift).
 */
#ifndef XT_CHUNK_H
#define XT_CHUNK_H

#include "table.h"
#include "thrift.h"

#define XT_BOUND \
	64u /* bytes of a text that bounds a column; it has no bounds where one is longer */

/* The values of a column, of `rows` rows. */
struct xt_values {
	enum xt_type type;
	bool may_be_empty;
	uint32_t rows, count; /* count: those that are not NULL */
	uint32_t *defined;    /* of each row: 0 or 1 */
	int64_t *words;	      /* XT_INT, and XT_DOUBLE by its bits */
	uint32_t *small;      /* XT_FLAG: 0 or 1; XT_NAME: number in `dictionary` */
	struct xf_map dictionary;
	struct xf_proto text; /* XT_TEXT: lengths (4 bytes) and bytes */
};

/* What is known of a chunk that was written. */
struct xt_chunk {
	int64_t at, dictionary_at; /* of pages, in the file; dictionary_at: -1: none */
	int64_t plain, packed;	   /* bytes */
	uint32_t rows, nulls;
	bool has_bounds;
	uint32_t low_length, high_length;
	char low[XT_BOUND], high[XT_BOUND];
};

/*
 * Puts the pages into `out`. `at` of the chunk is as if they began at 0. `scratch` is a buffer that
 * is used again. False: no memory.
 */
bool xt_chunk_encode(struct xf_proto *out, struct xf_proto *scratch, const struct xt_values *values,
		     struct xt_chunk *chunk);
/* A ColumnChunk of the footer, as an element of a list. */
void xt_chunk_describe(struct xf_proto *out, const struct xt_column *column,
		       const struct xt_chunk *chunk);
/* The schema: an element for each column, behind the root's. */
void xt_schema_describe(struct xf_proto *out, const struct xt_column *columns, unsigned count);

#endif
