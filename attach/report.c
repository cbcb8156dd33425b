/*
 * What samples add up to: folded stacks for flame graphs, a table of functions, a table of threads.
 */
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "files.h"
#include "names.h"
#include "report.h"
#include "text.h"
#include "timing.h"

#define SHOWN	25u /* functions of the table as text */
#define THREADS 20u /* threads likewise */
#define LINE	16384u

typedef unsigned long long ull;

/* ---- folded stacks ---- */

/* Semicolons stand between functions. */
static size_t put_function(const struct at_stacks *stacks, uint32_t name, char *text, size_t room)
{
	size_t length;
	const char *function = xs_text_of(stacks->run, name, &length);
	char *end = xs_plain(text, function, length < room ? length : room);

	for (char *c = text; c < end; c++)
		if (*c == ';')
			*c = ':';
	return (size_t)(end - text);
}

static void print_stack(FILE *out, const struct at_stacks *stacks, const struct at_stack *stack)
{
	static char text[LINE];
	size_t n = 0;

	if (stack->cut)
		n += (size_t)snprintf(text, sizeof(text), "…;");
	for (uint32_t i = 0; i < stack->count && n < sizeof(text) - 1; i++) {
		if (i)
			text[n++] = ';';
		n += put_function(stacks, stack->names[i], text + n, sizeof(text) - n);
	}
	if (stack->ran)
		fprintf(out, "%.*s %llu\n", (int)n, text, (ull)stack->ran);
	if (stack->waited)
		fprintf(out, "%.*s;(waiting) %llu\n", (int)n, text, (ull)stack->waited);
}

void at_write_folded(struct at_threads *threads)
{
	const struct at_stacks *stacks = threads->stacks;
	char path[PATH_MAX];
	FILE *out = stacks->count
			    ? xs_file_begin(threads->process, XS_FILE_FOLDED, path, sizeof(path))
			    : NULL;

	if (!out)
		return;
	for (uint32_t i = 0; i < stacks->count; i++)
		print_stack(out, stacks, &stacks->list[i]);
	if (stacks->omitted)
		fprintf(out, "(not known) %llu\n", (ull)stacks->omitted);
	(void)xs_file_end(out, "Call stacks are", path);
}

/* ---- functions ---- */

struct function {
	uint32_t name, stack; /* stack: the last one that it was counted in, + 1 */
	uint64_t self, total, waiting;
};

struct functions {
	struct function *list;
	uint32_t count, *index, size;
};

static struct function *function_of(struct functions *functions, uint32_t name)
{
	uint32_t at = name * 0x9e3779b1u;

	for (;; at++) {
		uint32_t *slot = &functions->index[at % functions->size];

		if (!*slot) {
			functions->list[functions->count].name = name;
			*slot = ++functions->count;
		}
		if (functions->list[*slot - 1].name == name)
			return &functions->list[*slot - 1];
	}
}

static void add_stack(struct functions *functions, const struct at_stack *stack, uint32_t number)
{
	for (uint32_t i = 0; i < stack->count; i++) {
		struct function *function = function_of(functions, stack->names[i]);

		if (i + 1 == stack->count) {
			function->self += stack->ran;
			function->waiting += stack->waited;
		}
		if (function->stack != number + 1) /* one that calls itself counts once */
			function->total += stack->ran;
		function->stack = number + 1;
	}
}

static int by_self(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	if (x->waiting != y->waiting)
		return x->waiting < y->waiting ? 1 : -1;
	/* names are numbered as they are met, inwards: of callers without time of their own, the
	 * innermost first */
	return x->name < y->name ? 1 : x->name > y->name ? -1 : 0;
}

