/*
 * From the command line to struct xs_options.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "options.h"
#include "ring.h"

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

static int unknown(const char *name, size_t length, char *error, size_t error_size)
{
	const char *nearest = xs_nearest_name(&xs_option_table[0].name, xs_option_count,
					      sizeof(xs_option_table[0]), name, length);

	if (nearest)
		return fail(error, error_size, "unknown option --%.*s; did you mean --%s?",
			    (int)length, name, nearest);
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
	case XS_OPT_MAYBE_TEXT:
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
		if ((row->type == XS_OPT_MAYBE_COUNT || row->type == XS_OPT_MAYBE_TEXT) && !value)
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

/* What is meant where no option says what to collect. */
static void imply(struct xs_options *o)
{
	if (o->attach[0]) {
		o->chrome_itt = true; /* a trace of plain tasks */
		return;
	}
	if ((o->format || o->on_demand) && !xs_want_chrome(o))
		o->chrome_call = o->chrome_kernel = o->chrome_itt = true;
	if (o->flight)
		return; /* it must be told */
	if ((xs_want_hardware(o) || o->cpu_metrics[0]) && !xs_want_device(o))
		o->device_timing = true;
	if (!xs_want_chrome(o) && !xs_want_reports(o) && !o->kmd_script[0])
		o->host_timing = o->device_timing = true;
}

#define NEEDS_TRACE "needs a trace: give a --chrome-…-logging option too"

/* Options that need or exclude each other. */
struct rule {
	bool wrong;
	const char *message;
};

static int obey(const struct rule *rules, size_t count, char *error, size_t error_size)
{
	for (size_t i = 0; i < count; i++)
		if (rules[i].wrong)
			return fail(error, error_size, "%s", rules[i].message);
	return 0;
}

static int check_output(const struct xs_options *o, char *error, size_t error_size)
{
	const struct rule rules[] = {
		{ o->once && !o->top[0], "--once needs --top" },
		{ o->json && o->top[0] && !o->once, "--json needs --top --once" },
		{ o->result_dir[0] && o->output[0],
		  "--result-dir says where all goes, under which names too: leave out --output" },
		{ o->result_dir[0] && o->output_dir[0],
		  "--result-dir says where all goes, under which names too: leave out "
		  "--output-dir-path" },
	};

	return obey(rules, sizeof(rules) / sizeof(rules[0]), error, error_size);
}

static int check(const struct xs_options *o, char *error, size_t error_size)
{
	const struct rule rules[] = {
		{ o->ring_size && o->buffer_events != UINT64_MAX,
		  "--ring-size and --chrome-event-buffer-size both set the ring's size: give one "
		  "of them" },
		{ o->flight && o->on_full == XS_FULL_OVERWRITE,
		  "--flight-recorder keeps the newest records itself; leave out "
		  "--on-full=overwrite" },
		{ o->flight && xs_want_reports(o),
		  "--flight-recorder writes traces; for reports (-h, -d, -s, -t, -c, -r) run "
		  "without it" },
		{ o->flight && !xs_want_chrome(o), "--flight-recorder " NEEDS_TRACE },
		{ !o->flight && o->trigger[0], "--trigger needs --flight-recorder" },
		{ !o->flight && o->flight_memory, "--flight-memory needs --flight-recorder" },
		{ o->compress && !xs_want_chrome(o), "--compress " NEEDS_TRACE },
		{ o->flight && o->kmd_script[0],
		  "--flight-recorder keeps the application's records; for --chrome-kmd-logging "
		  "run without it" },
		{ o->on_demand && xs_want_reports(o), "--on-demand writes traces; for reports (-h, "
						      "-d, -s, -t, -c, -r) run without it" },
		{ o->on_demand && o->flight,
		  "--on-demand and --flight-recorder both say when traces are written: give one of "
		  "them" },
		{ o->on_demand && (o->compress || o->result_dir[0]),
		  "--on-demand: who asks for a trace says what it is called: leave out --compress "
		  "and --result-dir" },
		{ o->on_demand && o->format == XS_FORMAT_PERFETTO,
		  "--on-demand writes Kineto's format: leave out --format perfetto" },
		{ o->on_demand && o->on_full == XS_FULL_OVERWRITE,
		  "--on-demand reads the records as they come; leave out --on-full=overwrite" },
		{ o->call_stacks && !xs_want_calls(o) && !xs_want_device(o),
		  "--call-stacks is about API calls: give -h, -d or a --chrome-…-logging option of "
		  "calls or kernels too" },
		{ o->report_format && !xs_want_reports(o) && !o->attach[0],
		  "--report-format needs a report: give one of -h, -d, -s, -t, -c, -r too" },
		{ o->report_format && !o->output[0] && !o->result_dir[0],
		  "--report-format=json and csv need --output or --result-dir: stderr has other "
		  "lines too" },
		{ o->metric_query + o->metric_sampling + o->stall_sampling > 1,
		  "--metric-query measures each kernel, --metric-sampling the device by time, "
		  "--stall-sampling by instruction: give one of them" },
		{ (xs_want_hardware(o) || o->cpu_metrics[0]) && (o->flight || o->on_demand),
		  "metrics have files of their own; leave out --flight-recorder and --on-demand" },
	};

	return obey(rules, sizeof(rules) / sizeof(rules[0]), error, error_size);
}

