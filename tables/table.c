#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chunk.h"
#include "pool.h"

#define MANY_BYTES (16u << 20) /* of texts: the group ends early */

/* A row group in the footer. */
struct meta {
	uint32_t rows;
	struct xt_chunk *chunks;
};

/* The rows that are put together, or wait to be encoded. */
struct batch {
	struct xt_job job;
	struct xt_table *table;
	struct batch *next;
	struct meta *meta;
	uint32_t rows;
	size_t bytes; /* of texts */
	struct xt_values *values;
	uint8_t *given; /* of the row: whether a column has its value */
};

/* A late column of a group. */
struct xt_group {
	struct xt_job job;
	struct xt_table *table;
	struct meta *meta;
	int64_t *words;
	uint32_t rows, open;
	bool is_full;
};

struct xt_table {
	struct xt_pool *pool;
	int fd;
	const struct xt_column *columns;
	unsigned count;
	unsigned late; /* column; `count`: none */
	pthread_mutex_t lock;
	struct batch *batch, *free;
	struct xt_group *group;
	int64_t end; /* of the file */
	int error;
	uint64_t rows;
	struct meta **metas;
	uint32_t meta_count, meta_room;
	/* of each column: where a number of `names` is in the group's dictionary, and of which */
	struct known {
		struct place {
			uint32_t group, place;
		} *places;
		uint32_t room;
	} *known;
	char *text; /* a text without escapes */
	size_t text_room;
};

static void fail(struct xt_table *table, int error)
{
	pthread_mutex_lock(&table->lock);
	table->error = table->error ? table->error : error;
	pthread_mutex_unlock(&table->lock);
}

static void write_at(struct xt_table *table, const char *data, size_t length, int64_t at)
{
	while (length) {
		ssize_t n = pwrite(table->fd, data, length, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			fail(table, n < 0 ? -errno : -ENOSPC);
			return;
		}
		data += n;
		length -= (size_t)n;
		at += n;
	}
}

static int64_t reserve(struct xt_table *table, size_t length)
{
	int64_t at;

	pthread_mutex_lock(&table->lock);
	at = table->end;
	table->end += (int64_t)length;
	pthread_mutex_unlock(&table->lock);
	return at;
}

/* By any thread. */
static void write_column(struct xt_table *table, const struct xt_values *values,
			 struct xt_chunk *chunk)
{
	struct xf_proto out = { 0 }, page = { 0 };

	if (xt_chunk_encode(&out, &page, values, chunk)) {
		int64_t at = reserve(table, out.length);

		chunk->at += at;
		if (chunk->dictionary_at >= 0)
			chunk->dictionary_at += at;
		write_at(table, out.data, out.length, at);
	} else {
		fail(table, -ENOMEM);
	}
	free(out.data);
	free(page.data);
}

/* ---- groups ---- */

static void clear_values(struct xt_values *values)
{
	values->rows = values->count = 0;
	values->text.length = 0;
	if (values->dictionary.count)
		xf_map_free(&values->dictionary);
	xf_map_init(&values->dictionary, XT_GROUP, UINT32_MAX);
}

static void free_batch(struct batch *batch, unsigned count)
{
	for (unsigned i = 0; batch && batch->values && i < count; i++) {
		struct xt_values *values = &batch->values[i];

		free(values->defined);
		free(values->words);
		free(values->small);
		free(values->text.data);
		xf_map_free(&values->dictionary);
	}
	if (batch) {
		free(batch->values);
		free(batch->given);
	}
	free(batch);
}

static struct batch *new_batch(struct xt_table *table)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	bool ok = batch;

	if (ok) {
		batch->table = table;
		batch->values = calloc(table->count, sizeof(*batch->values));
		batch->given = calloc(table->count, 1);
		ok = batch->values && batch->given;
	}
	for (unsigned i = 0; ok && i < table->count; i++) {
		const struct xt_column *column = &table->columns[i];
		struct xt_values *values = &batch->values[i];
		bool is_small = column->type == XT_FLAG || column->type == XT_NAME;

		values->type = column->type;
		values->may_be_empty = column->may_be_empty;
		if (column->may_be_empty)
			values->defined = malloc(XT_GROUP * sizeof(*values->defined));
		if (is_small)
			values->small = malloc(XT_GROUP * sizeof(*values->small));
		else if (column->type != XT_TEXT && !column->late)
			values->words = malloc(XT_GROUP * sizeof(*values->words));
		ok = (!column->may_be_empty || values->defined) &&
		     (values->small || values->words || column->type == XT_TEXT || column->late);
		clear_values(values);
	}
	if (ok)
		return batch;
	free_batch(batch, table->count);
	return NULL;
}

