/*
 * A page of --top: tables of runs, processes, devices, kernels, calls, tasks and copies. What does
 * not fit the terminal is left out, the least busy first; the page never has more lines or columns.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "look.h"

#define BOLD	"\033[1m"
#define REVERSE "\033[7m"
#define NORMAL	"\033[0m"
#define WIDEST	400 /* columns */
#define NUMBER	16  /* room for a number as text */

/* ---- lines ---- */

static bool make_room(struct xs_page *page, size_t bytes)
{
	size_t room = page->room ? page->room : 16384;
	char *grown;

	while (room < page->length + bytes)
		room *= 2;
	grown = room > page->room ? realloc(page->text, room) : page->text;
	if (!grown)
		return false;
	page->text = grown;
	page->room = room;
	return true;
}

/* Bytes of the character at `text`, its columns. The text is plain: whole characters of UTF-8. */
static size_t character(const unsigned char *text, int *ret_columns)
{
	size_t bytes = *text < 0x80 ? 1 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : 4;
	wchar_t code = (wchar_t)(bytes == 1 ? *text : *text & (0x7f >> bytes));
	int columns;

	for (size_t i = 1; i < bytes; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return *ret_columns = 1, i;
		code = code << 6 | (text[i] & 0x3f);
	}
	columns = wcwidth(code);
	*ret_columns = columns < 0 ? 1 : columns;
	return bytes;
}

/* As much of a text as fits into so many columns; *ret_columns: how many it takes. */
static size_t fitting(const char *text, int columns, int *ret_columns)
{
	size_t at = 0;

	*ret_columns = 0;
	while (text[at]) {
		int wide;
		size_t bytes = character((const unsigned char *)text + at, &wide);

		if (*ret_columns + wide > columns)
			break;
		*ret_columns += wide;
		at += bytes;
	}
	return at;
}

static bool is_full(const struct xs_page *page)
{
	return page->height && page->lines >= page->height;
}

/* `style`: NULL, or how the whole line is shown where there are colors. */
static void put_line(struct xs_page *page, const char *style, const char *text)
{
	int columns;
	size_t length = fitting(text, page->width, &columns);

	if (is_full(page) || !make_room(page, length + 32))
		return;
	if (style && page->color)
		page->length += (size_t)sprintf(page->text + page->length, "%s", style);
	memcpy(page->text + page->length, text, length);
	page->length += length;
	if (style && page->color)
		page->length += (size_t)sprintf(page->text + page->length, "%s", NORMAL);
	page->text[page->length++] = '\n';
	page->lines++;
}

static __attribute__((format(printf, 3, 4))) void line(struct xs_page *page, const char *style,
						       const char *format, ...)
{
	char text[WIDEST * 4];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	put_line(page, style, text);
}

/* A text in a column of its own: cut, or with blanks behind it. `out` has room for 4 * columns. */
static char *column(char *out, const char *text, int columns)
{
	int used;
	size_t length = fitting(text, columns, &used);

	memcpy(out, text, length);
	memset(out + length, ' ', (size_t)(columns - used));
	out[length + (size_t)(columns - used)] = '\0';
	return out;
}

/* ---- numbers ---- */

static const char *count_text(char *out, double value)
{
	static const char units[] = " kMGTP";
	int unit = 0;

	while (value >= 999.5 && unit < 5) {
		value /= 1000;
		unit++;
	}
	(void)snprintf(out, NUMBER,
		       value < 9.995 && (unit || value != (double)(int)value) ? "%.2f%.1s"
		       : value < 99.95 && unit				      ? "%.1f%.1s"
									      : "%.0f%.1s",
		       value, unit ? &units[unit] : "");
	return out;
}

static const char *time_text(char *out, double ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	int unit = 0;

	while (ns >= 999.5 && unit < 3) {
		ns /= 1000;
		unit++;
	}
	(void)snprintf(out, NUMBER, ns < 99.95 && unit ? "%.1f %s" : "%.0f %s", ns, units[unit]);
	return out;
}

static const char *age_text(char *out, uint64_t ns)
{
	unsigned seconds = (unsigned)(ns / 1000000000);

	(void)snprintf(out, NUMBER, seconds < 3600 ? "%u:%02u" : "%u:%02u:%02u",
		       seconds < 3600 ? seconds / 60 : seconds / 3600,
		       seconds < 3600 ? seconds % 60 : seconds / 60 % 60, seconds % 60);
	return out;
}

static double rate(double sum, const struct xs_live_head *head)
{
	return head->recent ? sum * 1e9 / (double)head->recent : 0;
}

/* Of the time that "recent" is about. More than all of it can have ended in it. */
static double share(double ns, const struct xs_live_head *head)
{
	double part = head->recent ? 100 * ns / (double)head->recent : 0;

	return part < 99999 ? part : 99999;
}

