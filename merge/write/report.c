#include "report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "json.h"
#include "late.h"
#include "mpi_call.h"
#include "mpi_needs.h"
#include "text.h"

#define SLOWEST	  3
#define MAX_ROWS  65536u
#define MAX_RANKS (1u << 20)
#define WAITS	  8192u

struct row {
	uint64_t comm, count, bytes, time, wait, late, late_senders, late_receivers;
	const struct xm_function *function;
};

/* A rank in a row: what it waited, and what others waited for it. */
struct blame {
	uint32_t row;
	int32_t rank;
	uint64_t count, time, wait, caused, late, late_caused;
};

/* A call that waited for several messages waits until the last of them was sent, and no longer. */
struct wait {
	const struct xm_input *input;
	int64_t end, until;
};

/*
 * A send that does not block, of which the message and the wait for its request are read one after
 * the other, in any order.
 */
struct sent {
	const struct xm_input *input;
	uint64_t request;
	struct xm_end partner, work;
	bool has_partner, has_work;
};

struct xm_report {
	struct xm_late *late;
	struct sent sent[WAITS];  /* as waits */
	struct wait waits[WAITS]; /* by their ends; a later one replaces what is in its place */
	struct xf_map row_map, blame_map;
	struct row *rows;
	struct blame *blames;
	uint32_t row_room, blame_room;
};

struct xm_report *xm_report_create(struct xm_late *late)
{
	struct xm_report *report = calloc(1, sizeof(*report));

	if (report) {
		report->late = late;
		xf_map_init(&report->row_map, MAX_ROWS, UINT32_MAX);
		xf_map_init(&report->blame_map, MAX_RANKS, UINT32_MAX);
	}
	return report;
}

static struct row *row_of(struct xm_report *report, uint64_t comm,
			  const struct xm_function *function, uint32_t *ret_index)
{
	uint64_t key[2] = { xm_waits_for_requests(function) ? 0 : comm, (uintptr_t)function };
	uint32_t index = xf_map_add(&report->row_map, key, sizeof(key));

	if (index == XF_NONE ||
	    !xf_room_for(&report->rows, &report->row_room, index, sizeof(*report->rows)))
		return NULL;
	report->rows[index].comm = key[0];
	report->rows[index].function = function;
	*ret_index = index;
	return &report->rows[index];
}

static struct blame *blame_of(struct xm_report *report, uint32_t row, int32_t rank)
{
	uint32_t key[2] = { row, (uint32_t)rank };
	uint32_t index = xf_map_add(&report->blame_map, key, sizeof(key));

	if (index == XF_NONE ||
	    !xf_room_for(&report->blames, &report->blame_room, index, sizeof(*report->blames)))
		return NULL;
	report->blames[index].row = row;
	report->blames[index].rank = rank;
	return &report->blames[index];
}

void xm_report_call(struct xm_report *report, uint64_t comm, const struct xm_function *function,
		    const struct xm_end *end)
{
	struct blame *blame;
	uint32_t index;
	struct row *row = row_of(report, comm, function, &index);

	if (!row || function->role == XM_OTHER || function->role == XM_PROBE)
		return;
	row->count++;
	row->bytes += end->bytes > 0 ? (uint64_t)end->bytes : 0;
	row->time += (uint64_t)(end->end - end->start);
	blame = blame_of(report, index, end->rank);
	if (blame) {
		blame->count++;
		blame->time += (uint64_t)(end->end - end->start);
	}
}

static void waited(struct xm_report *report, struct row *row, uint32_t index, int32_t who,
		   int32_t whom, int64_t ns)
{
	struct blame *blame = blame_of(report, index, who);

	row->wait += (uint64_t)ns;
	if (blame)
		blame->wait += (uint64_t)ns;
	blame = blame_of(report, index, whom);
	if (blame)
		blame->caused += (uint64_t)ns;
}

