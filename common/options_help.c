/*
 * What --help prints of the option table: all of it, or one topic with examples. docs/OPTIONS.md,
 * the manual pages and the shells' completions are made of it (scripts/help_pages.py).
 */
#include "options.h"

#include <string.h>

/* Options from `before` on, up to the next one's. */
static const struct topic {
	const char *before, *word, *heading, *examples;
} topics[] = {
	{ "host-timing", "reports", "Reports",
	  "xstrace ./app                                   tables of calls and device work\n"
	  "xstrace -c --tid -o calls.txt ./app             each call, with its thread, in a file\n"
	  "xstrace -h -d --report-format csv -o rep.csv ./app\n" },
	{ "chrome-call-logging", "traces", "Traces",
	  "xstrace --chrome-call-logging --chrome-kernel-logging ./app\n"
	  "xstrace --chrome-itt-logging python train.py    tasks of every process\n"
	  "mpiexec -n 4 xstrace --chrome-mpi-logging ./app\n" },
	{ "chrome-no-thread-on-device", "buffers", "Tracks and buffers",
	  "xstrace --chrome-kernel-logging --format perfetto ./app\n"
	  "xstrace --chrome-itt-logging --compress zstd --ring-size 8M ./app\n" },
	{ "start-paused", "when", "What is recorded, and when",
	  "xstrace --chrome-kernel-logging --delay 10s --duration 2s ./app\n"
	  "xstrace --chrome-itt-logging --iterations train::step:100-110 ./app\n"
	  "xstrace -d --include-kernels gemm,conv ./app\n" },
	{ "flight-recorder", "flight", "Flight recorder",
	  "xstrace --chrome-itt-logging --flight-recorder 10s --trigger 'task:step>50ms' ./app\n" },
	{ "session", "control", "Control from another shell",
	  "xstrace --session s --chrome-call-logging --start-paused ./app\n"
	  "xstrace --resume s                              begin, from another shell\n"
	  "xstrace --stacks s                              where its threads are\n" },
	{ "top", "live", "While it runs",
	  "xstrace --once --top                            what runs do now, one picture\n"
	  "xstrace --once --json --top                     the same as JSON\n"
	  "xstrace --export prometheus:9400 --chrome-kernel-logging ./app\n" },
	{ "metric-query", "metrics", "Hardware metrics",
	  "xstrace --metric-list\n"
	  "xstrace -q -g ComputeBasic -o rep.csv ./app\n"
	  "xstrace --system-metrics --chrome-kernel-logging ./app\n" },
	{ "output", "output", "Output files",
	  "xstrace -h -o report.txt ./app                  report.<pid>.txt\n"
	  "xstrace --chrome-itt-logging --output-dir-path traces ./app\n"
	  "xstrace --chrome-itt-logging --result-dir results ./app\n" },
	{ "verbose", "information", "Information",
	  "xstrace --device-list\n"
	  "xstrace --help output                           this topic alone; topics: --help "
	  "topics\n"
	  "xstrace --help ring-size                        this option\n" },
};
#define TOPICS (sizeof(topics) / sizeof(topics[0]))

static void describe(const struct xs_option *row, char *text, size_t size)
{
	char letter[8] = "";

	if (row->letter)
		(void)snprintf(letter, sizeof(letter), " [-%c]", row->letter);
	if (row->type == XS_OPT_MAYBE_COUNT || row->type == XS_OPT_MAYBE_TEXT)
		(void)snprintf(text, size, "--%s%s[=%s]", row->name, letter, row->argument);
	else
		(void)snprintf(text, size, "--%s%s%s%s", row->name, letter,
			       row->argument ? " " : "", row->argument ? row->argument : "");
}

static const struct topic *topic_before(const char *name)
{
	for (size_t i = 0; i < TOPICS; i++)
		if (!strcmp(topics[i].before, name))
			return &topics[i];
	return NULL;
}

