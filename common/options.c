#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

#define AT(field) offsetof(struct xs_options, field)
#define FLAG(letter, name, field, help) \
	{ letter, name, XS_OPT_FLAG, AT(field), NULL, NULL, 0, 0, NULL, help, XS_LAST }
#define COUNT(letter, name, field, argument, low, high, help) \
	{ letter, name, XS_OPT_COUNT, AT(field), argument, NULL, low, high, NULL, help, XS_LAST }
/* -1, too: all that there can be, and what is meant if the option is not given. */
#define COUNT_OR_ALL(letter, name, field, argument, low, high, help) \
	{ letter, name, XS_OPT_COUNT, AT(field), argument, "-1", low, high, NULL, help, XS_LAST }
/* --name or --name=N: without a number `otherwise`. */
#define MAYBE_COUNT(letter, name, field, low, high, otherwise, help)                      \
	{ letter, name,	  XS_OPT_MAYBE_COUNT, AT(field), "N", otherwise, low, high, NULL, \
	  help,	  XS_LAST }
#define SIZE(letter, name, field, argument, low, high, help) \
	{ letter, name, XS_OPT_SIZE, AT(field), argument, NULL, low, high, NULL, help, XS_LAST }
#define TIME(name, field, high, help) \
	{ 0, name, XS_OPT_TIME, AT(field), "TIME", NULL, 1000000, high, NULL, help, XS_LAST }
#define CHOICE(letter, name, field, choices, help) \
	{ letter, name, XS_OPT_CHOICE, AT(field), choices, choices, 0, 0, NULL, help, XS_LAST }
#define ROOM(field) sizeof(((struct xs_options *)NULL)->field)
#define TEXT(letter, name, field, argument, help)                            \
	{                                                                    \
		letter, name,	     XS_OPT_TEXT, AT(field), argument, NULL, \
		0,	ROOM(field), NULL,	  help,	     XS_LAST         \
	}
/* Given more than once they add up; room is left for what the launcher makes of them. */
#define TEXTS(letter, name, field, argument, adds, help) \
	{ letter, name, XS_OPT_TEXT, AT(field), argument, NULL, 0, XS_NAMES_MAX, NULL, help, adds }
/* Text of a syntax: `syntax` says what it takes when `valid` does not like it. */
#define CHECKED(letter, name, field, argument, valid, syntax, help)         \
	{ letter, name,	       XS_OPT_CHECKED, AT(field), argument, syntax, \
	  0,	  ROOM(field), valid,	       help,	  XS_LAST }
#define LIST(letter, name, field, argument, syntax, help)                   \
	{ letter, name,	       XS_OPT_CHECKED, AT(field), argument, syntax, \
	  0,	  ROOM(field), is_numbers,     help,	  XS_COMMA }

#define SESSION_SYNTAX "a name of at most 128 letters, digits, '_', '-' and '.'"

static bool is_session(const char *text)
{
	size_t n =
		strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");

	return n && n <= 128 && !text[n];
}

/* A decimal number from *text on, which is moved behind it. */
static bool take_number(const char **text, uint64_t *ret)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*ret = strtoull(*text, &end, 10);
	*text = end;
	return !errno;
}

/* "7" or "3-7". */
static bool take_range(const char **text, uint64_t *ret_first, uint64_t *ret_last)
{
	if (!take_number(text, ret_first))
		return false;
	*ret_last = *ret_first;
	if (**text != '-')
		return true;
	++*text;
	return take_number(text, ret_last) && *ret_first <= *ret_last;
}

static bool find_number(const char *text, uint64_t number, bool *ret_listed, uint64_t *ret_highest)
{
	uint64_t first, last;

	*ret_listed = false;
	*ret_highest = 0;
	for (;; text++) {
		if (!take_range(&text, &first, &last))
			return false;
		*ret_listed |= number >= first && number <= last;
		if (last > *ret_highest)
			*ret_highest = last;
		if (*text != ',')
			return !*text;
	}
}