/* A message that was sent when the call that waits for it was there already. */
static void late_for_wait(struct xm_report *report, const struct xm_end *from,
			  const struct xm_end *to)
{
	uint64_t hash = ((uint64_t)to->end + to->input->index) * 0x9e3779b97f4a7c15ull;
	struct wait *wait = &report->waits[hash >> 51];
	int64_t until = from->start < to->end ? from->start : to->end;
	uint32_t index;
	struct row *row = row_of(report, 0, to->waiter, &index);

	if (!row)
		return;
	if (wait->input != to->input || wait->end != to->end)
		*wait = (struct wait){ to->input, to->end, to->wait_start };
	row->late_senders++;
	if (until > wait->until) {
		waited(report, row, index, to->rank, from->rank, until - wait->until);
		wait->until = until;
	}
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static struct sent *sent_of(struct xm_report *report, const struct xm_end *end)
{
	uint64_t hash =
		(end->request + ((uint64_t)end->input->index << 40)) * 0x9e3779b97f4a7c15ull;
	struct sent *sent = &report->sent[hash >> 51];

	if (sent->input != end->input || sent->request != end->request)
		*sent = (struct sent){ .input = end->input, .request = end->request };
	return sent;
}

/*
 * Whoever waits for what it sent may wait for the receiver, once that has posted its receive, to
 * come into MPI.
 */
static void look_at_sent(struct xm_report *report, struct sent *sent)
{
	uint32_t index;

	if (sent->has_partner && sent->has_work && row_of(report, 0, sent->work.waiter, &index))
		xm_late_window(report->late, index, &sent->work, &sent->partner,
			       later(sent->work.wait_start, sent->partner.posted), sent->work.end);
}

void xm_report_sent(struct xm_report *report, uint64_t comm, const struct xm_end *work)
{
	struct sent *sent = sent_of(report, work);

	(void)comm;
	sent->work = *work;
	sent->has_work = true;
	look_at_sent(report, sent);
}

static bool blocks(const struct xm_function *receive)
{
	return receive->role == XM_RECEIVE || receive->role == XM_MATCHED;
}

/* The same for messages that are matched, in calls that block, and in waits for receives. */
static void look_for_late(struct xm_report *report, uint64_t comm, const struct xm_function *send,
			  const struct xm_function *receive, const struct xm_end *from,
			  const struct xm_end *to)
{
	uint32_t index;

	if (from->request) {
		struct sent *sent = sent_of(report, from);

		sent->partner = *to;
		sent->has_partner = true;
		look_at_sent(report, sent);
	} else if (send->role == XM_SEND && row_of(report, comm, send, &index)) {
		xm_late_window(report->late, index, from, to, later(from->start, to->posted),
			       from->end);
	}
	if (to->waiter && row_of(report, 0, to->waiter, &index))
		xm_late_window(report->late, index, to, from, later(to->wait_start, from->start),
			       to->end);
	else if ((blocks(receive) || receive->role == XM_SENDRECV ||
		  receive->role == XM_COMPLETE) &&
		 row_of(report, comm, receive, &index))
		xm_late_window(report->late, index, to, from, later(to->start, from->start),
			       to->end);
}

void xm_report_late(void *user, uint32_t index, int32_t who, int32_t partner, uint64_t ns)
{
	struct xm_report *report = user;
	struct blame *blame = blame_of(report, index, who);

	report->rows[index].late += ns;
	if (blame)
		blame->late += ns;
	blame = blame_of(report, index, partner);
	if (blame)
		blame->late_caused += ns;
}

void xm_report_message(struct xm_report *report, uint64_t comm, const struct xm_function *send,
		       const struct xm_function *receive, const struct xm_end *from,
		       const struct xm_end *to)
{
	uint32_t index;
	struct row *row;

	look_for_late(report, comm, send, receive, from, to);

	/* who posted a receive in time does something else meanwhile, until it waits for it */
	if (to->waiter && from->start > to->wait_start)
		late_for_wait(report, from, to);
	if ((blocks(receive) || receive->role == XM_SENDRECV || receive->role == XM_COMPLETE) &&
	    from->start > to->start && (row = row_of(report, comm, receive, &index))) {
		row->late_senders++;
		waited(report, row, index, to->rank, from->rank,
		       (from->start < to->end ? from->start : to->end) - to->start);
	}
	/* a send that lasts until its receiver has come waited for it */
	if (to->start > from->start && from->end >= to->start && send->role == XM_SEND &&
	    blocks(receive) && (row = row_of(report, comm, send, &index))) {
		row->late_receivers++;
		waited(report, row, index, from->rank, to->rank, to->start - from->start);
	}
}

struct waiting {
	struct xm_report *report;
	struct row *row;
	uint32_t index;
};

/* A nonblocking collective: the call that waits for its request does the waiting. */
static void member_waited(void *user, const struct xm_collective *c, const struct xf_member *to,
			  const struct xf_member *last)
{
	struct waiting *waiting = user;
	int64_t until = last->end.start < to->end.end ? last->end.start : to->end.end;

	if (c->function->role != XM_COLLECTIVE) {
		if (to->end.waiter && last->end.start > to->end.wait_start)
			late_for_wait(waiting->report, &last->end, &to->end);
	} else if (until > to->end.start) {
		waited(waiting->report, waiting->row, waiting->index, to->end.rank, last->end.rank,
		       until - to->end.start);
	}
}

void xm_report_collective(struct xm_report *report, const struct xm_collective *collective)
{
	struct waiting waiting = { .report = report };

	waiting.row = row_of(report, collective->comm, collective->function, &waiting.index);
	if (waiting.row)
		xm_each_wait(collective, &waiting, member_waited);
}

/* ---- printing ---- */

static const struct xm_report *sorting;

static int by_time(const void *left, const void *right)
{
	const struct row *a = &sorting->rows[*(const uint32_t *)left],
			 *b = &sorting->rows[*(const uint32_t *)right];

	if (a->wait != b->wait)
		return a->wait > b->wait ? -1 : 1;
	if (a->time != b->time)
		return a->time > b->time ? -1 : 1;
	return strcmp(a->function->name, b->function->name);
}

static uint32_t *sorted_rows(const struct xm_report *report)
{
	uint32_t *rows = calloc(report->row_map.count + 1, sizeof(*rows));

	for (uint32_t i = 0; rows && i < report->row_map.count; i++)
		rows[i] = i;
	sorting = report;
	if (rows)
		qsort(rows, report->row_map.count, sizeof(*rows), by_time);
	return rows;
}

/* The ranks that others waited for longest, at most SLOWEST of them. */
static uint32_t slowest(const struct xm_report *report, uint32_t row, const struct blame **ret)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < report->blame_map.count; i++) {
		const struct blame *blame = &report->blames[i];
		uint32_t at;

		if (blame->row != row || !blame->caused)
			continue;
		for (at = count; at && (ret[at - 1]->caused < blame->caused ||
					(ret[at - 1]->caused == blame->caused &&
					 ret[at - 1]->rank > blame->rank));
		     at--)
			if (at < SLOWEST)
				ret[at] = ret[at - 1];
		if (at < SLOWEST)
			ret[at] = blame;
		count += count < SLOWEST;
	}
	return count;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_json(const struct xm_report *report, const struct xm_mpi *mpi,
		       const uint32_t *rows, FILE *out)
{
	char name[20], label[XM_COMM_LABEL], escaped[6 * XM_COMM_LABEL];

	fputs("\"mpi\":[", out);
	for (uint32_t i = 0, printed = 0; i < report->row_map.count; i++) {
		const struct row *row = &report->rows[rows[i]];
		const char *text;
		bool first = true;

		if (!row->count)
			continue;
		text = xm_comm_label(mpi, row->comm, label);
		*xs_json_escape(escaped, text, strlen(text)) = '\0';
		fprintf(out,
			"%s\n{\"comm\":\"%s\",\"comm_name\":\"%s\",\"call\":\"MPI_%s\",\"calls\":"
			"%" PRIu64 ",\"bytes\":%" PRIu64 ",\"time_ns\":%" PRIu64
			",\"wait_ns\":%" PRIu64
			",\"wait_percent\":%.2f,\"late_progress_ns\":%" PRIu64
			",\"late_senders\":%" PRIu64 ",\"late_receivers\":%" PRIu64 ",\"ranks\":[",
			printed++ ? "," : "", xm_comm_name(row->comm, name), escaped,
			row->function->name, row->count, row->bytes, row->time, row->wait,
			share(row->wait, row->time), row->late, row->late_senders,
			row->late_receivers);
		for (uint32_t k = 0; k < report->blame_map.count; k++) {
			const struct blame *blame = &report->blames[k];

			if (blame->row != rows[i])
				continue;
			fprintf(out,
				"%s{\"rank\":%" PRId32 ",\"calls\":%" PRIu64 ",\"time_ns\":%" PRIu64
				",\"wait_ns\":%" PRIu64 ",\"waited_for_ns\":%" PRIu64
				",\"late_progress_ns\":%" PRIu64
				",\"late_progress_for_ns\":%" PRIu64 "}",
				first ? "" : ",", blame->rank, blame->count, blame->time,
				blame->wait, blame->caused, blame->late, blame->late_caused);
			first = false;
		}
		fputs("]}", out);
	}
	fputs("\n]", out);
}

