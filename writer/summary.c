/*
 * The text sink: the host, device and oneCCL timing tables (-h, -d, -r), with unitrace's titles and columns.
 *
 * Counted as records come, so memory depends on the number of different names and not on the number of events.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "writer.h"

struct row {
	uint32_t id;      /* name key; 0: free */
	uint64_t shape[6];
	uint8_t type;     /* enum xs_device_type */
	bool shaped;
	uint64_t calls, total, low, high;
};

struct table {
	struct row *rows;
	uint32_t size, count;
};

struct xs_summary {
	struct table host, device, ccl;
	bool seen[4]; /* device types */
};

struct xs_summary *xs_summary_open(void)
{
	return calloc(1, sizeof(struct xs_summary));
}

static bool same(const struct row *a, const struct row *b)
{
	return a->id == b->id && a->type == b->type && a->shaped == b->shaped &&
	       (!a->shaped || !memcmp(a->shape, b->shape, sizeof(a->shape)));
}

static uint32_t hash(const struct row *key)
{
	uint64_t h = key->id * 0x9e3779b97f4a7c15ull + key->type;

	for (int i = 0; key->shaped && i < 6; i++)
		h = (h ^ key->shape[i]) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(h >> 32);
}

static struct row *find(struct table *table, const struct row *key)
{
	uint32_t at = hash(key);

	for (; table->size && table->rows[at % table->size].id; at++)
		if (same(&table->rows[at % table->size], key))
			return &table->rows[at % table->size];
	if (2 * (table->count + 1) > table->size) {
		struct table grown = { .size = table->size ? 2 * table->size : 64, .count = table->count };

		grown.rows = calloc(grown.size, sizeof(*grown.rows));
		if (!grown.rows)
			return NULL;
		for (uint32_t i = 0; i < table->size; i++) {
			if (!table->rows[i].id)
				continue;
			for (at = hash(&table->rows[i]); grown.rows[at % grown.size].id; at++)
				;
			grown.rows[at % grown.size] = table->rows[i];
		}
		free(table->rows);
		*table = grown;
	}
	for (at = hash(key); table->rows[at % table->size].id; at++)
		;
	table->count++;
	table->rows[at % table->size] = *key;
	table->rows[at % table->size].low = UINT64_MAX;
	return &table->rows[at % table->size];
}

static void add(struct table *table, const struct row *key, uint64_t ns)
{
	struct row *row = find(table, key);

	if (!row)
		return;
	row->calls++;
	row->total += ns;
	if (ns < row->low)
		row->low = ns;
	if (ns > row->high)
		row->high = ns;
}

void xs_summary_call(struct xs_summary *summary, const struct xs_call_record *call, uint64_t duration)
{
	struct row key = { .id = xs_function_id(call->event.source, call->event.name) };

	add(&summary->host, &key, duration);
}

void xs_summary_device(struct xs_process *process, const struct xs_work *work)
{
	const struct xs_device_record *record = work->record;
	struct row key = { .type = record->device_type & 3 };

	key.id = record->event.flags & XS_FLAG_FUNCTION ? xs_function_id(record->event.source, record->event.name)
							: record->event.name;
	if (!key.id)
		return;
	if (work->shape && process->run->options->verbose) {
		key.shaped = true;
		memcpy(key.shape, work->shape, sizeof(key.shape));
	}
	process->summary->seen[key.type] = true;
	add(&process->summary->device, &key, work->end - work->start);
}

/* The task's send_size, as its JSON arguments have it (chrome_itt.c); the first one if it was given more than once. */
static bool size_of_message(const struct xs_open *task, uint64_t *ret_size)
{
	static const char key[] = "\"send_size\":[";
	const struct xs_extra *extra = task->extra;
	const char *found, *stop;

	found = extra && extra->length ? memmem(extra->args, extra->length, key, sizeof(key) - 1) : NULL;
	/* of a longer key, with a quote in it, this may be the end */
	if (!found || (found > extra->args && found[-1] != ','))
		return false;
	stop = extra->args + extra->length;
	found += sizeof(key) - 1;
	if (found == stop || *found < '0' || *found > '9')
		return false;
	for (*ret_size = 0; found < stop && *found >= '0' && *found <= '9'; found++)
		*ret_size = 10 * *ret_size + (uint64_t)(*found - '0');
	return true;
}

void xs_summary_ccl(struct xs_process *process, const struct xs_open *task, uint64_t end)
{
	struct row key = { .id = task->name.id, .shaped = true };
	size_t length;
	const char *domain = xs_text_of(process->run, task->name.scope, &length);

	if (!task->name.scope || length < 6 || memcmp(domain, "oneCCL", 6))
		return;
	/* in place of a shape: the size, and whether there is one */
	key.shape[1] = size_of_message(task, &key.shape[0]);
	add(&process->summary->ccl, &key, end > task->start ? end - task->start : 0);
}

