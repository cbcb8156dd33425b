#include "tables_options.h"

#include <getopt.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "nearest.h"
#include "text.h"
#include "version.h"

#define MEMORY	     (512u << 20)
#define LEAST_MEMORY (32u << 20)
#define MOST_MEMORY  ((uint64_t)1 << 40)

static void usage(void)
{
	puts("Usage: xstrace-tables [options] TRACE -o DIR\n"
	     "Makes tables of a trace (xstrace's, unitrace's, Kineto's; plain, .zst, .gz; a cut "
	     "one too): slices with depth,\n"
	     "parent and self time, arguments, flows, counters, marks, processes, threads, "
	     "devices, "
	     "metadata. Each is a\n"
	     "Parquet file in DIR, which is made. xstrace-query does this by itself.\n"
	     "  -o, --output DIR       The directory; no table may be in it\n"
	     "  --memory-limit BYTES   Use about so much memory (default 512M; from 32M to 1T); "
	     "more goes into files in DIR\n"
	     "  --threads N            Encode with N threads (default: one for each processor)\n"
	     "  --zstd-window BYTES    Accept .zst that need this window (default 8M, at most 2G)\n"
	     "  --progress FD          Show on this descriptor how far it is (default: stderr, "
	     "where "
	     "that is a terminal)\n"
	     "  --version, --help\n"
	     "Example: xstrace-tables app.4711.json -o app.tables\n"
	     "Exit status: 0: all is in the tables; 1: something was left out, and a line says "
	     "what; 125: there are no tables.");
}

/* "512M" in bytes, within the bounds; 0: no such number. */
static uint64_t size_of(const char *text, uint64_t least, uint64_t most)
{
	static const char suffixes[] = "KMGT";
	uint64_t bytes = 0;
	const char *suffix = NULL;

	if (*text < '0' || *text > '9')
		return 0;
	for (; *text >= '0' && *text <= '9'; text++) {
		bytes = bytes * 10 + (uint64_t)(*text - '0');
		if (bytes > most)
			return 0;
	}
	if (*text)
		suffix = strchr(suffixes, *text++);
	if (*text || (text[-1] > '9' && !suffix))
		return 0;
	for (long i = suffix ? suffix - suffixes + 1 : 0; i && bytes <= most; i--)
		bytes <<= 10;
	return bytes >= least && bytes <= most ? bytes : 0;
}

static int refuse(const char *what, const char *value)
{
	xs_tell("xstrace-tables: %s, not '%s'\n", what, value);
	return XT_FAILED + 1;
}

static const struct option table[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "memory-limit", required_argument, NULL, 'm' },
	{ "threads", required_argument, NULL, 't' },
	{ "zstd-window", required_argument, NULL, 'w' },
	{ "progress", required_argument, NULL, 'p' },
	{ "version", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int unknown(const char *given)
{
	char text[512];

	xs_say_unknown_option(text, sizeof(text), "xstrace-tables", given, &table[0].name,
			      sizeof(table) / sizeof(table[0]), sizeof(table[0]));
	xs_tell("%s\n", text);
	return XT_FAILED + 1;
}

static int take(int letter, char **argv, struct xt_options *options)
{
	uint64_t size;

	switch (letter) {
	case 'o':
		options->output = optarg;
		return optarg[0] ? 0 : refuse("-o takes a directory", optarg);
	case 'm':
		options->memory = size_of(optarg, LEAST_MEMORY, MOST_MEMORY);
		return options->memory
			       ? 0
			       : refuse("--memory-limit takes bytes from 32M to 1T", optarg);
	case 't':
		options->threads = (unsigned)size_of(optarg, 1, 32);
		return options->threads ? 0
					: refuse("--threads takes a number from 1 to 32", optarg);
	case 'w':
		size = size_of(optarg, 1u << XM_WINDOW_LOG_MIN, 1u << XM_WINDOW_LOG_MAX);
		for (options->window_log = XM_WINDOW_LOG_MIN; 1ull << options->window_log < size;)
			options->window_log++;
		return size ? 0 : refuse("--zstd-window takes bytes from 1K to 2G", optarg);
	case 'p':
		options->progress = (int)size_of(optarg, 1, 1 << 20);
		return options->progress ? 0 : refuse("--progress takes a descriptor", optarg);
	case 'v':
		puts("xstrace-tables " XS_VERSION);
		return 1;
	case 'h':
		usage();
		return 1;
	case ':':
		xs_tell("xstrace-tables: option %s needs a value\n", argv[optind - 1]);
		return XT_FAILED + 1;
	default:
		return unknown(argv[optind - 1]);
	}
}

int xt_options_parse(int argc, char **argv, struct xt_options *options)
{
	cpu_set_t processors;
	int letter, result;

	options->memory = MEMORY;
	options->progress = isatty(STDERR_FILENO) ? STDERR_FILENO : -1;
	options->window_log = XM_WINDOW_LOG;
	options->threads = sched_getaffinity(0, sizeof(processors), &processors) < 0
				   ? 1
				   : (unsigned)CPU_COUNT(&processors);
	options->threads = options->threads > 8 ? 8 : options->threads;
	opterr = 0;
	while ((letter = getopt_long(argc, argv, ":o:", table, NULL)) != -1) {
		result = take(letter, argv, options);
		if (result)
			return result;
	}
	if (optind + 1 != argc || !options->output) {
		xs_tell("xstrace-tables: one trace and -o DIR are needed; see xstrace-tables "
			"--help\n");
		return XT_FAILED + 1;
	}
	options->trace = argv[optind];
	return 0;
}