static bool is_numbers(const char *text)
{
	uint64_t highest;
	bool listed;

	return find_number(text, 0, &listed, &highest);
}

bool xs_is_listed(const char *list, uint64_t number)
{
	uint64_t highest;
	bool listed;

	return find_number(list, number, &listed, &highest) && listed;
}

uint64_t xs_highest_listed(const char *list)
{
	uint64_t highest;
	bool listed;

	(void)find_number(list, 0, &listed, &highest);
	return highest;
}

static bool is_iterations(const char *text)
{
	const char *mark = strrchr(text, ':'); /* a name may hold others: "domain::task" */
	uint64_t first, last;

	if (!mark || mark == text || mark[-1] == ':')
		return false;
	mark++;
	return take_range(&mark, &first, &last) && first && !*mark;
}

static bool is_trigger(const char *text)
{
	const char *mark = strrchr(text, '>');
	uint64_t ns;

	if (!strncmp(text, "marker:", 7))
		return text[7];
	return !strncmp(text, "task:", 5) && mark && mark > text + 5 &&
	       !xs_parse_time(mark + 1, &ns);
}

const struct xs_option xs_option_table[] = {
	FLAG('h', "host-timing", host_timing,
	     "Report the time spent in host API calls (default, with -d)"),
	FLAG('d', "device-timing", device_timing,
	     "Report the time kernels and copies took on devices"),
	FLAG('s', "kernel-submission", kernel_submission,
	     "Report how long kernels and copies were queued, submitted and executed"),
	FLAG('t', "device-timeline", device_timeline,
	     "Print one line for each kernel and copy as it completes"),
	FLAG('c', "call-logging", call_logging,
	     "Print every host API call with its arguments and its result"),
	FLAG(0, "tid", show_tid, "-c: show the thread of each call"),
	FLAG(0, "pid", show_pid, "-c, -t: show the process of each call and command"),
	FLAG(0, "demangle", demangle,
	     "Show the C++ names of kernels (Level Zero's are always shown so)"),
	FLAG(0, "separate-tiles", separate_tiles,
	     "Show each tile of a device by itself where work is spread over several"),
	CHOICE(0, "report-format", report_format, "text|json|csv",
	       "How reports are written; docs/REPORTS.md has the columns. json and csv need -o"),
	FLAG(0, "opencl", opencl, "Accepted for compatibility; no effect: OpenCL is always traced"),
	FLAG(0, "chrome-call-logging", chrome_call, "Trace every host API call"),
	FLAG(0, "chrome-kernel-logging", chrome_kernel,
	     "Trace device work and the host calls that make, enqueue and wait for it"),
	FLAG(0, "chrome-device-logging", chrome_device, "Trace device work alone"),
	FLAG(0, "chrome-itt-logging", chrome_itt,
	     "Trace ITT tasks of instrumented programs and libraries"),
	FLAG(0, "chrome-ccl-logging", chrome_ccl,
	     "As --chrome-itt-logging, with oneCCL's collectives among the tasks"),
	FLAG(0, "chrome-mpi-logging", chrome_mpi,
	     "Trace MPI calls, with partners, tags and bytes, and ITT tasks; mpiexec -n N xstrace "
	     "… ./app"),
	FLAG(0, "chrome-dnn-logging", chrome_dnn,
	     "As --chrome-itt-logging, with oneDNN's primitives among the tasks"),
	FLAG('r', "ccl-summary-report", ccl_summary,
	     "Report the time spent in oneCCL's collectives, by message size"),
	FLAG(0, "chrome-sycl-logging", chrome_sycl, "Accepted: the SYCL runtime is not traced yet"),
	TEXT(0, "chrome-kmd-logging", kmd_script, "SCRIPT",
	     "Trace the kernel's side with a bpftrace script beside the application, into "
	     "oskmd.<pid>.json (needs root)"),
	MAYBE_COUNT(0, "call-stacks", call_stacks, 1, XS_STACK_DEPTH_MAX, "16",
		    "Record where each call was made: the innermost N frames (default 16) in the "
		    "trace, and <app>.<pid>.folded for flame graphs"),
	FLAG(0, "chrome-no-thread-on-device", no_thread_on_device,
	     "One device track per queue, not one per enqueuing thread and queue"),
	FLAG(0, "chrome-no-engine-on-device", no_engine_on_device,
	     "One device track per thread, not one per queue"),
	COUNT_OR_ALL(0, "chrome-event-buffer-size", buffer_events, "N", 0, INT32_MAX,
		     "Size of each thread's ring, given in events (of 32 bytes) instead of bytes; "
		     "-1: the default"),
	SIZE(0, "ring-size", ring_size, "BYTES", XS_RING_MIN, XS_RING_MAX,
	     "Size of each thread's ring; suffixes K, M, G; rounded up to a power of two (default "
	     "1M)"),
	CHOICE(0, "on-full", on_full, "block|drop|overwrite",
	       "What a thread does when its ring is full: wait, lose new records (counted), or "
	       "lose the oldest"),
	CHOICE(0, "compress", compress, "none|zstd",
	       "Compress the trace as it is written: <app>.<pid>.json.zst"),
	FLAG(0, "start-paused", start_paused,
	     "Record only after __itt_resume() or with PTI_ENABLE_COLLECTION=1, until "
	     "__itt_pause() or 0"),
	FLAG(0, "conditional-collection", start_paused, "The same (unitrace's older name)"),
	TIME("delay", delay, 1000000000000000ull,
	     "Record only after this time; 500us, 20ms, 1.5s, 2m (a plain number: seconds)"),
	TIME("duration", duration, 1000000000000000ull,
	     "Record only for this time, from the start or the end of --delay"),
	CHECKED(0, "iterations", iterations, "NAME:A-B", is_iterations,
		"a name and its first and last time, as NAME:A-B or NAME:A from 1 on",
		"Record only from the A-th to the B-th task or frame of this name in each process"),
	LIST(0, "ranks-to-sample", ranks, "RANKS", "ranks such as 0,3,8-15",
	     "Trace only these MPI ranks, such as 0,3,8-15; others run untraced"),
	LIST(0, "devices-to-sample", devices, "LIST", "numbers of --device-list such as 0,2-3",
	     "Record only the work of these devices, by their numbers in --device-list, such as "
	     "0,2-3"),
	CHOICE(0, "follow-child-process", follow_children, "0|1",
	       "1: trace descendants too (default); 0: the application's own process alone"),
	TEXTS(0, "include-kernels", include_kernels, "NAMES", XS_LINES,
	      "Device work: only kernels with one of these comma-separated pieces in the name "
	      "(copies and fills stay)"),
	TEXTS(0, "exclude-kernels", exclude_kernels, "NAMES", XS_LINES,
	      "Device work: no kernels with one of these pieces in the name"),
	TEXTS(0, "include-kernels-file", include_kernels_files, "FILE", XS_TEXTS,
	      "As --include-kernels, with the pieces in a file, separated by commas or lines"),
	TEXTS(0, "exclude-kernels-file", exclude_kernels_files, "FILE", XS_TEXTS,
	      "As --exclude-kernels, with the pieces in a file, separated by commas or lines"),
	TIME("flight-recorder", flight, 86400000000000ull,
	     "Keep the records of the last TIME in memory; write them on SIGUSR1 to xstrace, "
	     "--dump, --trigger or a crash"),
	SIZE(0, "flight-memory", flight_memory, "BYTES", 1u << 20, 1ull << 40,
	     "Limit of --flight-recorder's memory (default 256M)"),
	CHECKED(0, "trigger", trigger, "WHAT", is_trigger, "'task:NAME>TIME' or 'marker:NAME'",
		"--flight-recorder: write when a task takes longer ('task:NAME>50ms') or a marker "
		"comes ('marker:NAME')"),
	CHECKED(0, "session", session, "NAME", is_session, SESSION_SYNTAX,
		"Name this run, so that another shell can control it by the next four options"),
	CHECKED(0, "pause", pause, "NAME", is_session, SESSION_SYNTAX,
		"Stop recording in all processes of the session until --resume"),
	CHECKED(0, "resume", resume, "NAME", is_session, SESSION_SYNTAX,
		"Resume recording in all processes of the session"),
	CHECKED(0, "stop", stop, "NAME", is_session, SESSION_SYNTAX,
		"Stop recording for good and complete the traces; the application goes on"),
	CHECKED(0, "dump", dump, "NAME", is_session, SESSION_SYNTAX,
		"Make the session's flight recorder write its records as traces"),
	COUNT(0, "teardown-on-signal", teardown_signal, "N", 1, 64,
	      "Accepted for compatibility; no effect: traces survive every end of the application"),
	FLAG('q', "metric-query", metric_query,
	     "Accepted: hardware metrics are not read yet; implies -d if no other option shows "
	     "kernels"),
	FLAG('k', "metric-sampling", metric_sampling, "The same"),
	FLAG(0, "stall-sampling", stall_sampling, "The same"),
	TEXT('g', "group", metric_group, "GROUP", "Accepted, for the metrics"),
	COUNT('i', "sampling-interval", sampling_interval, "US", 1, INT32_MAX,
	      "Accepted, for the metrics"),
	FLAG(0, "idle-sampling", idle_sampling, "Accepted, for the metrics"),
	FLAG(0, "system-time", system_time,
	     "Accepted for compatibility; no effect: traces always count from the epoch"),
	CHOICE(0, "reset-event-on-device", reset_event, "0|1",
	       "Accepted for compatibility; no effect: xstrace leaves the application's events "
	       "alone"),
	TEXT('o', "output", output, "FILE",
	     "Write reports to FILE with the pid before its suffix, not to stderr"),
	TEXT(0, "output-dir-path", output_dir, "DIR",
	     "Write traces in DIR (made if missing), not in the working directory"),
	TEXT(0, "result-dir", result_dir, "DIR",
	     "Write in DIR (made if missing), with a directory for each process's traces and "
	     "reports"),
	TEXT(0, "recover", recover, "DIR",
	     "Write the traces of a run whose drain process was killed; DIR: its run directory"),
	FLAG('v', "verbose", verbose,
	     "Show kernel shapes in reports; say more about what is traced and what is not"),
	FLAG(0, "device-list", device_list, "Print the devices of Level Zero and OpenCL"),
	FLAG(0, "metric-list", metric_list,
	     "Print the groups of hardware metrics and their metrics (Level Zero)"),
	FLAG(0, "version", show_version, "Print the version"),
	FLAG(0, "help", show_help, "Print this help"),
};
const size_t xs_option_count = sizeof(xs_option_table) / sizeof(xs_option_table[0]);