static int by_total(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->total < y->total ? 1 : x->total > y->total ? -1 : x->id < y->id ? -1 : x->id > y->id;
}

static void name_of(const struct xs_process *process, const struct row *row, char *text, size_t size)
{
	size_t length;
	const char *name = xs_text_of(process->run, row->id, &length);
	const uint64_t *d = row->shape;

	if (row->shaped)
		(void)snprintf(text, size, "%.*s[{%llu; %llu; %llu} {%llu; %llu; %llu}]", (int)length, name,
			       (unsigned long long)d[0], (unsigned long long)d[1], (unsigned long long)d[2],
			       (unsigned long long)d[3], (unsigned long long)d[4], (unsigned long long)d[5]);
	else
		(void)snprintf(text, size, "%.*s", (int)length, name);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = '?';
}

static void print_titles(FILE *out)
{
	fprintf(out, ", %11s, %19s, %11s, %19s, %19s, %19s\n", "Calls", "Time (ns)", "Time (%)", "Average (ns)", "Min (ns)", "Max (ns)");
}

static void print_figures(FILE *out, const struct row *row, uint64_t total)
{
	fprintf(out, ", %11llu, %19llu, %11.2f, %19llu, %19llu, %19llu\n", (unsigned long long)row->calls, (unsigned long long)row->total,
		total ? 100.0 * (double)row->total / (double)total : 0.0, (unsigned long long)(row->total / row->calls),
		(unsigned long long)row->low, (unsigned long long)row->high);
}

/* The rows of one device type (or all of them: type < 0), the largest time first. */
static void print_rows(FILE *out, const struct xs_process *process, struct table *table, int type, const char *title,
		       const char *first_column)
{
	struct row *rows = calloc(table->count + 1, sizeof(*rows));
	uint32_t n = 0;
	uint64_t total = 0;
	int width = (int)strlen(first_column);
	char name[512];

	if (!rows)
		return;
	for (uint32_t i = 0; i < table->size; i++) {
		if (!table->rows[i].id || (type >= 0 && table->rows[i].type != type))
			continue;
		rows[n++] = table->rows[i];
		total += table->rows[i].total;
		name_of(process, &table->rows[i], name, sizeof(name));
		if ((int)strlen(name) > width)
			width = (int)strlen(name);
	}
	qsort(rows, n, sizeof(*rows), by_total);
	fprintf(out, "\n== %s Backend ==\n\n", title);
	fprintf(out, "%*s", width, first_column);
	print_titles(out);
	for (uint32_t i = 0; i < n; i++) {
		name_of(process, &rows[i], name, sizeof(name));
		fprintf(out, "%*s", width, name);
		print_figures(out, &rows[i], total);
	}
	fputs("\n", out);
	free(rows);
}

static uint64_t total_of(const struct table *table, int type)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < table->size; i++)
		if (table->rows[i].id && (type < 0 || table->rows[i].type == type))
			total += table->rows[i].total;
	return total;
}

static const char *const backends[] = { "CL", "CL CPU", "CL GPU", "CL ACCELERATOR" };

/* Calls belong to the type of device that the process used; without any, to OpenCL as such. */
static const char *host_backend(const struct xs_summary *summary)
{
	const char *found = backends[0];

	for (int type = 1; type < 4; type++) {
		if (!summary->seen[type])
			continue;
		if (found != backends[0])
			return backends[0];
		found = backends[type];
	}
	return found;
}

static void print_total(FILE *out, const char *kind, const char *backend, uint64_t run, uint64_t total)
{
	char label[96];
	int width;

	(void)snprintf(label, sizeof(label), "Total %s Time for %s backend (ns): ", kind, backend);
	width = (int)strlen(label);
	fprintf(out, "%*s%20llu\n", width, "Total Execution Time (ns): ", (unsigned long long)run);
	fprintf(out, "%s%20llu\n", label, (unsigned long long)total);
}

static void print_box(FILE *out, const struct xs_process *process)
{
	static const char stars[] = "****************************************************************";
	char rank[16] = "-", text[64];
	int n;

	if (process->run->rank >= 0)
		(void)snprintf(rank, sizeof(rank), "%d", process->run->rank);
	n = snprintf(text, sizeof(text), "*  Process ID : %d | Rank ID : %s  *", process->pid, rank);
	fprintf(out, "%.*s\n%s\n%.*s\n\n", n, stars, text, n, stars);
}

