#include "late.h"

#include <inttypes.h>
#include <stdlib.h>

#define MAX_WINDOWS  (1u << 18)
#define MAX_PIECES   (1u << 20)
#define MAX_NAMES    65536u
#define MAX_DEPTH    256u
#define LONGEST_NAME 200
#define IN_MPI	     UINT32_MAX

/* When somebody waited for an input, and did not leave its call before `until`. */
struct window {
	const struct xm_input *who;
	uint32_t partner, row; /* partner: index of the input */
	int32_t rank, partner_rank;
	int64_t tid, from, until;
	/*
	 * until that time there are such times of the partner, among those that began before this
	 * one has ended
	 */
	int64_t latest;
};

/*
 * What an input did in such a time. First whole slices; xm_late_solve() leaves of each what no
 * slice in it covers.
 */
struct piece {
	uint32_t input, name;
	int64_t tid, start, end;
};

struct total {
	int32_t rank;
	uint32_t name;
	uint64_t ns, count;
};

struct xm_late {
	struct window *windows;
	struct piece *pieces, *tasks;
	uint32_t window_count, window_room, piece_count, piece_room, task_count, task_room;
	int64_t shortest; /* windows that are shorter are not looked at: there were too many */
	uint64_t left_out;
	struct xf_map names, total_map;
	struct total *totals;
	uint32_t total_room;
};

struct xm_late *xm_late_create(void)
{
	struct xm_late *late = calloc(1, sizeof(*late));

	if (late) {
		xf_map_init(&late->names, MAX_NAMES, (size_t)MAX_NAMES * LONGEST_NAME);
		xf_map_init(&late->total_map, MAX_NAMES, UINT32_MAX);
	}
	return late;
}

void xm_late_free(struct xm_late *late)
{
	if (!late)
		return;
	xf_map_free(&late->names);
	xf_map_free(&late->total_map);
	free(late->windows);
	free(late->pieces);
	free(late->tasks);
	free(late->totals);
	free(late);
}

/* ---- windows ---- */

/* Half of all that there is room for, or more: the shorter ones go. */
static void forget_short(struct xm_late *late)
{
	while (late->window_count == MAX_WINDOWS) {
		uint32_t kept = 0;

		late->shortest = late->shortest ? 2 * late->shortest : 1000;
		for (uint32_t i = 0; i < late->window_count; i++)
			if (late->windows[i].until - late->windows[i].from >= late->shortest)
				late->windows[kept++] = late->windows[i];
		late->left_out += late->window_count - kept;
		late->window_count = kept;
	}
}

void xm_late_window(struct xm_late *late, uint32_t row, const struct xm_end *who,
		    const struct xm_end *partner, int64_t from, int64_t until)
{
	if (until <= from || who->is_cut)
		return;
	if (until - from < late->shortest) {
		late->left_out++;
		return;
	}
	forget_short(late);
	if (!xf_room_for(&late->windows, &late->window_room, late->window_count,
			 sizeof(*late->windows)))
		return;
	late->windows[late->window_count++] = (struct window){ .who = who->input,
							       .partner = partner->input->index,
							       .row = row,
							       .rank = who->rank,
							       .partner_rank = partner->rank,
							       .tid = partner->posted_tid,
							       .from = from,
							       .until = until };
}

static int compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_partner(const void *left, const void *right)
{
	const struct window *a = left, *b = right;
	int difference = compare(a->partner, b->partner);

	return difference ? difference : compare(a->from, b->from);
}

bool xm_late_begin(struct xm_late *late)
{
	int64_t latest = INT64_MIN;

	if (!late->window_count)
		return false;
	qsort(late->windows, late->window_count, sizeof(*late->windows), by_partner);
	for (uint32_t i = 0; i < late->window_count; i++) {
		if (i && late->windows[i].partner != late->windows[i - 1].partner)
			latest = INT64_MIN;
		latest = late->windows[i].until > latest ? late->windows[i].until : latest;
		late->windows[i].latest = latest;
	}
	return true;
}

/* Is it within a window of that input? */
static bool is_wanted(const struct xm_late *late, uint32_t input, int64_t start, int64_t end)
{
	uint32_t low = 0, high = late->window_count;

	/* the last that begins before `end` */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct window *window = &late->windows[middle];

		if (window->partner < input || (window->partner == input && window->from < end))
			low = middle + 1;
		else
			high = middle;
	}
	return low && late->windows[low - 1].partner == input &&
	       late->windows[low - 1].latest > start;
}

/* So much of a text of JSON as there is room for, up to the end of a character. */
static size_t cut(struct xf_text text)
{
	size_t at = 0, next = 0;

	for (; next < text.n && next <= LONGEST_NAME;
	     next += text.p[next] != '\\'			    ? 1
		     : next + 1 < text.n && text.p[next + 1] == 'u' ? 6
								    : 2)
		if ((text.p[next] & 0xc0) != 0x80)
			at = next;
	return text.n <= LONGEST_NAME ? text.n : at;
}

