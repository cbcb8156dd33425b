#include "chunk.h"

#include "encode.h"

#include <string.h>

#ifdef XS_HAVE_ZSTD
#include <zstd.h>
#endif

enum { TYPE_BOOLEAN = 0, TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTE_ARRAY = 6 };
enum { PLAIN = 0, RLE = 3, DELTA = 5, RLE_DICTIONARY = 8 };
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };
enum { UNCOMPRESSED = 0, ZSTD = 6 };
#define LEVEL 1

static const uint8_t types[] = { [XT_INT] = TYPE_INT64,
				 [XT_FLAG] = TYPE_BOOLEAN,
				 [XT_DOUBLE] = TYPE_DOUBLE,
				 [XT_NAME] = TYPE_BYTE_ARRAY,
				 [XT_TEXT] = TYPE_BYTE_ARRAY };
static const uint8_t encodings[] = { [XT_INT] = DELTA,
				     [XT_FLAG] = PLAIN,
				     [XT_DOUBLE] = PLAIN,
				     [XT_NAME] = RLE_DICTIONARY,
				     [XT_TEXT] = PLAIN };

static int codec_of(enum xt_type type)
{
#ifdef XS_HAVE_ZSTD
	return type == XT_INT ? UNCOMPRESSED : ZSTD; /* packed integers have little to give */
#else
	return (void)type, UNCOMPRESSED;
#endif
}

/* The page's bytes as they stand in the file; *ret_n of them. NULL: no memory. */
static const char *compressed(struct xf_proto *page, struct xf_proto *packed, enum xt_type type,
			      size_t *ret_n)
{
	*ret_n = page->length;
	if (page->failed || codec_of(type) == UNCOMPRESSED)
		return page->failed ? NULL : page->data;
#ifdef XS_HAVE_ZSTD
	packed->length = 0;
	if (!xf_proto_room(packed, ZSTD_compressBound(page->length)))
		return NULL;
	*ret_n = ZSTD_compress(packed->data, packed->room, page->data, page->length, LEVEL);
	return ZSTD_isError(*ret_n) ? NULL : packed->data;
#else
	return (void)packed, NULL;
#endif
}

static bool put_page(struct xf_proto *out, struct xf_proto *page, struct xt_chunk *chunk,
		     enum xt_type type, int kind, uint32_t count)
{
	struct xt_thrift head = { out, 0 }, inner;
	struct xf_proto packed = { 0 };
	size_t n, before = out->length;
	const char *data = compressed(page, &packed, type, &n);

	if (data && page->length <= INT32_MAX && n <= INT32_MAX) {
		xt_i32(&head, 1, kind);
		xt_i32(&head, 2, (int32_t)page->length);
		xt_i32(&head, 3, (int32_t)n);
		inner = xt_nested(&head, kind == DATA_PAGE ? 5 : 7);
		xt_i32(&inner, 1, (int32_t)count);
		xt_i32(&inner, 2, kind == DATA_PAGE ? encodings[type] : PLAIN);
		if (kind == DATA_PAGE) {
			xt_i32(&inner, 3, RLE);
			xt_i32(&inner, 4, RLE);
		}
		xt_stop(&inner);
		xt_stop(&head);
		chunk->plain += (int64_t)(out->length - before + page->length);
		xf_proto_raw(out, data, n);
		chunk->packed += (int64_t)(out->length - before);
	} else {
		out->failed = true;
	}
	free(packed.data);
	return !out->failed;
}

/* ---- bounds ---- */

static void bound_words(struct xt_chunk *chunk, const struct xt_values *values)
{
	int64_t low = INT64_MAX, high = INT64_MIN;

	for (uint32_t i = 0; i < values->count; i++) {
		low = values->words[i] < low ? values->words[i] : low;
		high = values->words[i] > high ? values->words[i] : high;
	}
	chunk->has_bounds = values->count;
	chunk->low_length = chunk->high_length = 8;
	memcpy(chunk->low, &low, 8);
	memcpy(chunk->high, &high, 8);
}

static int in_order(const char *a, size_t n, const char *b, size_t m)
{
	int bytes = memcmp(a, b, n < m ? n : m);

	return bytes ? bytes : (n > m) - (n < m);
}

static void bound_names(struct xt_chunk *chunk, const struct xf_map *dictionary)
{
	const char *low = NULL, *high = NULL;
	size_t low_length = 0, high_length = 0, n;

	for (uint32_t i = 0; i < dictionary->count; i++) {
		const char *text = xf_map_key(dictionary, i, &n);

		if (!low || in_order(text, n, low, low_length) < 0) {
			low = text;
			low_length = n;
		}
		if (!high || in_order(text, n, high, high_length) > 0) {
			high = text;
			high_length = n;
		}
	}
	chunk->has_bounds = low && low_length <= XT_BOUND && high_length <= XT_BOUND;
	if (!chunk->has_bounds)
		return;
	memcpy(chunk->low, low, low_length);
	memcpy(chunk->high, high, high_length);
	chunk->low_length = (uint32_t)low_length;
	chunk->high_length = (uint32_t)high_length;
}

/* ---- pages ---- */

static void put_bits(struct xf_proto *page, const uint32_t *flags, uint32_t count)
{
	for (uint32_t i = 0; i < count; i += 8) {
		unsigned byte = 0;

		for (uint32_t k = i; k < count && k < i + 8; k++)
			byte |= flags[k] << (k - i);
		xt_byte(page, byte);
	}
}

