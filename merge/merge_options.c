#include "merge_options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge.h"
#include "nearest.h"
#include "version.h"

static void usage(FILE *out)
{
	fputs("Usage: xstrace-merge [options] <trace or directory>...\n"
	      "Makes one trace of many (xstrace's, unitrace's, Kineto's; plain, .zst, .gz; cut "
	      "ones too), on one timeline.\n"
	      "  -o, --output FILE      Write FILE, compressed if it ends in .zst (default "
	      "xstrace.all.json); a taken name gets a number\n"
	      "  --format FORMAT        json (Chrome's, default), kineto (that with what Kineto's "
	      "files say) or perfetto\n"
	      "                         (protobuf, default for .pftrace)\n"
	      "  --no-clock-sync        Leave the clocks as they are\n"
	      "  --zstd-window BYTES    Accept .zst that need this window (default 8M; at most 2G; "
	      "rounded up to a power of two)\n"
	      "  --wait SECONDS         Wait so long for traces that are still being written "
	      "(default 10; 0: merge what is there)\n"
	      "  --report FILE          Write where MPI ranks wait for each other: text, JSON if "
	      "FILE ends in .json, - for stdout;\n"
	      "                         without -o no merged trace is written\n"
	      "  --version              Print the version\n"
	      "  --help                 Print this help\n"
	      "Exit status: 0: all is merged; 1: something was left out, and a line says what; "
	      "125: nothing could be done.\n",
	      out);
}

/* "64M" as the power of two that it is, or the next one; 0: no such number. */
static unsigned window_log(const char *text)
{
	static const char suffixes[] = "KMG";
	unsigned long long bytes;
	const char *suffix;
	unsigned log = XM_WINDOW_LOG_MIN;
	char *end;

	bytes = strtoull(text, &end, 10);
	suffix = *end ? strchr(suffixes, *end) : NULL;
	if (suffix)
		end++;
	if (text[0] < '0' || text[0] > '9' || *end || bytes > 1ull << XM_WINDOW_LOG_MAX)
		return 0;
	bytes <<= suffix ? 10 * (suffix - suffixes + 1) : 0;
	if (bytes < 1ull << XM_WINDOW_LOG_MIN || bytes > 1ull << XM_WINDOW_LOG_MAX)
		return 0;
	while (1ull << log < bytes)
		log++;
	return log;
}

static const struct option table[] = {
	{ "output", required_argument, NULL, 'o' }, { "outputFile", required_argument, NULL, 'o' },
	{ "format", required_argument, NULL, 'f' }, { "no-clock-sync", no_argument, NULL, 'n' },
	{ "report", required_argument, NULL, 'r' }, { "version", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },	    { "zstd-window", required_argument, NULL, 'w' },
	{ "wait", required_argument, NULL, 't' },   { NULL, 0, NULL, 0 },
};

static int unknown(const char *given)
{
	char text[512];

	xs_say_unknown_option(text, sizeof(text), "xstrace-merge", given, &table[0].name,
			      sizeof(table) / sizeof(table[0]), sizeof(table[0]));
	xm_say("%s", text);
	return XM_FAILED + 1;
}

/* One option. 0: go on; else what xm_options_parse() returns. */
static int take(int letter, char **argv, struct xm_options *options, const char **format)
{
	char *end;

	switch (letter) {
	case 'o':
		options->output = optarg;
		return 0;
	case 'f':
		*format = optarg;
		return 0;
	case 'n':
		options->no_sync = true;
		return 0;
	case 't':
		options->wait = (unsigned)strtoul(optarg, &end, 10);
		if (optarg[0] >= '0' && optarg[0] <= '9' && !*end && strlen(optarg) < 6)
			return 0;
		xm_say("xstrace-merge: --wait takes seconds from 0 to 99999, not '%s'", optarg);
		return XM_FAILED + 1;
	case 'r':
		options->report = optarg;
		return 0;
	case 'w':
		options->window_log = window_log(optarg);
		if (options->window_log)
			return 0;
		xm_say("xstrace-merge: --zstd-window takes bytes from 1K to 2G, not '%s'", optarg);
		return XM_FAILED + 1;
	case 'v':
		puts("xstrace-merge " XS_VERSION);
		return 1;
	case 'h':
		usage(stdout);
		return 1;
	case ':':
		xm_say("xstrace-merge: option %s needs a value", argv[optind - 1]);
		return XM_FAILED + 1;
	default:
		return unknown(argv[optind - 1]);
	}
}

int xm_options_parse(int argc, char **argv, struct xm_options *options)
{
	const char *format = NULL;
	int letter, result;

	options->window_log = XM_WINDOW_LOG;
	options->wait = 10;
	opterr = 0;
	while ((letter = getopt_long(argc, argv, ":o:", table, NULL)) != -1) {
		result = take(letter, argv, options, &format);
		if (result)
			return result;
	}
	if (format && strcmp(format, "json") && strcmp(format, "perfetto") &&
	    strcmp(format, "kineto")) {
		xm_say("xstrace-merge: --format takes json, kineto or perfetto, not '%s'", format);
		return XM_FAILED + 1;
	}
	if (options->output && (!options->output[0] || strlen(options->output) > PATH_MAX - 16)) {
		xm_say("xstrace-merge: -o takes a file name, not '%s'", options->output);
		return XM_FAILED + 1;
	}
	if (optind == argc) {
		xm_say("xstrace-merge: no traces given; see xstrace-merge --help");
		return XM_FAILED + 1;
	}
	options->perfetto = format ? format[0] == 'p'
				   : options->output &&
					     (xm_ends_with(options->output, ".pftrace") ||
					      xm_ends_with(options->output, ".pftrace.zst"));
	options->kineto = format && format[0] == 'k';
	if (!options->output && !options->report)
		options->output = options->perfetto ? "xstrace.all.pftrace" : "xstrace.all.json";
	return 0;
}