static struct xt_group *new_group(struct xt_table *table)
{
	struct xt_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->table = table;
	group->words = malloc(XT_GROUP * sizeof(*group->words));
	if (group->words)
		return group;
	free(group);
	return NULL;
}

static void write_batch(struct xt_job *job)
{
	struct batch *batch = (struct batch *)job;
	struct xt_table *table = batch->table;

	for (unsigned i = 0; i < table->count; i++) {
		if (!table->columns[i].late)
			write_column(table, &batch->values[i], &batch->meta->chunks[i]);
		clear_values(&batch->values[i]);
	}
	batch->rows = 0;
	batch->bytes = 0;
	pthread_mutex_lock(&table->lock);
	batch->next = table->free;
	table->free = batch;
	pthread_mutex_unlock(&table->lock);
}

static void write_late(struct xt_job *job)
{
	struct xt_group *group = (struct xt_group *)job;
	struct xt_table *table = group->table;
	struct xt_values values = {
		.type = XT_INT, .rows = group->rows, .count = group->rows, .words = group->words
	};

	write_column(table, &values, &group->meta->chunks[table->late]);
	free(group->words);
	free(group);
}

static struct meta *new_meta(struct xt_table *table, uint32_t rows)
{
	struct meta *meta = malloc(sizeof(*meta));

	if (!meta || !xf_room_for(&table->metas, &table->meta_room, table->meta_count,
				  sizeof(*table->metas))) {
		free(meta);
		return NULL;
	}
	meta->rows = rows;
	meta->chunks = calloc(table->count, sizeof(*meta->chunks));
	if (!meta->chunks) {
		free(meta);
		return NULL;
	}
	table->metas[table->meta_count++] = meta;
	return meta;
}

static void end_group(struct xt_group *group, struct meta *meta, uint32_t rows)
{
	group->meta = meta;
	group->rows = rows;
	group->is_full = true;
	group->job.run = write_late;
	if (!group->open)
		xt_pool_add(group->table->pool, &group->job);
}

/* The rows go to the pool. */
static void end_batch(struct xt_table *table)
{
	struct batch *batch = table->batch;
	struct meta *meta = new_meta(table, batch->rows);

	if (!meta) { /* the table is worth nothing then: its rows are given up */
		fail(table, -ENOMEM);
		for (unsigned i = 0; i < table->count; i++)
			clear_values(&batch->values[i]);
		batch->rows = 0;
		return;
	}
	batch->meta = meta;
	batch->job = (struct xt_job){ .run = write_batch, .is_heavy = true };
	if (table->group)
		end_group(table->group, meta, batch->rows);
	table->batch = NULL;
	table->group = NULL;
	xt_pool_add(table->pool, &batch->job);
}

/* The group that rows are put into; NULL: no memory, which the table remembers. */
static struct batch *batch_of(struct xt_table *table)
{
	if (__builtin_expect(table->batch != NULL, 1))
		return table->batch;
	pthread_mutex_lock(&table->lock);
	table->batch = table->free;
	if (table->batch)
		table->free = table->batch->next;
	pthread_mutex_unlock(&table->lock);
	if (!table->batch)
		table->batch = new_batch(table);
	if (table->batch && table->late < table->count && !table->group) {
		table->group = new_group(table);
		if (!table->group) {
			free_batch(table->batch, table->count);
			table->batch = NULL;
		}
	}
	if (!table->batch)
		fail(table, -ENOMEM);
	return table->batch;
}

/* ---- values ---- */

