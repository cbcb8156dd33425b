/*
 * What the output says of its inputs: their names and places, how they ended, what they lost, and
 * how their clocks were corrected.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "evidence.h"
#include "json.h"
#include "sink.h"
#include "version.h"

static void put_string(FILE *out, const char *key, const char *text)
{
	size_t length = strlen(text);
	char *escaped = malloc(6 * length + 1);

	if (!escaped)
		return;
	fprintf(out, "\"%s\":\"%.*s\"", key, (int)(xs_json_escape(escaped, text, length) - escaped),
		escaped);
	free(escaped);
}

static void put_number(FILE *out, const char *key, int64_t value)
{
	if (value >= 0)
		fprintf(out, ",\"%s\":%" PRId64, key, value);
}

/* The host of a clock's first input. */
static const struct xm_input *owner(const struct xm_merge *merge, uint32_t clock)
{
	for (uint32_t i = 0; i < merge->count; i++)
		if (merge->order[i]->clock == clock)
			return merge->order[i];
	return NULL;
}

/*
 * What is added to the time from_ns of this clock, how fast that grows, how wrong it can be, and
 * where another piece begins.
 */
static void put_clock(FILE *out, const struct xm_clock *clock)
{
	fprintf(out,
		"\"offset_ns\":%" PRId64 ",\"from_ns\":%" PRId64
		",\"drift_ppm\":%.6f,\"error_ns\":",
		clock->offset, clock->start, clock->drift * 1e6);
	if (clock->error == XM_NO_TIME)
		fputs("null", out);
	else
		fprintf(out, "%" PRId64, clock->error);
	for (uint32_t i = 0; i < clock->piece_count; i++)
		fprintf(out,
			"%s{\"offset_ns\":%" PRId64 ",\"from_ns\":%" PRId64
			",\"drift_ppm\":%.6f}%s",
			i ? "," : ",\"pieces\":[", clock->pieces[i].offset, clock->pieces[i].from,
			clock->pieces[i].drift * 1e6, i + 1 < clock->piece_count ? "" : "]");
	if (clock->violated)
		fprintf(out, ",\"uneven_ns\":%" PRIu64, clock->violated);
}

void xm_put_metadata(FILE *out, const struct xm_merge *merge, const struct xm_clocks *clocks,
		     bool synced)
{
	const struct xm_input *input;

	fprintf(out,
		"\"tool\":\"xstrace-merge\",\"version\":\"" XS_VERSION "\",\"inputs\":%" PRIu32
		",\"clock_sync\":%s,\"clocks\":[",
		merge->count, synced ? "true" : "false");
	for (uint32_t clock = 0; (input = owner(merge, clock)); clock++) {
		const struct xm_clock *c = xm_clocks_of(clocks, input);

		fputs(clock ? ",{" : "{", out);
		put_string(out, "host", input->host);
		put_number(out, "rank", input->rank);
		fputc(',', out);
		put_clock(out, c);
		if (synced)
			fprintf(out, ",\"relative_to\":%" PRIu32, c->root);
		xm_evidence_json(out, c);
		fputc('}', out);
	}
	fputc(']', out);
}

/* Members of the input's object behind its first, and the closing brace. */
static void put_input(FILE *out, const struct xm_input *input, const struct xm_clock *clock)
{
	if (!input->usable) {
		fputs(",\"left_out\":true}", out);
		return;
	}
	fputc(',', out);
	put_string(out, "tool", input->tool[0] ? input->tool : "unknown");
	fputc(',', out);
	put_string(out, "host", input->host);
	put_number(out, "rank", input->rank);
	put_number(out, "pid", input->pid);
	put_number(out, "ppid", input->ppid);
	if (input->run[0]) {
		fputc(',', out);
		put_string(out, "run", input->run);
	}
	if (input->end[0]) {
		fputc(',', out);
		put_string(out, "end", input->end);
		put_number(out, "status", input->status);
	}
	put_number(out, "lost", input->lost);
	put_number(out, "untimed_commands", input->untimed);
	put_number(out, "open_commands", input->open_commands);
	put_number(out, "open_requests", input->open_requests);
	fprintf(out, ",\"events\":%" PRIu64, input->events);
	if (input->recovered)
		fputs(",\"recovered\":true", out);
	if (input->reader.cut)
		fputs(",\"cut\":true", out);
	if (input->is_written)
		fputs(",\"still_written\":true", out);
	if (input->reader.left_out || input->unfit)
		fprintf(out, ",\"events_left_out\":%" PRIu64,
			input->reader.left_out + input->unfit);
	if (input->half_arrows)
		fprintf(out, ",\"half_arrows\":%" PRIu64, input->half_arrows);
	if (!input->has_base && input->first <= input->last)
		fputs(",\"start_unknown\":true", out);
	if (input->in_calls)
		fprintf(out, ",\"in_call\":%s", input->in_calls);
	if (input->overhead)
		fprintf(out, ",\"overhead\":%s", input->overhead);
	fputs(",\"clock\":{", out);
	put_clock(out, clock);
	fputs("}}", out);
}

void xm_put_summary(FILE *out, const struct xm_merge *merge, const struct xm_clocks *clocks,
		    const struct xm_totals *totals)
{
	int64_t lost = 0;

	for (uint32_t i = 0; i < merge->count; i++)
		lost += merge->inputs[i].lost > 0 ? merge->inputs[i].lost : 0;
	fprintf(out,
		"\"lost\":%" PRId64 ",\"messages\":{\"matched\":%" PRIu64 ",\"unmatched\":%" PRIu64
		",\"no_room\":%" PRIu64,
		lost, totals->messages, totals->alone, totals->dropped);
	if (totals->early)
		fprintf(out, ",\"early\":%" PRIu64 ",\"early_ns\":%" PRId64, totals->early,
			totals->early_ns);
	fputs("},\"inputs\":[", out);
	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = merge->order[i];

		fputs(i ? ",\n{" : "\n{", out);
		put_string(out, "file", input->path);
		put_input(out, input, xm_clocks_of(clocks, input));
	}
	fputc(']', out);
}

size_t xm_process_name(const struct xm_input *input, const struct xm_process *process, char *out,
		       size_t room)
{
	char rank[32] = "";

	if (input->rank >= 0 && !(process->name && !strncmp(process->name, "\"RANK ", 6)))
		(void)snprintf(rank, sizeof(rank), "RANK %" PRId64 " ", input->rank);
	if (process->name)
		return (size_t)snprintf(out, room, "\"%s%s", rank, process->name + 1);
	return (size_t)snprintf(out, room, "\"%sprocess %" PRId64 "\"", rank,
				process->is_number ? process->pid : 0);
}

bool xm_next_process(const struct xm_merge *merge, uint32_t *place, uint32_t *part,
		     const struct xm_input **input, const struct xm_process **process)
{
	for (; *place < merge->count; (*place)++, *part = 0) {
		*input = merge->order[*place];
		if (*part < (*input)->pids.count) {
			*process = &(*input)->processes[(*part)++];
			return true;
		}
	}
	return false;
}
