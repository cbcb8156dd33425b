/*
 * The timing reports -h, -d, -s and -r, from what summary.c counted: which rows belong together,
 * their names and sums, and what is printed when.
 */
#include "device_record.h"
#include "timing.h"
#include "names.h"
#include "overhead.h"
#include "text.h"
#include "title.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* of a name in a table of text, bytes: 120 columns in all */
#define NAME_BEGIN  79u
#define NAME_END    40u
#define DEVICE_ROWS 256u /* each row is compared with so many of the largest */

/* ---- rows ---- */

size_t xs_timing_columns(const char *text, size_t length)
{
	size_t columns = 0;

	for (size_t i = 0; i < length; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

int xs_rows_width(const struct xs_process *process, const struct xs_table *table, const char *title)
{
	size_t width = strlen(title);
	char name[XS_ROW_NAME_MAX];

	for (uint32_t i = 0; i < table->count; i++) {
		size_t length = xs_row_name(process, &table->rows[i].key, true, name);
		size_t columns = xs_timing_columns(name, length);

		width = columns > width ? columns : width;
	}
	return (int)width;
}

void xs_row_put_name(const struct xs_process *process, struct xs_report *report,
		     const struct xs_table_row *row, int width)
{
	char name[XS_ROW_NAME_MAX];
	size_t length = xs_row_name(process, &row->key, true, name);

	xs_report_print(report, "%*s%.*s", width - (int)xs_timing_columns(name, length), "",
			(int)length, name);
}

/*
 * Where a backend has a table for each type of device, its calls belong to the type that the
 * process used; without any, or with several, to the backend as such. Device work belongs to the
 * type of its device.
 */
static size_t group_of(const struct xs_summary *summary, const struct xs_table_row *row,
		       bool device)
{
	uint8_t type = row->key.type & 3, source = row->key.source;

	for (uint8_t t = 1; !device && source < XS_SOURCE_COUNT && t < 4; t++)
		if (summary->seen[source][t])
			type = type ? 4 : t;
	return xs_group_of(source, type);
}

bool xs_timing_has(const struct xs_summary *summary, const struct xs_table *table, size_t group,
		   bool device)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (group_of(summary, &table->rows[i], device) == group)
			return true;
	return false;
}

struct xs_timing_sums xs_timing_sums_of(const struct xs_summary *summary,
					const struct xs_table *table, size_t group, bool device)
{
	struct xs_timing_sums sums = { 0 };

	for (uint32_t i = 0; i < table->count; i++) {
		const struct xs_table_row *row = &table->rows[i];

		if (group_of(summary, row, device) != group)
			continue;
		sums.calls += row->calls;
		sums.failed += row->failed;
		sums.total += row->total;
		sums.queued += row->queued;
		sums.submit += row->submit;
	}
	return sums;
}

static char *put_shape(char *o, const struct xs_table_key *key)
{
	const uint64_t *d = key->shape, *l = key->shape + 3;
	uint64_t g[3];

	xs_shown_shape(key->source, d, g);
	if (key->simd)
		o += sprintf(o, "[SIMD%u {%llu; %llu; %llu} ", key->simd, (ull)g[0], (ull)g[1],
			     (ull)g[2]);
	else
		o += sprintf(o, "[{%llu; %llu; %llu} ", (ull)g[0], (ull)g[1], (ull)g[2]);
	return o + sprintf(o, "{%llu; %llu; %llu}]", (ull)l[0], (ull)l[1], (ull)l[2]);
}

/*
 * Names of templates fill screens: of a long one its beginning and its end, which is where names
 * differ.
 */
static char *put_short(char *o, const char *text, size_t length)
{
	size_t from = length > NAME_END ? length - NAME_END : 0;

	if (xs_timing_columns(text, length) <= NAME_BEGIN + 1 + NAME_END)
		return xs_plain(o, text, length);
	while (from < length && ((unsigned char)text[from] & 0xc0) == 0x80)
		from++;
	o = stpcpy(xs_plain(o, text, xs_title_cut(text, length, NAME_BEGIN)), "…");
	return xs_plain(o, text + from, length - from);
}

size_t xs_row_name(const struct xs_process *process, const struct xs_table_key *key, bool quoted,
		   char *out)
{
	struct xs_event event = { .name = key->id, .source = key->source };
	const char *text = "(all others)",
		   *quote = quoted && key->device && xs_backend_of(key->source)->quoted ? "\"" : "";
	size_t length = strlen(text);
	char *o = out;

	if (key->id & XS_NAME_FUNCTION) {
		event.name = key->id & 0xffffff;
		event.flags = XS_DEVICE_FLAG_FUNCTION;
	}
	if (key->id != XS_TABLE_OTHERS)
		text = xs_kernel_text(process->run, &event, &length);
	if (key->tile)
		o += sprintf(o, "Tile #%u: ", key->tile - 1u);
	o += sprintf(o, "%s", quote);
	o = quoted ? put_short(o, text, length) : xs_plain(o, text, length < 4096 ? length : 4096);
	if (key->memory)
		o += sprintf(o, "(%c2%c)", xs_memory_letter(key->source, key->memory >> 4),
			     xs_memory_letter(key->source, key->memory & 15));
	if (key->form == XS_FORM_SHAPE)
		o = put_shape(o, key);
	else if (key->form == XS_FORM_BYTES)
		o += sprintf(o, "[%llu]", (ull)key->shape[0]);
	o += sprintf(o, "%s", quote);
	return (size_t)(o - out);
}

static bool same_but_place(const struct xs_table_key *a, const struct xs_table_key *b)
{
	struct xs_table_key moved = *a;

	moved.place = b->place;
	return a->place != b->place && !memcmp(&moved, b, sizeof(moved));
}

bool xs_timing_needs_device(const struct xs_table *table)
{
	bool several = false;

	for (uint32_t i = 1; i < table->count; i++)
		several |= table->rows[i].key.place != table->rows[0].key.place;
	for (uint32_t i = 0; several && i < table->count; i++)
		for (uint32_t k = 0; k < i && k < DEVICE_ROWS; k++)
			if (same_but_place(&table->rows[i].key, &table->rows[k].key))
				return true;
	return false;
}

const struct xs_table_row *xs_timing_next(const struct xs_timing_view *view, uint32_t *at,
					  char *name, size_t *ret_length)
{
	while (*at < view->table->count) {
		const struct xs_table_row *row = &view->table->rows[(*at)++];
		if (group_of(view->summary, row, view->device) != view->group)
			continue;
		*ret_length = xs_row_name(view->process, &row->key,
					  view->report->format == XS_REPORT_TEXT, name);
		return row;
	}
	return NULL;
}

size_t xs_timing_ccl_name(const struct xs_timing_view *view, const struct xs_table_row *row,
			  char *name)
{
	struct xs_table_key key = { .id = row->key.id };

	return xs_row_name(view->process, &key, view->report->format == XS_REPORT_TEXT, name);
}

uint64_t xs_timing_total(const struct xs_table *table)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < table->count; i++)
		total += table->rows[i].total;
	return total;
}

const struct xs_kernel_record *xs_timing_kernel(const struct xs_summary *summary,
						const struct xs_table_row *row)
{
	const struct xs_kernel_record *kernel =
		row->kernel < summary->kernel_room ? &summary->kernels[row->kernel] : NULL;

	return kernel && kernel->id ? kernel : NULL;
}

const char *xs_timing_compiled(const struct xs_kernel_record *kernel)
{
	return kernel->compiled == 1 ? "JIT" : kernel->compiled == 2 ? "AOT" : "unknown";
}

/* ---- what xstrace itself cost ---- */

double xs_timing_record_ns(const struct xs_run *run, size_t group)
{
	return xs_overhead_cost(run, xs_group_backend(group)->cost).ns;
}