/* The column of the row, which gets a value. */
static struct xt_values *values_of(struct xt_table *table, unsigned column)
{
	struct batch *batch = batch_of(table);
	struct xt_values *values = batch ? &batch->values[column] : NULL;

	if (!batch || batch->given[column])
		return NULL;
	batch->given[column] = true;
	if (values->may_be_empty)
		values->defined[batch->rows] = 1;
	return values;
}

void xt_put_int(struct xt_table *table, unsigned column, int64_t value)
{
	struct xt_values *values = values_of(table, column);

	if (values)
		values->words[values->count++] = value;
}

void xt_put_flag(struct xt_table *table, unsigned column, bool value)
{
	struct xt_values *values = values_of(table, column);

	if (values)
		values->small[values->count++] = value;
}

void xt_put_double(struct xt_table *table, unsigned column, double value)
{
	int64_t word;

	memcpy(&word, &value, 8);
	xt_put_int(table, column, word);
}

static uint32_t place_of(struct xt_table *table, struct xt_values *values, const char *text,
			 size_t length)
{
	uint32_t before = values->dictionary.count,
		 place = xf_map_add(&values->dictionary, text, length);

	if (place == XF_NONE) {
		fail(table, -ENOMEM);
		return 0;
	}
	if (place == before)
		table->batch->bytes += length;
	return place;
}

void xt_put_text(struct xt_table *table, unsigned column, const char *text, size_t length)
{
	struct xt_values *values = values_of(table, column);
	uint32_t n = (uint32_t)length;

	if (!values)
		return;
	if (values->type == XT_NAME) {
		values->small[values->count++] = place_of(table, values, text, length);
		return;
	}
	xf_proto_raw(&values->text, &n, 4);
	xf_proto_raw(&values->text, text, length);
	table->batch->bytes += length;
	values->count++;
}

/* The characters of a string of JSON. */
static struct xf_text unescaped(struct xt_table *table, struct xf_text string)
{
	if (table->text_room < string.n + 1) {
		char *grown = realloc(table->text, 2 * string.n + 256);

		if (!grown) {
			fail(table, -ENOMEM);
			return (struct xf_text){ "", 0 };
		}
		table->text = grown;
		table->text_room = 2 * string.n + 256;
	}
	return (struct xf_text){ table->text, xf_unescape(string, table->text, table->text_room) };
}

void xt_put_string(struct xt_table *table, unsigned column, struct xf_text string)
{
	struct xf_text text = string;

	if (xf_is_string(string)) {
		if (memchr(string.p, '\\', string.n))
			text = unescaped(table, string);
		else
			text = xf_inside(string);
	}
	xt_put_text(table, column, text.n ? text.p : "", text.n);
}

void xt_put_name(struct xt_table *table, unsigned column, const struct xt_names *names,
		 uint32_t number)
{
	struct known *known = &table->known[column];
	struct batch *batch = batch_of(table);
	struct xt_values *values;
	struct place *place;

	if (!batch || !xf_room_for(&known->places, &known->room, number, sizeof(*known->places))) {
		fail(table, -ENOMEM);
		return;
	}
	place = &known->places[number];
	values = &batch->values[column];
	if (place->group == table->meta_count + 1) {
		values = values_of(table, column);
		if (values)
			values->small[values->count++] = place->place;
		return;
	}
	xt_put_string(table, column, xt_name(names, number));
	place->group = table->meta_count + 1;
	place->place = values->count ? values->small[values->count - 1] : 0;
}

void xt_table_row(struct xt_table *table)
{
	struct batch *batch = batch_of(table);

	if (!batch)
		return;
	for (unsigned i = 0; i < table->count; i++) {
		struct xt_values *values = &batch->values[i];

		values->rows++;
		if (values->may_be_empty && !batch->given[i])
			values->defined[batch->rows] = 0;
		batch->given[i] = false;
	}
	table->rows++;
	if (++batch->rows == XT_GROUP || batch->bytes >= MANY_BYTES)
		end_batch(table);
}

struct xt_late xt_promise(struct xt_table *table)
{
	struct batch *batch = batch_of(table);
	struct xt_late late = { table->group, batch ? batch->rows : 0 };