void xm_late_slice(struct xm_late *late, const struct xm_input *input, const struct xf_event *event,
		   int64_t tid, int64_t start, int64_t end)
{
	struct xf_text name = xf_inside(event->name);
	bool is_mpi = name.n > 4 && !memcmp(name.p, "MPI_", 4);
	uint32_t number = IN_MPI;

	if (end <= start || xf_is(event->cat, "\"mpi_request\"") ||
	    !is_wanted(late, input->index, start, end))
		return;
	if (!is_mpi)
		number = xf_map_add(&late->names, name.p, cut(name));
	if ((!is_mpi && number == XF_NONE) || late->piece_count == MAX_PIECES ||
	    !xf_room_for(&late->pieces, &late->piece_room, late->piece_count,
			 sizeof(*late->pieces))) {
		late->left_out++;
		return;
	}
	late->pieces[late->piece_count++] =
		(struct piece){ input->index, number, is_mpi ? -1 : tid, start, end };
}

/* ---- what a partner did ---- */

/* MPI calls of all threads of an input first (tid -1); of each thread what lasts longer first. */
static int by_time(const void *left, const void *right)
{
	const struct piece *a = left, *b = right;
	int difference = compare(a->input, b->input);

	difference = difference ? difference : compare(a->tid, b->tid);
	difference = difference ? difference : compare(a->start, b->start);
	return difference ? difference : compare(b->end, a->end);
}

static void put_task(struct xm_late *late, const struct piece *of, int64_t start, int64_t end)
{
	if (end <= start ||
	    !xf_room_for(&late->tasks, &late->task_room, late->task_count, sizeof(*late->tasks)))
		return;
	late->tasks[late->task_count] = *of;
	late->tasks[late->task_count].start = start;
	late->tasks[late->task_count++].end = end;
}

/*
 * Slices of one thread, from `first` on, become what is innermost at each time. Returns the first
 * of the next thread.
 */
static uint32_t flatten(struct xm_late *late, uint32_t first)
{
	const struct piece *stack[MAX_DEPTH], *pieces = late->pieces;
	int64_t now = pieces[first].start;
	uint32_t depth = 0, i;

	for (i = first; i < late->piece_count && pieces[i].input == pieces[first].input &&
			pieces[i].tid == pieces[first].tid;
	     i++) {
		for (; depth && stack[depth - 1]->end <= pieces[i].start; depth--) {
			put_task(late, stack[depth - 1], now, stack[depth - 1]->end);
			now = stack[depth - 1]->end > now ? stack[depth - 1]->end : now;
		}
		if (depth)
			put_task(late, stack[depth - 1], now, pieces[i].start);
		now = pieces[i].start > now ? pieces[i].start : now;
		if (depth < MAX_DEPTH)
			stack[depth++] = &pieces[i];
	}
	for (; depth; depth--) {
		put_task(late, stack[depth - 1], now, stack[depth - 1]->end);
		now = stack[depth - 1]->end > now ? stack[depth - 1]->end : now;
	}
	return i;
}