/* A row for each collective and message size. */
static void print_ccl(FILE *out, const struct xs_process *process, const struct table *table)
{
	struct row *rows = calloc(table->count + 1, sizeof(*rows));
	uint64_t total = total_of(table, -1);
	int width = (int)strlen("Function");
	char name[512], size[24];
	uint32_t n = 0;

	for (uint32_t i = 0; rows && i < table->size; i++) {
		if (!table->rows[i].id)
			continue;
		rows[n] = table->rows[i];
		rows[n].shaped = false; /* the size has a column of its own */
		name_of(process, &rows[n++], name, sizeof(name));
		if ((int)strlen(name) > width)
			width = (int)strlen(name);
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_total);
	fprintf(out, "\n%*s, %20s", width, "Function", "Message Size (B)");
	print_titles(out);
	for (uint32_t i = 0; i < n; i++) {
		name_of(process, &rows[i], name, sizeof(name));
		(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)rows[i].shape[0]);
		fprintf(out, "%*s, %20s", width, name, rows[i].shape[1] ? size : "-");
		print_figures(out, &rows[i], total);
	}
	fputs("\n\n", out);
	free(rows);
}

static void print(FILE *out, struct xs_process *process)
{
	const struct xs_options *options = process->run->options;
	struct xs_summary *summary = process->summary;

	if (process->run->recovering && process->file->committed)
		fputs("\n(recovered: what the killed drain process had read before is not in these tables)\n", out);
	if (options->host_timing && summary->host.count) {
		const char *backend = host_backend(summary);

		fputs("\n=== API Timing Summary ===\n\n", out);
		print_total(out, "API", backend, process->host_ns, total_of(&summary->host, -1));
		print_rows(out, process, &summary->host, -1, backend, "Function");
		fputs("\n", out);
	}
	if (options->device_timing && summary->device.count) {
		fputs("\n=== Device Timing Summary ===\n\n", out);
		for (int type = 0; type < 4; type++)
			if (summary->seen[type])
				print_total(out, "Device", backends[type], process->host_ns,
					    total_of(&summary->device, type));
		for (int type = 0; type < 4; type++)
			if (summary->seen[type])
				print_rows(out, process, &summary->device, type, backends[type], "Kernel");
		fputs("\n", out);
	}
	if (summary->ccl.count) {
		fputs("\n=== CCL Timing Summary ===\n\n", out);
		print_box(out, process);
		print_total(out, "CCL", "oneCCL", process->host_ns, total_of(&summary->ccl, -1));
		print_ccl(out, process, &summary->ccl);
	}
}

/* "rep.txt" becomes "rep.<pid>.txt", "rep" "rep.<pid>"; in the output directory; a taken name gets a number. */
static FILE *open_report(const struct xs_process *process, char *path, size_t size)
{
	const struct xs_options *options = process->run->options;
	const char *slash = strrchr(options->output, '/');
	const char *dot = strrchr(slash ? slash : options->output, '.');
	int stem = dot ? (int)(dot - options->output) : (int)strlen(options->output);

	for (unsigned n = 1; n < 10000; n++) {
		char number[16] = "";
		FILE *file = NULL;
		int fd;

		if (n > 1)
			(void)snprintf(number, sizeof(number), "-%u", n);
		if (snprintf(path, size, "%s%s%.*s.%d%s%s", options->output_dir, options->output_dir[0] ? "/" : "",
			     stem, options->output, process->pid, number, dot ? dot : "") >= (int)size) {
			errno = ENAMETOOLONG;
			return NULL;
		}
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd >= 0)
			file = fdopen(fd, "w");
		return file;
	}
	return NULL;
}

bool xs_summary_close(struct xs_process *process)
{
	struct xs_summary *summary = process->summary;
	const struct xs_options *options = process->run->options;
	bool to_file = options->output[0];
	char path[2 * XS_PATH_MAX + 32];
	/* a trace's calls are counted too, and are no reason for a report that does not show them */
	bool something = (options->host_timing && summary->host.count) || (options->device_timing && summary->device.count) ||
			 summary->ccl.count;
	FILE *out = stderr;

	if (something) {
		if (to_file)
			out = open_report(process, path, sizeof(path));
		if (!out) {
			fprintf(stderr, "xstrace: cannot write %s: %s; the report follows here\n", path,
				strerror(errno));
			out = stderr;
			to_file = false;
		}
		print(out, process);
		if (to_file) {
			bool bad = ferror(out);

			if (fclose(out) || bad)
				fprintf(stderr, "xstrace: cannot write all of %s: %s\n", path, strerror(errno));
			else
				fprintf(stderr, "[INFO] Log is stored in %s\n", path);
		}
	}
	free(summary->host.rows);
	free(summary->device.rows);
	free(summary->ccl.rows);
	free(summary);
	process->summary = NULL;
	return something;
}