static void print_all(FILE *out)
{
	char text[128];

	fputs("Usage: xstrace [options] <application> <arguments>\n", out);
	for (size_t i = 0; i < xs_option_count; i++) {
		const struct topic *topic = topic_before(xs_option_table[i].name);

		if (topic)
			fprintf(out, "\n%s:\n", topic->heading);
		describe(&xs_option_table[i], text, sizeof(text));
		fprintf(out, "%-36s %s\n", text, xs_option_table[i].help);
	}
	fputs("\nWithout options for reports or traces: -h and -d. Exit status: the application's; "
	      "125: xstrace itself\n"
	      "failed; 126: the application cannot be run; 127: it was not found. One part of this "
	      "page, with examples:\n"
	      "xstrace --help TOPIC, an option's name or one of\n",
	      out);
	for (size_t i = 0; i < TOPICS; i++)
		fprintf(out, "%s%s", topics[i].word, i + 1 < TOPICS ? ", " : ".\n");
}

static void print_topics(FILE *out)
{
	fputs("xstrace --help TOPIC, with one of\n", out);
	for (size_t i = 0; i < TOPICS; i++)
		fprintf(out, "  %-12s %s\n", topics[i].word, topics[i].heading);
	fputs("or an option's name, as in xstrace --help ring-size\n", out);
}

/* Text in lines of 72 columns, each behind six blanks. */
static void print_wrapped(FILE *out, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column && column + 1 + n > 72)
			column = 0;
		fprintf(out, "%s%.*s", column ? " " : "\n      ", (int)n, text);
		column += n + (column != 0);
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

static void print_option(FILE *out, const struct xs_option *row)
{
	char text[128];

	describe(row, text, sizeof(text));
	fprintf(out, "  %s", text);
	print_wrapped(out, row->help);
}

static void print_examples(FILE *out, const struct topic *topic)
{
	const char *line = topic->examples;

	fputs("\nExamples:\n", out);
	for (const char *end; (end = strchr(line, '\n')); line = end + 1)
		fprintf(out, "  %.*s\n", (int)(end - line), line);
}

static void print_topic(FILE *out, const struct topic *topic)
{
	bool inside = false;

	fprintf(out, "%s:\n", topic->heading);
	for (size_t i = 0; i < xs_option_count; i++) {
		const struct topic *next = topic_before(xs_option_table[i].name);

		inside = next ? next == topic : inside;
		if (inside)
			print_option(out, &xs_option_table[i]);
	}
	print_examples(out, topic);
}

/* One option, by its name or letter. */
static bool print_named(FILE *out, const char *name)
{
	const struct topic *topic = NULL;
	bool letter = name[0] && !name[1];

	for (size_t i = 0; i < xs_option_count; i++) {
		const struct xs_option *row = &xs_option_table[i];
		const struct topic *next = topic_before(row->name);

		topic = next ? next : topic;
		if (letter ? row->letter != name[0] : strcmp(row->name, name))
			continue;
		print_option(out, row);
		fprintf(out, "More of the kind: xstrace --help %s\n", topic->word);
		return true;
	}
	return false;
}

/* The topic or option whose name is most like this one. */
static const char *nearest(const char *name)
{
	size_t best = strlen(name) / 2 + 2;
	const char *found = "topics";

	for (size_t i = 0; i < TOPICS + xs_option_count; i++) {
		const char *other = i < TOPICS ? topics[i].word : xs_option_table[i - TOPICS].name;
		size_t d = xs_edit_distance(other, name, strlen(name));

		if (d < best) {
			best = d;
			found = other;
		}
	}
	return found;
}

const char *xs_options_help(FILE *out, const char *topic)
{
	const char *name = topic;

	if (!topic || !strcmp(topic, "all")) {
		print_all(out);
		return NULL;
	}
	if (!strcmp(topic, "topics")) {
		print_topics(out);
		return NULL;
	}
	for (size_t i = 0; i < TOPICS; i++)
		if (!strcmp(topics[i].word, topic)) {
			print_topic(out, &topics[i]);
			return NULL;
		}
	while (*name == '-')
		name++;
	return print_named(out, name) ? NULL : nearest(name);
}