void xs_options_default(struct xs_options *options)
{
	memset(options, 0, sizeof(*options));
	options->follow_children = 1;
	options->buffer_events = UINT64_MAX;
	options->opencl_devices = options->level_zero_devices = options->cuda_devices = UINT64_MAX;
}

static int fail(char *error, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static int fail(char *error, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(error, size, format, args);
	va_end(args);
	return -EINVAL;
}

/* Edits (insert, delete, replace) between a and b, for "did you mean"; both are short. */
static size_t distance(const char *a, const char *b, size_t b_length)
{
	size_t row[64], a_length = strlen(a);

	if (b_length >= 64)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t replace = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] > row[j - 1])
				row[j] = row[j - 1];
			row[j] = row[j] + 1 < replace ? row[j] + 1 : replace;
		}
	}
	return row[b_length];
}

static int unknown(const char *name, size_t length, char *error, size_t error_size)
{
	const struct xs_option *nearest = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < xs_option_count; i++) {
		/* a beginning of a name is nearest to it */
		size_t d = length >= 3 && !strncmp(xs_option_table[i].name, name, length)
				   ? 0
				   : distance(xs_option_table[i].name, name, length);

		if (d < best) {
			best = d;
			nearest = &xs_option_table[i];
		}
	}
	if (nearest && best <= length / 2 + 1)
		return fail(error, error_size, "unknown option --%.*s; did you mean --%s?",
			    (int)length, name, nearest->name);
	return fail(error, error_size, "unknown option --%.*s; see xstrace --help", (int)length,
		    name);
}