void xm_report_print(const struct xm_report *report, const struct xm_mpi *mpi, FILE *out, bool json)
{
	uint32_t *rows = sorted_rows(report);
	char label[XM_COMM_LABEL], plain[XM_COMM_LABEL];

	if (!rows)
		return;
	if (json) {
		print_json(report, mpi, rows, out);
		free(rows);
		return;
	}
	fprintf(out, "%-24s %-24s %10s %16s %16s %16s %9s %18s %12s %14s  %s\n", "Communicator",
		"Call", "Calls", "Bytes", "Time (ns)", "Waiting (ns)", "Waiting",
		"Late progress (ns)", "Late senders", "Late receivers", "Waited for");
	for (uint32_t i = 0; i < report->row_map.count; i++) {
		const struct row *row = &report->rows[rows[i]];
		const struct blame *worst[SLOWEST];
		uint32_t count = slowest(report, rows[i], worst);
		const char *text;
		char call[32];

		if (!row->count)
			continue;
		(void)snprintf(call, sizeof(call), "MPI_%s", row->function->name);
		text = xm_comm_label(mpi, row->comm, label);
		*xs_plain(plain, text, strlen(text)) = '\0'; /* one line, as wide as it is long */
		fprintf(out,
			"%-24s %-24s %10" PRIu64 " %16" PRIu64 " %16" PRIu64 " %16" PRIu64
			" %7.2f %% %18" PRIu64 " %12" PRIu64 " %14" PRIu64 "  ",
			plain, call, row->count, row->bytes, row->time, row->wait,
			share(row->wait, row->time), row->late, row->late_senders,
			row->late_receivers);
		for (uint32_t k = 0; k < count; k++)
			fprintf(out, "%srank %" PRId32 " (%.0f %%)", k ? ", " : "", worst[k]->rank,
				share(worst[k]->caused, row->wait));
		fputs(count ? "\n" : "-\n", out);
	}
	free(rows);
}

void xm_report_free(struct xm_report *report)
{
	if (!report)
		return;
	xf_map_free(&report->row_map);
	xf_map_free(&report->blame_map);
	free(report->rows);
	free(report->blames);
	free(report);
}