/* ---- tables ---- */

/* How wide the last column, or the first, may be beside others of so many columns. */
static int rest(const struct xs_page *page, int others, int least, int most)
{
	int columns = page->width - others;

	return columns < least ? least : columns < most ? columns : most;
}

static void put_runs(struct xs_page *page, const struct xs_looks *looks, int rows)
{
	int width = rest(page, 66, 12, 60);
	char name[WIDEST * 4], text[sizeof(((struct xs_look *)NULL)->session) + 160];

	line(page, REVERSE, "%s %8s %8s %7s %5s %8s %8s  %s", column(name, "RUN", width), "PID",
	     "TIME", "EVENT/s", "RING%", "LOST", "OWN CPU%", "STATE");
	for (size_t i = 0; i < looks->count && rows-- > 0; i++) {
		const struct xs_look *look = &looks->of[i];
		const struct xs_live_head *head = look->picture;
		uint64_t events = 0, lost = 0;
		uint32_t fill = 0;
		char age[NUMBER], rate_[NUMBER], lost_[NUMBER];

		(void)snprintf(text, sizeof(text), "%s  %s",
			       look->session[0] ? look->session : look->run_id, look->command);
		for (uint32_t p = 0; head && p < head->process_count; p++) {
			const struct xs_live_process *process = &xs_look_processes(look)[p];

			events += process->recent_events;
			lost += process->lost;
			fill = process->fill > fill ? process->fill : fill;
		}
		line(page, NULL, "%s %8d %8s %7s %5u %8s %8.1f  %s%s%s", column(name, text, width),
		     look->pid, head ? age_text(age, head->begun) : "",
		     head ? count_text(rate_, rate((double)events, head)) : "", fill / 10,
		     count_text(lost_, (double)lost),
		     head ? share((double)head->recent_cpu, head) : 0, xs_look_state(look),
		     head && head->blind ? ", no names until the end" : "",
		     head && head->behind >> 20 ? ", behind" : "");
	}
	if (!looks->count)
		line(page, NULL, "No run of this user is there. xstrace [options] app begins one.");
}

static size_t count_processes(const struct xs_looks *looks)
{
	size_t count = 0;

	for (size_t i = 0; i < looks->count; i++)
		count += looks->of[i].picture ? looks->of[i].picture->process_count : 0;
	return count;
}

static void put_process(struct xs_page *page, const struct xs_look *look,
			const struct xs_live_process *process, int width)
{
	const struct xs_live_head *head = look->picture;
	char name[WIDEST * 4], events[NUMBER], calls[NUMBER], since[NUMBER], rank[NUMBER] = "";
	double thread = process->threads ? process->threads : 1;

	if (process->rank >= 0)
		(void)snprintf(rank, sizeof(rank), "%d", process->rank);
	if (process->in_call[0])
		(void)time_text(since, (double)process->in_call_ns);
	line(page, NULL, "%s %8d %5s %5u %7s %7s %7.1f %6.1f  %s%s%s%s",
	     column(name, process->name, width), process->pid, rank, process->threads,
	     count_text(events, rate((double)process->recent_events, head)),
	     count_text(calls, rate((double)process->recent_calls.count, head)),
	     share((double)process->recent_calls.ns / thread, head),
	     share((double)process->recent_waited / thread, head), process->in_call,
	     process->in_call[0] ? " (" : "", process->in_call[0] ? since : "",
	     process->in_call[0] ? ")" : "");
}

static void put_processes(struct xs_page *page, const struct xs_looks *looks, int rows)
{
	int width = rest(page, 78, 12, 40);
	char name[WIDEST * 4];

	if (!rows || !count_processes(looks))
		return;
	line(page, REVERSE, "%s %8s %5s %5s %7s %7s %7s %6s  %s", column(name, "PROCESS", width),
	     "PID", "RANK", "THR", "EVENT/s", "CALL/s", "INCALL%", "WAIT%", "NOW IN");
	for (size_t i = 0; i < looks->count; i++)
		for (uint32_t p = 0;
		     looks->of[i].picture && p < looks->of[i].picture->process_count && rows > 0;
		     p++, rows--)
			put_process(page, &looks->of[i], &xs_look_processes(&looks->of[i])[p],
				    width);
}

static size_t count_devices(const struct xs_looks *looks)
{
	size_t count = 0;

	for (size_t i = 0; i < looks->count; i++)
		count += looks->of[i].picture ? looks->of[i].picture->device_count : 0;
	return count;
}