static int parse_number(const struct xs_option *row, const char *value, uint64_t *ret, char *error,
			size_t error_size)
{
	unsigned long long number;
	unsigned shift = 0;
	char *end;

	if (row->type == XS_OPT_COUNT && row->choices && !strcmp(value, row->choices)) {
		*ret = UINT64_MAX;
		return 0;
	}
	errno = 0;
	number = strtoull(value, &end, 10);
	if (row->type == XS_OPT_SIZE && end != value) {
		static const char suffixes[] = "KMG";
		const char *s = *end ? strchr(suffixes, *end & ~0x20) : NULL;

		if (s) {
			shift = 10u * (unsigned)(s - suffixes + 1);
			end++;
		}
	}
	if (value[0] < '0' || value[0] > '9' || *end || errno)
		return fail(error, error_size, "--%s takes a number, not '%s'", row->name, value);
	if (number > (row->high >> shift) || number << shift < row->low)
		return fail(error, error_size, "--%s takes a number from %llu to %llu, not '%s'",
			    row->name, (unsigned long long)row->low, (unsigned long long)row->high,
			    value);
	*ret = number << shift;
	return 0;
}

/* "1.5s", "20ms", "30": ns. */
int xs_parse_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 },  { "s", 1e9 },
		      { "", 1e9 }, { "m", 60e9 }, { "h", 3600e9 } };
	double number;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	number = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].suffix) && number * units[i].ns < 9e18) {
			*ret_ns = (uint64_t)(number * units[i].ns + 0.5);
			return 0;
		}
	return -EINVAL;
}

