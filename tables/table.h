/*
 * A table of the output: rows are put together in groups, each of which is encoded and written as
 * a row group of a Parquet file by one of the pool's threads.
 *
 * Values of a row are given column by column, in any order, and xt_table_row() ends the row. A
 * column that may be empty and was not given is NULL; any other column must be given.
 */
#ifndef XT_TABLE_H
#define XT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"

#define XT_GROUP 122880u /* rows: what DuckDB scans as one */

enum xt_type {
	XT_INT,	 /* 64 bits */
	XT_FLAG, /* true or false */
	XT_DOUBLE,
	XT_NAME, /* a text that comes often: each group has a dictionary of them */
	XT_TEXT, /* a text that is mostly different in each row */
};

struct xt_column {
	const char *name;
	enum xt_type type;
	bool may_be_empty;
	bool late; /* XT_INT: values are given after their row, by xt_settle() */
};

struct xt_pool;
struct xt_table;
struct xt_group;

/* Creates the file `name`.parquet in the directory. NULL: errno says why. */
struct xt_table *xt_table_create(struct xt_pool *pool, int directory, const char *name,
				 const struct xt_column *columns, unsigned count);
/*
 * Ends the file; what was promised is settled by then. 0, or -errno of whatever failed since it was
 * created.
 */
int xt_table_close(struct xt_table *table);
uint64_t xt_table_rows(const struct xt_table *table);

void xt_put_int(struct xt_table *table, unsigned column, int64_t value);
void xt_put_flag(struct xt_table *table, unsigned column, bool value);
void xt_put_double(struct xt_table *table, unsigned column, double value);
/* Text in UTF-8; of a column of either kind. */
void xt_put_text(struct xt_table *table, unsigned column, const char *text, size_t length);
/* A value of JSON: of a string its characters, of anything else what stands there. */
void xt_put_string(struct xt_table *table, unsigned column, struct xf_text string);
/* Of a column XT_NAME: the text that `names` has by this number. */
void xt_put_name(struct xt_table *table, unsigned column, const struct xt_names *names,
		 uint32_t number);
void xt_table_row(struct xt_table *table);

/* Where the late value of the row that is being put together will be given. */
struct xt_late {
	struct xt_group *group;
	uint32_t row;
};
struct xt_late xt_promise(struct xt_table *table);
void xt_settle(struct xt_late late, int64_t value);

#endif