/* The first of a thread's (or, tid -1, of all MPI calls) that ends behind `time`. */
static uint32_t find(const struct xm_late *late, uint32_t input, int64_t tid, int64_t time)
{
	uint32_t low = 0, high = late->task_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct piece *task = &late->tasks[middle];
		int difference = compare(task->input, input);

		difference = difference ? difference : compare(task->tid, tid);
		difference = difference ? difference : task->end <= time ? -1 : 1;
		if (difference < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_of(const struct xm_late *late, uint32_t i, uint32_t input, int64_t tid)
{
	return i < late->task_count && late->tasks[i].input == input && late->tasks[i].tid == tid;
}

static void add(struct xm_late *late, int32_t rank, uint32_t name, int64_t ns)
{
	uint32_t key[2] = { (uint32_t)rank, name };
	uint32_t index = ns > 0 ? xf_map_add(&late->total_map, key, sizeof(key)) : XF_NONE;

	if (index == XF_NONE ||
	    !xf_room_for(&late->totals, &late->total_room, index, sizeof(*late->totals)))
		return;
	late->totals[index].rank = rank;
	late->totals[index].name = name;
	late->totals[index].ns += (uint64_t)ns;
	late->totals[index].count++;
}

/* Time outside MPI: in which tasks? */
static void split(struct xm_late *late, const struct window *window, int64_t start, int64_t end)
{
	for (uint32_t i = find(late, window->partner, window->tid, start);
	     start < end && is_of(late, i, window->partner, window->tid); i++) {
		const struct piece *task = &late->tasks[i];
		int64_t from = task->start > start ? task->start : start,
			until = task->end < end ? task->end : end;

		if (task->start >= end)
			break;
		add(late, window->partner_rank, XF_NONE, from - start);
		add(late, window->partner_rank, task->name, until - from);
		start = until;
	}
	add(late, window->partner_rank, XF_NONE, end - start);
}

/*
 * How long the partner was outside MPI, before it last came back into it while it was waited for:
 * who was not waited for until then had nothing to do with it (a small message is on its way by
 * itself). keep: put it where it belongs.
 */
static int64_t outside(struct xm_late *late, const struct window *window, bool keep)
{
	int64_t now = window->from, sum = 0;

	for (uint32_t i = find(late, window->partner, -1, window->from);
	     is_of(late, i, window->partner, -1); i++) {
		const struct piece *call = &late->tasks[i];

		if (call->start >= window->until)
			break;
		if (call->start > now) {
			sum += call->start - now;
			if (keep)
				split(late, window, now, call->start);
		}
		now = call->end > now ? call->end : now;
	}
	return sum;
}

static int by_wait(const void *left, const void *right)
{
	const struct window *a = left, *b = right;
	int difference = compare((int64_t)a->who->index, (int64_t)b->who->index);

	return difference ? difference : compare(a->until, b->until);
}

void xm_late_solve(struct xm_late *late, void *user,
		   void (*one)(void *user, uint32_t row, int32_t who, int32_t partner, uint64_t ns))
{
	if (late->piece_count)
		qsort(late->pieces, late->piece_count, sizeof(*late->pieces), by_time);
	for (uint32_t i = 0; i < late->piece_count;)
		i = flatten(late, i);
	qsort(late->windows, late->window_count, sizeof(*late->windows), by_wait);
	/* who waited for several at once was kept by the one that took longest */
	for (uint32_t i = 0, next; i < late->window_count; i = next) {
		const struct window *worst = &late->windows[i];
		int64_t most = -1;

		for (next = i;
		     next < late->window_count && !by_wait(&late->windows[i], &late->windows[next]);
		     next++) {
			int64_t ns = outside(late, &late->windows[next], false);

			if (ns > most) {
				most = ns;
				worst = &late->windows[next];
			}
		}
		if (most <= 0)
			continue;
		(void)outside(late, worst, true);
		one(user, worst->row, worst->rank, worst->partner_rank, (uint64_t)most);
	}
}

/* ---- printing ---- */

static int by_length(const void *left, const void *right)
{
	const struct total *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->rank != b->rank ? compare(a->rank, b->rank) : compare(a->name, b->name);
}

/* As it stands in the traces; without one: "". */
static int name_of(const struct xm_late *late, uint32_t number, const char **ret_name)
{
	size_t length = 0;

	*ret_name = number == XF_NONE ? "" : xf_map_key(&late->names, number, &length);
	return (int)length;
}

void xm_late_print(const struct xm_late *late, FILE *out, bool json)
{
	uint32_t count = late->total_map.count < late->total_room ? late->total_map.count
								  : late->total_room;
	struct total *totals = calloc(count + 1, sizeof(*totals));
	const char *name;
	int length;

	if (json)
		fputs("\"late_progress\":[", out);
	else if (count)
		fprintf(out,
			"\nLate progress: ranks that were outside MPI while others waited for "
			"their messages to go on\n%6s %16s %10s  %s\n",
			"Rank", "Time (ns)", "Waits", "Task");
	if (totals && count) {
		memcpy(totals, late->totals, count * sizeof(*totals));
		qsort(totals, count, sizeof(*totals), by_length);
	}
	for (uint32_t i = 0, printed = 0; totals && i < count; i++) {
		if (!totals[i].ns)
			continue;
		length = name_of(late, totals[i].name, &name);
		if (json)
			fprintf(out,
				"%s\n{\"rank\":%" PRId32 ",\"task\":\"%.*s\",\"time_ns\":%" PRIu64
				",\"waits\":%" PRIu64 "}",
				printed++ ? "," : "", totals[i].rank, length, name, totals[i].ns,
				totals[i].count);
		else
			fprintf(out, "%6" PRId32 " %16" PRIu64 " %10" PRIu64 "  %.*s\n",
				totals[i].rank, totals[i].ns, totals[i].count, length ? length : 9,
				length ? name : "(no task)");
	}
	if (json)
		fprintf(out, "],\"late_progress_left_out\":%" PRIu64, late->left_out);
	else if (late->left_out)
		fprintf(out,
			"(%" PRIu64 " waits or slices of the shortest were not looked at: there "
			"were too many)\n",
			late->left_out);
	free(totals);
}