static int parse_time(const struct xs_option *row, const char *value, uint64_t *ret, char *error,
		      size_t error_size)
{
	if (xs_parse_time(value, ret) < 0)
		return fail(error, error_size,
			    "--%s takes a time such as 500us, 20ms, 1.5s or 2m, not '%s'",
			    row->name, value);
	if (*ret < row->low || *ret > row->high)
		return fail(error, error_size, "--%s takes a time from %gs to %gs, not '%s'",
			    row->name, (double)row->low / 1e9, (double)row->high / 1e9, value);
	return 0;
}

/* Where in the field the option's next text belongs, behind those that it was given before. */
static char *place_of_text(char *field, enum xs_repeat adds)
{
	char *end = field + strlen(field);

	if (adds == XS_LAST || end == field)
		return field;
	while (adds == XS_TEXTS && end[1])
		end += 1 + strlen(end + 1);
	*end = adds == XS_COMMA ? ',' : adds == XS_LINES ? '\n' : '\0';
	return end + 1;
}

static int set_text(char *field, const struct xs_option *row, const char *value, char *error,
		    size_t error_size)
{
	char *place = place_of_text(field, row->adds);

	if (!value[0])
		return fail(error, error_size, "--%s takes %s, not an empty string", row->name,
			    row->argument);
	if (strlen(value) >= row->high - (size_t)(place - field))
		return fail(error, error_size, "--%s: the text is longer than %d bytes", row->name,
			    (int)row->high - 1);
	if (row->valid && !row->valid(value))
		return fail(error, error_size, "--%s takes %s, not '%s'", row->name, row->choices,
			    value);
	memcpy(place, value, strlen(value) + 1);
	return 0;
}

