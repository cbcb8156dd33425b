#include "merge_options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "merge.h"
#include "version.h"

static void usage(FILE *out)
{
	fputs("Usage: xstrace-merge [options] <trace or directory>...\n"
	      "Makes one trace of many (xstrace's, unitrace's, Kineto's; plain, .zst, .gz; cut ones too), on one timeline.\n"
	      "  -o, --output FILE      Write FILE, compressed if it ends in .zst (default xstrace.all.json); a taken name gets a number\n"
	      "  --format json|perfetto Write Chrome's JSON (default) or Perfetto's protobuf (default for .pftrace)\n"
	      "  --no-clock-sync        Leave the clocks as they are\n"
	      "  --report FILE          Write where MPI ranks wait for each other: text, JSON if FILE ends in .json, - for stdout;\n"
	      "                         without -o no merged trace is written\n"
	      "  --version, --help\n"
	      "Exit status: 0 all is merged; 1 something was left out, and said; 125 nothing could be done.\n",
	      out);
}

int xm_options_parse(int argc, char **argv, struct xm_options *options)
{
	static const struct option table[] = { { "output", required_argument, NULL, 'o' },	 { "outputFile", required_argument, NULL, 'o' },
					       { "format", required_argument, NULL, 'f' },	 { "no-clock-sync", no_argument, NULL, 'n' },
					       { "report", required_argument, NULL, 'r' },	 { "version", no_argument, NULL, 'v' },
					       { "help", no_argument, NULL, 'h' },		 { NULL, 0, NULL, 0 } };
	const char *format = NULL;
	int letter;

	opterr = 0;
	while ((letter = getopt_long(argc, argv, ":o:", table, NULL)) != -1) {
		switch (letter) {
		case 'o':
			options->output = optarg;
			break;
		case 'f':
			format = optarg;
			break;
		case 'n':
			options->no_sync = true;
			break;
		case 'r':
			options->report = optarg;
			break;
		case 'v':
			puts("xstrace-merge " XS_VERSION);
			return 1;
		case 'h':
			usage(stdout);
			return 1;
		default:
			xm_say(letter == ':' ? "xstrace-merge: option %s needs a value" : "xstrace-merge: unknown option %s; see xstrace-merge --help",
			       argv[optind - 1]);
			return XM_FAILED + 1;
		}
	}
	if (format && strcmp(format, "json") && strcmp(format, "perfetto")) {
		xm_say("xstrace-merge: --format takes json or perfetto, not '%s'", format);
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
	options->perfetto = format ? format[0] == 'p' :
				     options->output && (xm_ends_with(options->output, ".pftrace") || xm_ends_with(options->output, ".pftrace.zst"));
	if (!options->output && !options->report)
		options->output = options->perfetto ? "xstrace.all.pftrace" : "xstrace.all.json";
	return 0;
}
