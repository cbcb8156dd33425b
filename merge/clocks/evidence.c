#include "evidence.h"

#include <inttypes.h>
#include <stdlib.h>

#include "json.h"
#include "mpi_call.h"

static bool is_bit(const struct xm_clock *clock, uint32_t number)
{
	return clock->calls[number / 64] >> number % 64 & 1;
}

/* By how much its times were moved at one of them. */
static int64_t moved(const struct xm_clock *clock, const struct xm_input *input, int64_t time)
{
	return xm_true_time(clock, time + input->shift) - (time + input->shift);
}

static bool is_moved(const struct xm_clock *clock, const struct xm_input *input)
{
	return input->first <= input->last &&
	       (moved(clock, input, input->first) || moved(clock, input, input->last));
}

static void put_text(FILE *out, const char *text)
{
	size_t length = strlen(text);
	char *escaped = malloc(6 * length + 1);

	if (escaped)
		fprintf(out, "%.*s", (int)(xs_json_escape(escaped, text, length) - escaped),
			escaped);
	free(escaped);
}

void xm_evidence_json(FILE *out, const struct xm_clock *clock)
{
	const struct xm_proof *proof = &clock->proof;
	const char *separator = ",\"tied_by\":[";

	for (uint32_t i = 0; i < XM_FUNCTIONS; i++) {
		if (!is_bit(clock, i))
			continue;
		fprintf(out, "%s\"MPI_%s\"", separator, xm_function_at(i)->name);
		separator = ",";
	}
	if (separator[1] == '\0')
		fputc(']', out);
	if (proof->function)
		fprintf(out,
			",\"not_the_hosts\":{\"call\":\"MPI_%s\",\"from_rank\":%" PRId64
			",\"to_rank\":%" PRId64 ",\"early_ns\":%" PRId64 "}",
			proof->function->name, proof->from->rank, proof->to->rank, proof->early);
}

static void report_json(FILE *out, const struct xm_input *input, const struct xm_clock *clock,
			bool first)
{
	fprintf(out, "%s\n{\"rank\":%" PRId64 ",\"host\":\"", first ? "" : ",", input->rank);
	put_text(out, input->host);
	fprintf(out, "\",\"moved_ns\":%" PRId64 ",\"moved_at_end_ns\":%" PRId64 ",\"error_ns\":",
		moved(clock, input, input->first), moved(clock, input, input->last));
	if (clock->error == XM_NO_TIME)
		fputs("null", out);
	else
		fprintf(out, "%" PRId64, clock->error);
	xm_evidence_json(out, clock);
	fputc('}', out);
}

static void put_proof(FILE *out, const struct xm_proof *proof)
{
	fprintf(out,
		"by one clock MPI_%s ended on rank %" PRId64 " %" PRId64 " ns before rank %" PRId64
		" began what it waited for",
		proof->function->name, proof->to->rank, proof->early, proof->from->rank);
}

static void report_text(FILE *out, const struct xm_input *input, const struct xm_clock *clock)
{
	const char *separator = "  ";
	char error[24] = "unknown";

	if (clock->error != XM_NO_TIME)
		(void)snprintf(error, sizeof(error), "%" PRId64, clock->error);
	fprintf(out, "%6" PRId64 "  %-16s %20" PRId64 " %20" PRId64 " %12s", input->rank,
		input->host, moved(clock, input, input->first), moved(clock, input, input->last),
		error);
	for (uint32_t i = 0; i < XM_FUNCTIONS; i++)
		if (is_bit(clock, i)) {
			fprintf(out, "%sMPI_%s", separator, xm_function_at(i)->name);
			separator = ", ";
		}
	if (clock->proof.function) {
		fputs("; ", out);
		put_proof(out, &clock->proof);
	}
	fputc('\n', out);
}

void xm_evidence_report(FILE *out, const struct xm_merge *merge, const struct xm_clocks *clocks,
			bool json)
{
	bool first = true;

	if (json)
		fputs("\"moved\":[", out);
	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = merge->order[i];
		const struct xm_clock *clock = input->usable ? xm_clocks_of(clocks, input) : NULL;

		if (!clock || input->rank < 0 || !is_moved(clock, input))
			continue;
		if (json) {
			report_json(out, input, clock, first);
		} else {
			if (first)
				fprintf(out,
					"\nRanks that were moved\n%6s  %-16s %20s %20s %12s  %s\n",
					"Rank", "Host", "At its begin (ns)", "At its end (ns)",
					"Error (ns)", "Evidence");
			report_text(out, input, clock);
		}
		first = false;
	}
	if (json)
		fputs(first ? "]" : "\n]", out);
	else if (first)
		fputs("\nNo rank was moved.\n", out);
}

void xm_evidence_say(const struct xm_merge *merge, const struct xm_clocks *clocks)
{
	const char *last = "";

	for (uint32_t i = 0; i < merge->count; i++) {
		const struct xm_input *input = merge->order[i];
		const struct xm_proof *proof = input->usable ? &xm_clocks_of(clocks, input)->proof
							     : NULL;

		if (!proof || !proof->function || !strcmp(last, input->host))
			continue; /* those of a host stand together */
		last = input->host;
		xm_say("[WARNING] ranks on %s have clocks of their own: by one clock MPI_%s ended "
		       "on rank %" PRId64 " %" PRId64 " ns before rank %" PRId64
		       " began what it waited for",
		       input->host, proof->function->name, proof->to->rank, proof->early,
		       proof->from->rank);
	}
}