static bool count_functions(const struct at_stacks *stacks, struct functions *ret)
{
	size_t most = 0;

	for (uint32_t i = 0; i < stacks->count; i++)
		most += stacks->list[i].count;
	ret->count = 0;
	ret->size = (uint32_t)(2 * most + 1);
	ret->list = calloc(most + 1, sizeof(*ret->list));
	ret->index = calloc(ret->size, sizeof(*ret->index));
	if (!ret->list || !ret->index)
		return false;
	for (uint32_t i = 0; i < stacks->count; i++)
		add_stack(ret, &stacks->list[i], i);
	for (uint32_t i = 0; i < ret->count; i++) /* they have but called those that waited */
		if (!ret->list[i].total && !ret->list[i].waiting)
			ret->list[i--] = ret->list[--ret->count];
	qsort(ret->list, ret->count, sizeof(*ret->list), by_self);
	return true;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void print_functions(struct xs_report *report, const struct at_stacks *stacks,
			    const struct functions *functions, uint64_t ran)
{
	char name[LINE];

	xs_report_print(report, "\n== Functions of Running Threads ==\n\n%9s %9s %12s %12s  %s\n",
			"Self (%)", "Total (%)", "Self (ms)", "Waits (ms)", "Function");
	for (uint32_t i = 0; i < functions->count && i < SHOWN; i++) {
		const struct function *f = &functions->list[i];
		size_t n = put_function(stacks, f->name, name, 512);

		xs_report_print(report, "%9.1f %9.1f %12.1f %12.1f  %.*s\n", percent(f->self, ran),
				percent(f->total, ran), (double)f->self / 1e6,
				(double)f->waiting / 1e6, (int)n, name);
	}
	if (functions->count > SHOWN)
		xs_report_print(report, "%*s  %u more\n", 45, "", functions->count - SHOWN);
}

static void put_functions(struct xs_report *report, const struct at_stacks *stacks,
			  const struct functions *functions, uint64_t ran)
{
	char name[LINE];

	for (uint32_t i = 0; i < functions->count; i++) {
		const struct function *f = &functions->list[i];
		struct xs_report_row row;

		xs_row_begin(&row, "sampled_functions", "");
		xs_row_text(&row, XS_COL_NAME, name,
			    put_function(stacks, f->name, name, sizeof(name)));
		xs_row_number(&row, XS_COL_TIME, f->total);
		xs_row_real(&row, XS_COL_PERCENT, percent(f->total, ran));
		xs_row_number(&row, XS_COL_SELF, f->self);
		xs_row_number(&row, XS_COL_WAITED, f->waiting);
		xs_row_end(report, &row);
	}
}

/* ---- threads ---- */

static int by_cpu(const void *a, const void *b)
{
	const struct at_thread *x = *(struct at_thread *const *)a,
			       *y = *(struct at_thread *const *)b;
	uint64_t first = x->cpu - x->cpu_first, second = y->cpu - y->cpu_first;

	if (first != second)
		return first < second ? 1 : -1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void print_threads(struct xs_report *report, struct at_threads *threads, uint64_t span)
{
	char name[sizeof(threads->ended[0]->name)];

	xs_report_print(report, "\n== Threads ==\n\n%9s %12s %12s  %s\n", "Thread", "CPU (ms)",
			"CPU (%)", "Name");
	for (uint32_t i = 0; i < threads->ended_count && i < THREADS; i++) {
		const struct at_thread *t = threads->ended[i];
		uint64_t cpu = t->cpu - t->cpu_first;

		*xs_plain(name, t->name, strlen(t->name)) = '\0';
		xs_report_print(report, "%9d %12.1f %12.1f  %s\n", t->tid, (double)cpu / 1e6,
				percent(cpu, span), name);
	}
	if (threads->ended_count > THREADS)
		xs_report_print(report, "%36s  %llu more\n", "",
				threads->ended_count - THREADS + (ull)threads->more);
}

static void put_threads(struct xs_report *report, const struct at_threads *threads)
{
	for (uint32_t i = 0; i < threads->ended_count; i++) {
		const struct at_thread *t = threads->ended[i];
		struct xs_report_row row;

		xs_row_begin(&row, "sampled_threads", "");
		xs_row_text(&row, XS_COL_NAME, t->name, strlen(t->name));
		xs_row_number(&row, XS_COL_TID, (uint64_t)t->tid);
		xs_row_number(&row, XS_COL_TIME, t->cpu - t->cpu_first);
		xs_row_number(&row, XS_COL_WAITED, t->waited);
		xs_row_end(report, &row);
	}
}

/* ---- the report ---- */

static void print_head(struct at_threads *threads, struct xs_report *report,
		       const struct at_cost *cost)
{
	uint64_t span = cost->last - cost->first;

	xs_timing_title(threads->process, report, "Samples", "\n");
	xs_report_print(report,
			"%llu looks in %.2f s, %.1f ms apart; all times are those between looks\n"
			"what it has cost: %llu times the kernel copied where a running thread "
			"was (perf); %llu times a thread was held, for %.0f us on average and "
			"%.2f ms at most, together %.2f %% of a thread's time; looking took "
			"%.1f %% of a processor\n",
			(ull)cost->looks, (double)span / 1e9,
			cost->looks > 1 ? (double)span / 1e6 / (double)(cost->looks - 1) : 0.0,
			(ull)cost->samples, (ull)cost->held,
			cost->held ? (double)cost->held_ns / 1e3 / (double)cost->held : 0.0,
			(double)cost->longest_ns / 1e6,
			percent(cost->held_ns,
				span * (threads->ended_count ? threads->ended_count : 1)),
			percent(cost->own_ns, span));
	if (cost->missed)
		xs_report_print(report,
				"%llu times a thread that was to run did not come to stand still "
				"within 100 ms: its stack is not known then\n",
				(ull)cost->missed);
	if (cost->more_threads)
		xs_report_print(report, "there were more than 4096 threads: of the others nothing "
					"is known\n");
}

void at_report(struct at_threads *threads, const struct at_cost *cost)
{
	struct xs_report *report = xs_report_of(threads->process, XS_REPORT_SAMPLES);
	struct functions functions;
	uint64_t ran = 0;

	if (!report)
		return;
	for (uint32_t i = 0; i < threads->stacks->count; i++)
		ran += threads->stacks->list[i].ran;
	if (threads->ended_count)
		qsort(threads->ended, threads->ended_count, sizeof(*threads->ended), by_cpu);
	if (!count_functions(threads->stacks, &functions))
		functions.count = 0;
	if (report->format == XS_REPORT_TEXT) {
		print_head(threads, report, cost);
		print_functions(report, threads->stacks, &functions, ran);
		print_threads(report, threads, cost->last - cost->first);
		xs_report_print(report, "\n");
	} else {
		put_functions(report, threads->stacks, &functions, ran);
		put_threads(report, threads);
	}
	free(functions.list);
	free(functions.index);
}