static int set(struct xs_options *options, const struct xs_option *row, const char *value,
	       char *error, size_t error_size)
{
	char *field = (char *)options + row->offset;

	switch (row->type) {
	case XS_OPT_FLAG:
		*(bool *)field = true;
		return 0;
	case XS_OPT_COUNT:
	case XS_OPT_MAYBE_COUNT:
	case XS_OPT_SIZE:
		return parse_number(row, value, (uint64_t *)field, error, error_size);
	case XS_OPT_TIME:
		return parse_time(row, value, (uint64_t *)field, error, error_size);
	case XS_OPT_CHOICE: {
		const char *choice = row->choices;

		for (uint32_t i = 0;; i++) {
			size_t n = strcspn(choice, "|");

			if (n == strlen(value) && !memcmp(choice, value, n)) {
				*(uint32_t *)field = i;
				return 0;
			}
			if (!choice[n])
				break;
			choice += n + 1;
		}
		return fail(error, error_size, "--%s takes %s, not '%s'", row->name, row->choices,
			    value);
	}
	case XS_OPT_TEXT:
	case XS_OPT_CHECKED:
		return set_text(field, row, value, error, error_size);
	}
	return fail(error, error_size, "--%s: bad row in the option table", row->name);
}

static int needs_value(const struct xs_option *row, char *error, size_t error_size)
{
	return fail(error, error_size, "option --%s needs a value: %s", row->name, row->argument);
}

static int parse_long(struct xs_options *options, const char *text, char **argv, int argc, int *i,
		      char *error, size_t error_size)
{
	size_t length = strcspn(text, "=");
	const char *value = text[length] == '=' ? text + length + 1 : NULL;

	for (size_t k = 0; k < xs_option_count; k++) {
		const struct xs_option *row = &xs_option_table[k];

		if (strlen(row->name) != length || memcmp(row->name, text, length))
			continue;
		if (row->type == XS_OPT_FLAG && value)
			return fail(error, error_size, "option --%s takes no value", row->name);
		if (row->type == XS_OPT_MAYBE_COUNT && !value)
			value = row->choices; /* the next word is not its */
		if (row->type != XS_OPT_FLAG && !value) {
			if (*i + 1 >= argc)
				return needs_value(row, error, error_size);
			value = argv[++*i];
		}
		return set(options, row, value, error, error_size);
	}
	return unknown(text, length, error, error_size);
}

static int parse_letters(struct xs_options *options, const char *letters, char **argv, int argc,
			 int *i, char *error, size_t error_size)
{
	for (; *letters; letters++) {
		const struct xs_option *row = NULL;
		const char *value = NULL;
		int result;

		for (size_t k = 0; k < xs_option_count; k++)
			if (xs_option_table[k].letter == *letters)
				row = &xs_option_table[k];
		if (!row)
			return fail(error, error_size, "unknown option -%c; see xstrace --help",
				    *letters);
		if (row->type != XS_OPT_FLAG) {
			value = letters[1] ? letters + 1 : *i + 1 < argc ? argv[++*i] : NULL;
			if (!value)
				return needs_value(row, error, error_size);
		}
		result = set(options, row, value, error, error_size);
		if (result < 0 || value)
			return result;
	}
	return 0;
}

