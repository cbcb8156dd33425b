#include "options.h"

#include <string.h>

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

/* Headings of --help and docs/OPTIONS.md, each before the option that it names. */
static const struct {
	const char *before, *heading;
} headings[] = {
	{ "host-timing", "Reports" },
	{ "chrome-call-logging", "Traces" },
	{ "chrome-no-thread-on-device", "Tracks and buffers" },
	{ "start-paused", "What is recorded, and when" },
	{ "flight-recorder", "Flight recorder" },
	{ "session", "Control from another shell" },
	{ "top", "While it runs" },
	{ "metric-query", "Hardware metrics" },
	{ "output", "Output files" },
	{ "verbose", "Information" },
};

static const char *heading_before(const char *name)
{
	for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++)
		if (!strcmp(headings[i].before, name))
			return headings[i].heading;
	return NULL;
}

void xs_options_help(FILE *out)
{
	char text[128];

	fputs("Usage: xstrace [options] <application> <arguments>\n", out);
	for (size_t i = 0; i < xs_option_count; i++) {
		const char *heading = heading_before(xs_option_table[i].name);

		if (heading)
			fprintf(out, "\n%s:\n", heading);
		describe(&xs_option_table[i], text, sizeof(text));
		fprintf(out, "%-36s %s\n", text, xs_option_table[i].help);
	}
	fputs("\nWithout options for reports or traces: -h and -d. Exit status: the application's; "
	      "125: xstrace itself\n"
	      "failed; 126: the application cannot be run; 127: it was not found.\n",
	      out);
}