static void put_values(struct xf_proto *page, const struct xt_values *values)
{
	unsigned width;

	switch (values->type) {
	case XT_INT:
		xt_encode_delta(page, values->words, values->count);
		break;
	case XT_DOUBLE:
		xf_proto_raw(page, values->words, 8 * (size_t)values->count);
		break;
	case XT_FLAG:
		put_bits(page, values->small, values->count);
		break;
	case XT_TEXT:
		xf_proto_raw(page, values->text.data, values->text.length);
		break;
	case XT_NAME:
		width = xt_width(values->dictionary.count ? values->dictionary.count - 1 : 0);
		xt_byte(page, width);
		xt_encode_hybrid(page, values->small, values->count, width);
	}
}

static bool put_dictionary(struct xf_proto *out, struct xf_proto *page,
			   const struct xt_values *values, struct xt_chunk *chunk)
{
	const struct xf_map *dictionary = &values->dictionary;

	for (uint32_t i = 0; i < dictionary->count; i++) {
		size_t n;
		const void *text = xf_map_key(dictionary, i, &n);
		uint32_t length = (uint32_t)n;

		xf_proto_raw(page, &length, 4);
		xf_proto_raw(page, text, n);
	}
	chunk->dictionary_at = (int64_t)out->length;
	return put_page(out, page, chunk, values->type, DICTIONARY_PAGE, dictionary->count);
}

bool xt_chunk_encode(struct xf_proto *out, struct xf_proto *page, const struct xt_values *values,
		     struct xt_chunk *chunk)
{
	memset(chunk, 0, sizeof(*chunk));
	out->length = page->length = 0;
	chunk->dictionary_at = -1;
	chunk->rows = values->rows;
	chunk->nulls = values->rows - values->count;
	if (values->type == XT_INT)
		bound_words(chunk, values);
	if (values->type == XT_NAME) {
		bound_names(chunk, &values->dictionary);
		if (!put_dictionary(out, page, values, chunk))
			return false;
		page->length = 0;
	}
	chunk->at = (int64_t)out->length;
	if (values->may_be_empty) {
		uint32_t length;

		xf_proto_raw(page, &(uint32_t){ 0 }, 4);
		xt_encode_hybrid(page, values->defined, values->rows, 1);
		if (page->failed)
			return false;
		length = (uint32_t)page->length - 4;
		memcpy(page->data, &length, 4);
	}
	put_values(page, values);
	return put_page(out, page, chunk, values->type, DATA_PAGE, values->rows);
}

/* ---- the footer ---- */

static void put_statistics(struct xt_thrift *data, const struct xt_chunk *chunk)
{
	struct xt_thrift t = xt_nested(data, 12);

	xt_i64(&t, 3, chunk->nulls);
	if (chunk->has_bounds) {
		xt_binary(&t, 5, chunk->high, chunk->high_length);
		xt_binary(&t, 6, chunk->low, chunk->low_length);
	}
	xt_stop(&t);
}

void xt_chunk_describe(struct xf_proto *out, const struct xt_column *column,
		       const struct xt_chunk *chunk)
{
	struct xt_thrift t = { out, 0 }, data;
	bool has_dictionary = chunk->dictionary_at >= 0;

	xt_i64(&t, 2, has_dictionary ? chunk->dictionary_at : chunk->at);
	data = xt_nested(&t, 3);
	xt_i32(&data, 1, types[column->type]);
	xt_list(&data, 2, XT_I32, has_dictionary ? 3 : 2);
	xt_zigzag(out, encodings[column->type]);
	xt_zigzag(out, RLE);
	if (has_dictionary)
		xt_zigzag(out, PLAIN);
	xt_list(&data, 3, XT_BINARY, 1);
	xf_proto_varint(out, strlen(column->name));
	xf_proto_raw(out, column->name, strlen(column->name));
	xt_i32(&data, 4, codec_of(column->type));
	xt_i64(&data, 5, chunk->rows);
	xt_i64(&data, 6, chunk->plain);
	xt_i64(&data, 7, chunk->packed);
	xt_i64(&data, 9, chunk->at);
	if (has_dictionary)
		xt_i64(&data, 11, chunk->dictionary_at);
	put_statistics(&data, chunk);
	xt_stop(&data);
	xt_stop(&t);
}

void xt_schema_describe(struct xf_proto *out, const struct xt_column *columns, unsigned count)
{
	struct xt_thrift root = { out, 0 };

	xt_binary(&root, 4, "schema", 6);
	xt_i32(&root, 5, (int32_t)count);
	xt_stop(&root);
	for (unsigned i = 0; i < count; i++) {
		struct xt_thrift t = { out, 0 }, logical, string;

		xt_i32(&t, 1, types[columns[i].type]);
		xt_i32(&t, 3, columns[i].may_be_empty);
		xt_binary(&t, 4, columns[i].name, strlen(columns[i].name));
		if (columns[i].type == XT_NAME || columns[i].type == XT_TEXT) {
			xt_i32(&t, 6, 0); /* UTF8 */
			logical = xt_nested(&t, 10);
			string = xt_nested(&logical, 1);
			xt_stop(&string);
			xt_stop(&logical);
		}
		xt_stop(&t);
	}
}