	if (!batch)
		return (struct xt_late){ NULL, 0 };
	late.group->open++;
	late.group->words[late.row] = 0;
	return late;
}

void xt_settle(struct xt_late late, int64_t value)
{
	struct xt_group *group = late.group;

	if (!group)
		return;
	group->words[late.row] = value;
	if (!--group->open && group->is_full)
		xt_pool_add(group->table->pool, &group->job);
}

/* ---- the file ---- */

struct xt_table *xt_table_create(struct xt_pool *pool, int directory, const char *name,
				 const struct xt_column *columns, unsigned count)
{
	struct xt_table *table = calloc(1, sizeof(*table));
	char path[64];

	if (!table)
		return NULL;
	table->pool = pool;
	table->columns = columns;
	table->count = table->late = count;
	for (unsigned i = 0; i < count; i++)
		if (columns[i].late)
			table->late = i;
	pthread_mutex_init(&table->lock, NULL);
	(void)snprintf(path, sizeof(path), "%s.parquet", name);
	table->known = calloc(count, sizeof(*table->known));
	table->fd = table->known
			    ? openat(directory, path,
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)
			    : -1;
	if (table->fd < 0) {
		free(table->known);
		free(table);
		return NULL;
	}
	write_at(table, "PAR1", 4, 0);
	table->end = 4;
	return table;
}

static void put_groups(struct xt_table *table, struct xt_thrift *t)
{
	struct xf_proto *out = t->out;

	xt_list(t, 4, XT_STRUCT, table->meta_count);
	for (uint32_t i = 0; i < table->meta_count; i++) {
		const struct meta *meta = table->metas[i];
		struct xt_thrift group = { out, 0 };
		int64_t bytes = 0;

		xt_list(&group, 1, XT_STRUCT, table->count);
		for (unsigned k = 0; k < table->count; k++) {
			xt_chunk_describe(out, &table->columns[k], &meta->chunks[k]);
			bytes += meta->chunks[k].plain;
		}
		xt_i64(&group, 2, bytes);
		xt_i64(&group, 3, meta->rows);
		xt_stop(&group);
	}
}

static void write_footer(struct xt_table *table)
{
	struct xf_proto out = { 0 };
	struct xt_thrift t = { &out, 0 };
	uint32_t length;

	xt_i32(&t, 1, 2);
	xt_list(&t, 2, XT_STRUCT, table->count + 1);
	xt_schema_describe(&out, table->columns, table->count);
	xt_i64(&t, 3, (int64_t)table->rows);
	put_groups(table, &t);
	xt_binary(&t, 6, "xstrace", 7);
	xt_list(&t, 7, XT_STRUCT, table->count);
	for (unsigned i = 0; i < table->count; i++) {
		struct xt_thrift order = { &out, 0 }, by_type = xt_nested(&order, 1);

		xt_stop(&by_type);
		xt_stop(&order);
	}
	xt_stop(&t);
	length = (uint32_t)out.length;
	xf_proto_raw(&out, &length, 4);
	xf_proto_raw(&out, "PAR1", 4);
	if (out.failed)
		fail(table, -ENOMEM);
	else
		write_at(table, out.data, out.length, table->end);
	free(out.data);
}

uint64_t xt_table_rows(const struct xt_table *table)
{
	return table->rows;
}

static void free_table(struct xt_table *table)
{
	free_batch(table->batch, table->count);
	while (table->free) {
		struct batch *batch = table->free;

		table->free = batch->next;
		free_batch(batch, table->count);
	}
	if (table->group)
		free(table->group->words);
	free(table->group);
	for (uint32_t i = 0; i < table->meta_count; i++) {
		free(table->metas[i]->chunks);
		free(table->metas[i]);
	}
	for (unsigned i = 0; i < table->count; i++)
		free(table->known[i].places);
	free(table->metas);
	free(table->known);
	free(table->text);
	free(table);
}

int xt_table_close(struct xt_table *table)
{
	int error;

	if (table->batch && table->batch->rows)
		end_batch(table);
	xt_pool_wait(table->pool);
	write_footer(table);
	if (close(table->fd) < 0)
		fail(table, -errno);
	error = table->error;
	free_table(table);
	return error;
}