static int finish(struct xs_options *options, char *error, size_t error_size)
{
	uint64_t size = options->ring_size ? options->ring_size : XS_RING_DEFAULT;
	uint64_t rounded = XS_RING_MIN;

	if (options->ring_size && options->buffer_events != UINT64_MAX)
		return fail(error, error_size,
			    "--ring-size and --chrome-event-buffer-size both set the ring's size: "
			    "give one of them");
	if (options->buffer_events != UINT64_MAX)
		size = options->buffer_events * 32;
	while (rounded < size && rounded < XS_RING_MAX)
		rounded *= 2;
	options->ring_size = rounded;
	if (options->flight && options->on_full == XS_FULL_OVERWRITE)
		return fail(error, error_size,
			    "--flight-recorder keeps the newest records itself; leave out "
			    "--on-full=overwrite");
	if (options->flight && xs_want_reports(options))
		return fail(error, error_size,
			    "--flight-recorder writes traces; for reports (-h, -d, -s, -t, -c, -r) "
			    "run without it");
	if (options->flight && !xs_want_chrome(options))
		return fail(
			error, error_size,
			"--flight-recorder needs a trace: give a --chrome-…-logging option too");
	if (!options->flight && (options->trigger[0] || options->flight_memory))
		return fail(error, error_size, "--%s needs --flight-recorder",
			    options->trigger[0] ? "trigger" : "flight-memory");
	if (options->flight && !options->flight_memory)
		options->flight_memory = 256u << 20;
	if (options->compress && !xs_want_chrome(options))
		return fail(error, error_size,
			    "--compress needs a trace: give a --chrome-…-logging option too");
	if (options->flight && options->kmd_script[0])
		return fail(error, error_size,
			    "--flight-recorder keeps the application's records; for "
			    "--chrome-kmd-logging run without it");
	if (xs_want_hardware(options) && !options->flight && !xs_want_device(options))
		options->device_timing = true;
	if (!xs_want_chrome(options) && !xs_want_reports(options) && !options->kmd_script[0])
		options->host_timing = options->device_timing = true;
	if (options->call_stacks && !xs_want_calls(options) && !xs_want_device(options))
		return fail(error, error_size,
			    "--call-stacks is about API calls: give -h, -d or a --chrome-…-logging "
			    "option of calls or kernels too");
	if (options->report_format && !xs_want_reports(options))
		return fail(
			error, error_size,
			"--report-format needs a report: give one of -h, -d, -s, -t, -c, -r too");
	if (options->report_format && !options->output[0] && !options->result_dir[0])
		return fail(error, error_size,
			    "--report-format=json and csv need --output or --result-dir: stderr "
			    "has other lines too");
	if (options->result_dir[0] && (options->output[0] || options->output_dir[0]))
		return fail(
			error, error_size,
			"--result-dir says where all goes, under which names too: leave out --%s",
			options->output[0] ? "output" : "output-dir-path");
	if (options->result_dir[0])
		memcpy(options->output_dir, options->result_dir, sizeof(options->output_dir));
	return 0;
}

int xs_options_parse(struct xs_options *options, int argc, char **argv, int *ret_app, char *error,
		     size_t error_size)
{
	int i, result = 0;

	xs_options_default(options);
	for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1] && !result; i++) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (argv[i][1] == '-')
			result =
				parse_long(options, argv[i] + 2, argv, argc, &i, error, error_size);
		else
			result = parse_letters(options, argv[i] + 1, argv, argc, &i, error,
					       error_size);
	}
	*ret_app = i < argc ? i : argc;
	return result ? result : finish(options, error, error_size);
}

bool xs_want_chrome(const struct xs_options *o)
{
	return o->chrome_call || o->chrome_kernel || o->chrome_device || o->chrome_itt ||
	       o->chrome_ccl || o->chrome_dnn || o->chrome_mpi || o->chrome_sycl;
}

bool xs_want_reports(const struct xs_options *o)
{
	return o->host_timing || o->device_timing || o->kernel_submission || o->device_timeline ||
	       o->call_logging || o->ccl_summary;
}

bool xs_want_all_itt(const struct xs_options *o)
{
	return o->chrome_itt || o->chrome_ccl || o->chrome_dnn || o->chrome_mpi;
}

bool xs_want_itt(const struct xs_options *o)
{
	return xs_want_all_itt(o) || o->ccl_summary;
}

bool xs_want_hardware(const struct xs_options *o)
{
	return o->metric_query || o->metric_sampling || o->stall_sampling;
}

bool xs_want_calls(const struct xs_options *o)
{
	return o->chrome_call || o->host_timing || o->call_logging;
}

bool xs_want_enqueues(const struct xs_options *o)
{
	return xs_want_calls(o) || o->chrome_kernel || (o->call_stacks && xs_want_device(o));
}

bool xs_want_kernel_calls(const struct xs_options *o)
{
	return xs_want_calls(o) || o->chrome_kernel;
}

bool xs_want_device(const struct xs_options *o)
{
	return o->chrome_kernel || o->chrome_device || o->device_timing || o->kernel_submission ||
	       o->device_timeline;
}

static void describe(const struct xs_option *row, char *text, size_t size)
{
	char letter[8] = "";

	if (row->letter)
		(void)snprintf(letter, sizeof(letter), " [-%c]", row->letter);
	if (row->type == XS_OPT_MAYBE_COUNT)
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