static uint64_t ring_size(const struct xs_options *o)
{
	uint64_t size = o->ring_size ? o->ring_size : XS_RING_DEFAULT, rounded = XS_RING_MIN;

	if (o->buffer_events != UINT64_MAX)
		size = o->buffer_events * 32;
	while (rounded < size && rounded < XS_RING_MAX)
		rounded *= 2;
	return rounded;
}

/* Of a program that runs already nothing else is to be had. */
static int check_attach(const struct xs_options *o, char *error, size_t error_size)
{
	const struct rule rules[] = {
		{ xs_want_chrome(o) || xs_want_reports(o) || xs_want_hardware(o) ||
			  o->kmd_script[0] || o->call_stacks || o->watchdog || o->stacks_on_crash,
		  "--attach samples where threads are; what else is recorded of a program needs "
		  "xstrace to start it: xstrace [options] app" },
		{ o->sampling_interval && o->sampling_interval < 500,
		  "--attach looks 2000 times a second at most: give --sampling-interval from 500 "
		  "on" },
		{ o->flight || o->on_demand || o->iterations[0] || o->delay || o->ranks[0] ||
			  o->export[0],
		  "--attach begins at once, and ends with Ctrl-C, --stop or --duration: leave out "
		  "other options that say when or what to record" },
	};

	return o->attach[0] ? obey(rules, sizeof(rules) / sizeof(rules[0]), error, error_size) : 0;
}

static int finish(struct xs_options *options, char *error, size_t error_size)
{
	int result = check_attach(options, error, error_size);

	if (result < 0)
		return result;
	imply(options);
	result = check(options, error, error_size);
	if (!result)
		result = check_output(options, error, error_size);
	if (result < 0)
		return result;
	options->ring_size = ring_size(options);
	if (options->flight && !options->flight_memory)
		options->flight_memory = 256u << 20;
	if (options->result_dir[0])
		memcpy(options->output_dir, options->result_dir, sizeof(options->output_dir));
	return 0;
}

int xs_options_parse(struct xs_options *options, int argc, char **argv, int *ret_app, char *error,
		     size_t error_size)
{
	int i, result = 0;

	xs_options_default(options);
	/* what follows --help is its topic, be it an option's name */
	for (i = 1;
	     i < argc && argv[i][0] == '-' && argv[i][1] && !result && !options->show_help[0];
	     i++) {
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
	options->has_names = options->include_kernels[0] || options->exclude_kernels[0] ||
			     options->include_kernels_files[0] ||
			     options->exclude_kernels_files[0] || options->exclude_calls[0];
	return result ? result : finish(options, error, error_size);
}