static void put_devices(struct xs_page *page, const struct xs_looks *looks, int rows)
{
	int width = rest(page, 30, 12, 70);
	char name[WIDEST * 4], commands[NUMBER];

	if (!rows || !count_devices(looks))
		return;
	line(page, REVERSE, "%s %8s %9s %9s", column(name, "DEVICE", width), "PID", "BUSY%",
	     "WORK/s");
	for (size_t i = 0; i < looks->count; i++) {
		const struct xs_live_head *head = looks->of[i].picture;

		for (uint32_t d = 0; head && d < head->device_count && rows > 0; d++, rows--) {
			const struct xs_live_device *device = &xs_look_devices(&looks->of[i])[d];
			double busy = share((double)device->recent_busy, head);

			line(page, NULL, "%s %8d %9.1f %9s", column(name, device->name, width),
			     device->pid, busy < 100 ? busy : 100,
			     count_text(commands, rate((double)device->recent.count, head)));
		}
	}
}

/* ---- names of all runs ---- */

struct shown {
	const struct xs_live_name *name;
	const struct xs_live_head *head;
	double ns; /* in a second */
};

static int busiest(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->name->all.ns != y->name->all.ns)
		return x->name->all.ns > y->name->all.ns ? -1 : 1;
	return strcmp(x->name->name, y->name->name);
}

/* Those of a kind, the busiest first; to be freed. Those of one name stay apart by their runs. */
static struct shown *find_names(const struct xs_looks *looks, uint32_t kind, size_t *ret_count)
{
	struct shown *shown = NULL;
	size_t count = 0, room = 0;

	for (size_t i = 0; i < looks->count; i++)
		room += looks->of[i].picture ? looks->of[i].picture->name_count : 0;
	shown = room ? malloc(room * sizeof(*shown)) : NULL;
	for (size_t i = 0; shown && i < looks->count; i++) {
		const struct xs_live_head *head = looks->of[i].picture;

		for (uint32_t n = 0; head && n < head->name_count; n++) {
			const struct xs_live_name *name = &xs_look_names(&looks->of[i])[n];

			if (name->kind == kind)
				shown[count++] = (struct shown){
					.name = name,
					.head = head,
					.ns = rate((double)name->recent.ns, head),
				};
		}
	}
	if (count)
		qsort(shown, count, sizeof(*shown), busiest);
	*ret_count = count;
	return shown;
}

static void put_names(struct xs_page *page, const struct xs_looks *looks, uint32_t kind, int rows)
{
	static const char *const titles[XS_LIVE_KINDS] = { "TASK", "CALL", "KERNEL", "COPY" };
	int width = rest(page, 46, 12, 80);
	char name[WIDEST * 4], often[NUMBER], average[NUMBER], all[NUMBER], total[NUMBER];
	struct shown *shown;
	size_t count;

	if (rows < 2)
		return;
	shown = find_names(looks, kind, &count);
	if (count)
		line(page, REVERSE, "%s %8s %8s %9s %7s %9s", column(name, titles[kind], width),
		     "PER s", "TIME%", "AVERAGE", "ALL", "TOTAL");
	for (size_t i = 0; i < count && --rows > 0; i++) {
		const struct xs_live_name *of = shown[i].name;
		const struct xs_live_sum *sum = of->recent.count ? &of->recent : &of->all;

		line(page, NULL, "%s %8s %8.1f %9s %7s %9s", column(name, of->name, width),
		     count_text(often, rate((double)of->recent.count, shown[i].head)),
		     share((double)of->recent.ns, shown[i].head),
		     time_text(average, sum->count ? (double)sum->ns / (double)sum->count : 0),
		     count_text(all, (double)of->all.count), time_text(total, (double)of->all.ns));
	}
	free(shown);
}

/* ---- the page ---- */

static int least(size_t a, int b)
{
	return a < (size_t)b ? (int)a : b;
}

/* What runs, processes and devices do not need is for names, a quarter for each kind or more. */
void xs_top_text(struct xs_page *page, const struct xs_looks *looks)
{
	static const uint32_t order[XS_LIVE_KINDS] = { XS_LIVE_KERNEL, XS_LIVE_CALL, XS_LIVE_TASK,
						       XS_LIVE_COPY };
	int height = page->height ? page->height : 1000, kinds = 0, left;
	size_t counts[XS_LIVE_KINDS];

	if (page->width > WIDEST)
		page->width = WIDEST;
	put_runs(page, looks, least(looks->count, height / 4 > 1 ? height / 4 : 1));
	put_processes(page, looks, least(count_processes(looks), height / 4));
	put_devices(page, looks, least(count_devices(looks), height / 6));
	for (uint32_t i = 0; i < XS_LIVE_KINDS; i++) {
		free(find_names(looks, order[i], &counts[i]));
		kinds += counts[i] != 0;
	}
	left = height - page->lines;
	for (uint32_t i = 0; i < XS_LIVE_KINDS; i++) {
		int before = page->lines;

		if (!counts[i])
			continue;
		put_names(page, looks, order[i],
			  least(counts[i] + 1, page->height ? left / kinds : 11));
		left -= page->lines - before;
		kinds--;
	}
}
