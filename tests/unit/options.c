/*
 * The option table: each row as the command line gives it, and what is wrong with what is wrong.
 */
#include <errno.h>
#include <inttypes.h>

#include "kernel_filter.h"
#include "options.h"
#include "ring.h"
#include "tap.h"

static struct xs_options options;
static char error[512];
static int app;

/*
 * Parses "xstrace" and the words (separated by single blanks; "_" stands for an empty word). 0 or
 * -EINVAL.
 */
static int parse(const char *line)
{
	static char copy[XS_NAMES_MAX + 256];
	char *argv[64] = { "xstrace" };
	int argc = 1;

	(void)snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = strcmp(word, "_") ? word : word + 1;
	memset(&options, 0xa5, sizeof(options));
	memset(error, 0, sizeof(error));
	app = -1;
	return xs_options_parse(&options, argc, argv, &app, error, sizeof(error));
}

static void good(const char *line)
{
	CHECK(!parse(line) && !error[0], "%s: %s", line, error);
}

/* Fails, with a message of one line that holds `part`. */
static void bad(const char *line, const char *part)
{
	CHECK(parse(line) == -EINVAL, "%s is accepted", line);
	CHECK(strstr(error, part) && !strchr(error, '\n'), "%s: \"%s\" says nothing of \"%s\"",
	      line, error, part);
}

static uint64_t number(const struct xs_option *row)
{
	return *(uint64_t *)((char *)&options + row->offset);
}

static uint32_t choice(const struct xs_option *row)
{
	return *(uint32_t *)((char *)&options + row->offset);
}

static bool flag(const struct xs_option *row)
{
	unsigned char value = *((unsigned char *)&options + row->offset);

	CHECK(value < 2, "--%s is %u", row->name, value);
	return value;
}

static const char *text(const struct xs_option *row)
{
	return (const char *)&options + row->offset;
}

static void defaults(void)
{
	good("");
	CHECK(app == 1, "%d", app);
	for (size_t i = 0; i < xs_option_count; i++) {
		const struct xs_option *row = &xs_option_table[i];

		if (row->type == XS_OPT_FLAG)
			CHECK(flag(row) == !!strstr(row->name, "-timing"), "--%s", row->name);
		else if (row->type == XS_OPT_CHOICE)
			CHECK(choice(row) == !strcmp(row->name, "follow-child-process"), "--%s",
			      row->name);
		else if (row->type == XS_OPT_TEXT || row->type == XS_OPT_CHECKED)
			CHECK(!*text(row), "--%s", row->name);
	}
	CHECK(options.ring_size == XS_RING_DEFAULT, "%" PRIu64, options.ring_size);
	good("--chrome-itt-logging app -h");
	CHECK(app == 2 && !options.host_timing && !options.device_timing && options.chrome_itt,
	      "a trace: no tables");
	good("-h --chrome-itt-logging app");
	CHECK(app == 3 && options.host_timing && !options.device_timing, "both when asked");
}

/* With what else a row needs to be accepted. */
static const char *with(const struct xs_option *row)
{
	if (!strcmp(row->name, "compress"))
		return "--chrome-itt-logging ";
	if (!strcmp(row->name, "once"))
		return "--top ";
	if (!strcmp(row->name, "report-format"))
		return "-h -o rep ";
	if (!strcmp(row->name, "trigger") || !strcmp(row->name, "flight-memory"))
		return "--chrome-itt-logging --flight-recorder=1 ";
	return strcmp(row->name, "flight-recorder") ? "" : "--chrome-itt-logging ";
}

static int words(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == ' ';
	return n;
}

static void every_flag(const struct xs_option *row)
{
	char line[256];

	(void)snprintf(line, sizeof(line), "%s--%s app --%s=1", with(row), row->name, row->name);
	good(line);
	CHECK(flag(row) && app == 2 + words(with(row)), "%s", line);
	(void)snprintf(line, sizeof(line), "--%s=1 app", row->name);
	bad(line, "takes no value");
	if (row->letter) {
		(void)snprintf(line, sizeof(line), "-%c app", row->letter);
		good(line);
		CHECK(flag(row) && app == 2, "%s", line);
	}
}

static void every_number(const struct xs_option *row)
{
	const uint64_t values[] = { row->low, row->high, (row->low + row->high) / 2 };
	static const char *const wrong[] = { "_",
					     "x",
					     "1x",
					     "-1",
					     "+1",
					     "0x100000",
					     "1e6",
					     "1.5",
					     "99999999999999999999",
					     "18446744073709551616",
					     "KK",
					     "1KK",
					     "1T" };
	char line[256];

	for (size_t i = 0; i < 3; i++) {
		for (int way = 0; way < 2; way++) {
			(void)snprintf(line, sizeof(line), "%s--%s%c%" PRIu64 " app", with(row),
				       row->name, "= "[way], values[i]);
			good(line);
			CHECK((number(row) == values[i] ||
			       (number(row) > values[i] && number(row) < 2 * values[i])) &&
				      app == words(with(row)) + 2 + way,
			      "%s: %" PRIu64, line, number(row));
		}
	}
	(void)snprintf(line, sizeof(line), "--%s=%" PRIu64, row->name, row->low - 1);
	bad(line, "takes a number from");
	(void)snprintf(line, sizeof(line), "--%s=%" PRIu64, row->name, row->high + 1);
	bad(line, "takes a number from");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(line, sizeof(line), "--%s %s", row->name, wrong[i]);
		if (row->type == XS_OPT_COUNT && row->choices && !strcmp(wrong[i], row->choices)) {
			good(line);
			CHECK(number(row) == UINT64_MAX, "%s: all", line);
			continue;
		}
		bad(line, "takes a number");
	}
	(void)snprintf(line, sizeof(line), "--%s", row->name);
	bad(line, "needs a value");
	if (row->type != XS_OPT_SIZE) {
		(void)snprintf(line, sizeof(line), "--%s 1K", row->name);
		bad(line, "takes a number");
	}
}

static void every_maybe(const struct xs_option *row)
{
	char line[256];

	(void)snprintf(line, sizeof(line), "--%s app 5", row->name);
	good(line);
	CHECK(number(row) == strtoull(row->choices, NULL, 10) && app == 2, "%s: %" PRIu64, line,
	      number(row));
	(void)snprintf(line, sizeof(line), "--%s=%" PRIu64 " app", row->name, row->high);
	good(line);
	CHECK(number(row) == row->high && app == 2, "%s: %" PRIu64, line, number(row));
	(void)snprintf(line, sizeof(line), "--%s=%" PRIu64, row->name, row->low - 1);
	bad(line, "takes a number from");
	(void)snprintf(line, sizeof(line), "--%s=%" PRIu64, row->name, row->high + 1);
	bad(line, "takes a number from");
	(void)snprintf(line, sizeof(line), "--%s=", row->name);
	bad(line, "takes a number");
}

static void every_time(const struct xs_option *row)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} times[] = { { "1ms", 1000000 },
		      { "1500us", 1500000 },
		      { "1.5s", 1500000000 },
		      { "2", 2000000000 },
		      { "2m", 120000000000 } };
	static const char *const wrong[] = { "_", "x", "-1", "+1", "1x", "ms", "1sm", "1e400" };
	char line[256];

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		(void)snprintf(line, sizeof(line), "%s--%s %s app", with(row), row->name,
			       times[i].text);
		good(line);
		CHECK(number(row) == times[i].ns, "%s: %" PRIu64, line, number(row));
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(line, sizeof(line), "%s--%s=%s app", with(row), row->name, wrong[i]);
		bad(line, "takes a time such as");
	}
	(void)snprintf(line, sizeof(line), "%s--%s 999999ns app", with(row), row->name);
	bad(line, "takes a time from");
	(void)snprintf(line, sizeof(line), "%s--%s 1000000000 app", with(row), row->name);
	bad(line, "takes a time from");
	(void)snprintf(line, sizeof(line), "%s--%s", with(row), row->name);
	bad(line, "needs a value");
}

static void every_checked(const struct xs_option *row)
{
	static const struct {
		const char *option, *good, *bad;
	} texts[] = {
		{ "session", "s1 A-b_c.9 .", "a/b a:b \xc3\xa9 %" },
		{ "pause", "s1", "a/b" },
		{ "resume", "s1", "a/b" },
		{ "stop", "s1", "a/b" },
		{ "stacks", "s1", "a/b" },
		{ "attach", "1 4711 4194304", "0 4194305 99999999 -1 1x x 0x1" },
		{ "dump", "s1", "a/b" },
		{ "export", "prometheus:9400 prometheus:[::1]:0 prometheus:a/b.prom",
		  "prometheus prometheus: statsd:1 9400" },
		{ "ranks-to-sample", "0 0,3,8-15 7-7 18446744073709551615",
		  "x , 0, ,0 0,,1 3-2 1- -1 0x1 0;1 18446744073709551616 1-2-3" },
		{ "devices-to-sample", "0 0,2-3", "x 0, 2-1 -1 0;1" },
		{ "iterations", "step:1 step:1-1 d::step:3-9 a:b:2",
		  "step step: :1 step:0 step:0-3 step:3-2 step:1- step:x step:1x d:: d::1" },
		{ "trigger", "task:a>1ms task:a>b>5 task:d::a>2m marker:m",
		  "task task:a task:>1ms task:a>x task:a>-1 marker marker: x:y>1ms" },
	};
	char line[512], list[256];
	int found = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(texts[i].option, row->name))
			continue;
		found++;
		for (int way = 0; way < 2; way++) {
			char *rest = list, *word;

			(void)snprintf(list, sizeof(list), "%s",
				       way ? texts[i].bad : texts[i].good);
			while ((word = strsep(&rest, " "))) {
				(void)snprintf(line, sizeof(line), "%s--%s %s app", with(row),
					       row->name, word);
				if (way) {
					bad(line, row->choices);
				} else {
					good(line);
					CHECK(!strcmp(text(row), word), "%s: %s", line, text(row));
				}
			}
		}
	}
	CHECK(found == 1, "--%s: no examples here", row->name);
	(void)snprintf(line, sizeof(line), "%s--%s _", with(row), row->name);
	bad(line, "not an empty string");
	(void)snprintf(line, sizeof(line), "%s--%s", with(row), row->name);
	bad(line, "needs a value");
}

static void ranks(void)
{
	CHECK(xs_is_listed("0,3,8-15", 0) && xs_is_listed("0,3,8-15", 3) &&
		      xs_is_listed("0,3,8-15", 12) && xs_is_listed("0,3,8-15", 15),
	      "listed");
	CHECK(!xs_is_listed("0,3,8-15", 1) && !xs_is_listed("0,3,8-15", 16) &&
		      !xs_is_listed("0,3,8-15", 30),
	      "not listed");
	CHECK(xs_highest_listed("0,3,8-15,2") == 15 && xs_highest_listed("0") == 0, "the highest");
}

static void sizes(void)
{
	static const struct {
		const char *text;
		uint64_t value;
	} rows[] = { { "64k", 64 << 10 },  { "64K", 64 << 10 },	 { "65K", 128 << 10 },
		     { "1m", 1 << 20 },	   { "3M", 4 << 20 },	 { "1g", 1 << 30 },
		     { "65536", 1 << 16 }, { "65537", 1 << 17 }, { "1073741824", 1 << 30 } };
	char line[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(line, sizeof(line), "--ring-size %s", rows[i].text);
		good(line);
		CHECK(options.ring_size == rows[i].value, "%s: %" PRIu64, rows[i].text,
		      options.ring_size);
	}
	bad("--ring-size 2g", "from");
	bad("--ring-size 63K", "from");
	bad("--ring-size 0", "from");
	bad("--ring-size 18014398509481985K", "from"); /* 2^64 + 1024 */
	bad("--ring-size 17179869185G", "from");
	good("--chrome-event-buffer-size 1");
	CHECK(options.ring_size == XS_RING_MIN, "%" PRIu64, options.ring_size);
	good("--chrome-event-buffer-size 2049");
	CHECK(options.ring_size == 128 << 10, "%" PRIu64, options.ring_size);
	good("--chrome-event-buffer-size 33554432");
	CHECK(options.ring_size == XS_RING_MAX, "%" PRIu64, options.ring_size);
	good("--chrome-event-buffer-size 2147483647");
	CHECK(options.ring_size == XS_RING_MAX, "%" PRIu64, options.ring_size);
	good("--chrome-event-buffer-size 0");
	CHECK(options.ring_size == XS_RING_MIN, "%" PRIu64, options.ring_size);
	good("--chrome-event-buffer-size -1");
	CHECK(options.ring_size == XS_RING_DEFAULT, "%" PRIu64, options.ring_size);
	good("--ring-size 2M --chrome-event-buffer-size -1");
	CHECK(options.ring_size == 2 << 20, "%" PRIu64, options.ring_size);
}

/* What adds up, and where its room ends. */
static void repeated(void)
{
	static char line[2 * XS_NAMES_MAX];
	char *names = options.include_kernels;
	const char *files = options.exclude_kernels_files;
	size_t n;

	good("--ranks-to-sample 1 --ranks-to-sample=3-4 --devices-to-sample 0 --ranks-to-sample 9");
	CHECK(!strcmp(options.ranks, "1,3-4,9") && !strcmp(options.devices, "0"), "%s; %s",
	      options.ranks, options.devices);
	bad("--ranks-to-sample 1 --ranks-to-sample ,2", "ranks such as");
	good("--include-kernels a,b --include-kernels c");
	CHECK(!strcmp(names, "a,b\nc"), "%s", names);
	xs_names_split(names);
	CHECK(!memcmp(names, "a\0b\0c\0", 7), "three pieces");
	good("--exclude-kernels-file one --exclude-kernels-file two --exclude-kernels-file three");
	CHECK(!memcmp(files, "one\0two\0three\0", 15), "three files");
	good("--session a --session b");
	CHECK(!strcmp(options.session, "b"), "the last one counts: %s", options.session);
	for (n = XS_NAMES_MAX - 4; n < XS_NAMES_MAX; n++) {
		int head = snprintf(line, sizeof(line), "--include-kernels x --include-kernels ");

		memset(line + head, 'y', n);
		line[head + (int)n] = '\0';
		if (n + 2 < XS_NAMES_MAX)
			good(line);
		else
			bad(line, "longer than");
	}
}

static void pieces(void)
{
	static const struct {
		const char *text;
		const char pieces[16];
	} rows[] = {
		{ "", "" },
		{ "a", "a\0" },
		{ "a,b", "a\0b\0" },
		{ " a b ,\t,,c\r\nd", "a b\0c\0d\0" },
		{ "\"a,b\"", "a,b\0" },
		{ "x,\"a,b\",y", "x\0a,b\0y\0" },
		{ "\" a,b \"", "a,b\0" },
		{ "\"a\\\"b\"", "a\"b\0" },
		{ "a\"b,c\"d", "a\"b\0c\"d\0" },
		{ "\"a\"b", "a\0b\0" },
		{ "\"a,b\nc", "a,b\0c\0" },
		{ "\"\"", "" },
		{ "\"\",\" \",x", "x\0" },
		{ "\"", "" },
		{ "\"a\\", "a\\\0" },
	};
	char text[24];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = 0;

		memset(text, '#', sizeof(text));
		memcpy(text, rows[i].text, strlen(rows[i].text) + 1);
		xs_names_split(text);
		while (rows[i].pieces[n])
			n += strlen(rows[i].pieces + n) + 1;
		CHECK(!memcmp(text, rows[i].pieces, n + 1), "%s", rows[i].text);
		CHECK(text[strlen(rows[i].text) + 2] == '#', "%s: not beyond its room",
		      rows[i].text);
	}
}

static bool wanted(const char *include, const char *exclude, const char *name, const char *plain)
{
	memset(&options, 0, sizeof(options));
	options.has_names = 1;
	memcpy(options.include_kernels, include, strlen(include));
	memcpy(options.exclude_kernels, exclude, strlen(exclude));
	xs_names_split(options.include_kernels);
	xs_names_split(options.exclude_kernels);
	return xs_kernel_wanted(&options, name, plain);
}

static void kernels(void)
{
	const char *name = "_Z3addPfi", *plain = "add(float*, int)";

	CHECK(wanted("", "", name, NULL) && wanted("", "", "gemm", NULL), "without a filter");
	CHECK(wanted("ge", "", "gemm", NULL) && !wanted("x", "", "gemm", NULL) &&
		      !wanted("", "ge", "gemm", NULL),
	      "plain names");
	CHECK(wanted("x", "", name, NULL) && !wanted("x", "", name, plain),
	      "a C++ name is decided by who knows it");
	CHECK(wanted("\"float*, int\"", "", name, plain) &&
		      !wanted("", "\"float*, int\"", name, plain),
	      "by the C++ name");
	CHECK(wanted("_Z3add", "", name, plain) && !wanted("", "_Z3add", name, NULL),
	      "by the driver's name");
	CHECK(!wanted("3add", "", name, plain) && wanted("", "3add", name, NULL) &&
		      wanted("", "3add", name, plain),
	      "not by letters of it");
	CHECK(!wanted("", "Znon", "_Znonsense", "_Znonsense") &&
		      !wanted("x", "", "_Znonsense", "_Znonsense"),
	      "what is no C++ name after all");
	CHECK(!wanted("add", "int", name, plain), "exclusion counts more");
}

static void every_choice(const struct xs_option *row)
{
	char line[256], word[32];
	const char *at = row->choices;

	for (uint32_t i = 0; *at; i++) {
		size_t n = strcspn(at, "|");

		(void)snprintf(word, sizeof(word), "%.*s", (int)n, at);
		(void)snprintf(line, sizeof(line), "%s--%s=%s app", with(row), row->name, word);
		good(line);
		CHECK(choice(row) == i, "%s: %u", line, choice(row));
		(void)snprintf(line, sizeof(line), "%s--%s=%.*s app", with(row), row->name,
			       (int)n - 1, at);
		bad(line, row->choices);
		(void)snprintf(line, sizeof(line), "%s--%s=%sx app", with(row), row->name, word);
		bad(line, row->choices);
		at += n + (at[n] == '|');
	}
	(void)snprintf(line, sizeof(line), "%s--%s %s", with(row), row->name, row->choices);
	bad(line, row->choices);
	(void)snprintf(line, sizeof(line), "%s--%s _", with(row), row->name);
	bad(line, row->choices);
	(void)snprintf(line, sizeof(line), "%s--%s", with(row), row->name);
	bad(line, "needs a value");
}

static void every_maybe_text(const struct xs_option *row)
{
	const char *field = (const char *)&options + row->offset;
	char line[256];

	(void)snprintf(line, sizeof(line), "--%s app", row->name);
	good(line);
	CHECK(!strcmp(field, row->choices) && app == 2, "%s: %s", line, field);
	(void)snprintf(line, sizeof(line), "--%s=text app", row->name);
	good(line);
	CHECK(!strcmp(field, "text") && app == 2, "%s: %s", line, field);
}

static void every_text(const struct xs_option *row)
{
	static char line[XS_NAMES_MAX + 256], path[XS_NAMES_MAX + 8];

	for (int way = 0; way < (row->letter ? 4 : 2); way++) {
		if (way < 2)
			(void)snprintf(line, sizeof(line), "--%s%c-a=b app", row->name, "= "[way]);
		else
			(void)snprintf(line, sizeof(line), "-%c%s-a=b app", row->letter,
				       way == 2 ? "" : " ");
		good(line);
		CHECK(!strcmp(text(row), "-a=b") && app == 2 + way % 2, "%s: %s", line, text(row));
	}
	memset(path, 'x', sizeof(path));
	path[row->high - 1] = '\0';
	(void)snprintf(line, sizeof(line), "--%s %s", row->name, path);
	good(line);
	CHECK(!strcmp(text(row), path), "the longest path");
	path[row->high - 1] = 'x';
	path[row->high] = '\0';
	(void)snprintf(line, sizeof(line), "--%s %s", row->name, path);
	bad(line, "longer than");
	(void)snprintf(line, sizeof(line), "--%s _", row->name);
	bad(line, "not an empty string");
	(void)snprintf(line, sizeof(line), "--%s=", row->name);
	bad(line, "not an empty string");
	(void)snprintf(line, sizeof(line), "--%s", row->name);
	bad(line, "needs a value");
	if (row->letter) {
		(void)snprintf(line, sizeof(line), "-%c", row->letter);
		bad(line, "needs a value");
	}
}

static void every_row(void)
{
	for (size_t i = 0; i < xs_option_count; i++) {
		const struct xs_option *row = &xs_option_table[i];

		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(row->name, xs_option_table[k].name) &&
				      (!row->letter || row->letter != xs_option_table[k].letter),
			      "--%s is there twice", row->name);
		CHECK(row->help && row->help[0] && row->help[strlen(row->help) - 1] != '.',
		      "--%s: help", row->name);
		if (row->type == XS_OPT_FLAG)
			every_flag(row);
		else if (row->type == XS_OPT_CHOICE)
			every_choice(row);
		else if (row->type == XS_OPT_TEXT)
			every_text(row);
		else if (row->type == XS_OPT_CHECKED)
			every_checked(row);
		else if (row->type == XS_OPT_TIME)
			every_time(row);
		else if (row->type == XS_OPT_MAYBE_COUNT)
			every_maybe(row);
		else if (row->type == XS_OPT_MAYBE_TEXT)
			every_maybe_text(row);
		else
			every_number(row);
	}
}

static void letters_together(void)
{
	good("-hdv app");
	CHECK(options.host_timing && options.device_timing && options.verbose && app == 2, "-hdv");
	good("-hofile app");
	CHECK(options.host_timing && !strcmp(options.output, "file") && app == 2, "-hofile");
	good("-ho file app");
	CHECK(options.host_timing && !strcmp(options.output, "file") && app == 3, "-ho file");
	bad("-hz", "unknown option -z");
	bad("-ho", "needs a value");
}

static void where_the_application_begins(void)
{
	static const struct {
		const char *line;
		int app;
	} rows[] = { { "app", 1 },	{ "app --nonsense", 1 },
		     { "-- app", 2 },	{ "-- --help", 2 },
		     { "-h -- -d", 3 }, { "-", 1 },
		     { "-h -", 2 },	{ "_ x", 1 },
		     { "--", 2 },	{ "-h", 2 },
		     { "-o -- app", 3 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		good(rows[i].line);
		CHECK(app == rows[i].app, "%s: %d, not %d", rows[i].line, app, rows[i].app);
	}
}

/* One letter too many, too few, or wrong, in each place of each name. */
static void nearest(void)
{
	for (size_t i = 0; i < xs_option_count; i++) {
		const char *name = xs_option_table[i].name;
		char line[128], wanted[128];
		size_t n = strlen(name);

		/* without one letter it is as near to --chrome-ccl-logging */
		if (!strcmp(name, "chrome-sycl-logging"))
			(void)snprintf(wanted, sizeof(wanted), "did you mean --chrome-");
		else if (!strcmp(name, "open")) /* its beginning is --opencl's, too */
			(void)snprintf(wanted, sizeof(wanted), "did you mean --open");
		else
			(void)snprintf(wanted, sizeof(wanted), "did you mean --%s?", name);
		for (size_t at = 1; at < n; at++) {
			(void)snprintf(line, sizeof(line), "--%.*sq%s", (int)at, name, name + at);
			bad(line, wanted);
			(void)snprintf(line, sizeof(line), "--%.*sq%s", (int)at, name,
				       name + at + 1);
			if (name[at] != 'q')
				bad(line, wanted);
			(void)snprintf(line, sizeof(line), "--%.*s%s=5", (int)at, name,
				       name + at + 1);
			bad(line, wanted);
		}
	}
	bad("--chrome-mpi-loging", "unknown option --chrome-mpi-loging; did you mean --chrome-");
	bad("--qqqqqqqqqqqqqqqqqqqqqq", "see xstrace --help");
	bad("--=", "unknown option --");
	bad("--"
	    "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"
	    "qqqqqqqqqqqqqqqqqqqqqqqqqq",
	    "see xstrace --help");
}

static void conflicts(void)
{
	bad("--ring-size 1M --chrome-event-buffer-size 1000", "give one of them");
	bad("--compress zstd", "--compress needs a trace");
	bad("-h --compress zstd", "--compress needs a trace");
	good("--compress none");
	good("--compress zstd --chrome-call-logging");
	good("--compress zstd --compress none"); /* the last one counts */
	CHECK(options.compress == XS_COMPRESS_NONE, "%u", options.compress);
}

/* A message never goes beyond its buffer. */
static void small_buffers(void)
{
	char *argv[] = { "xstrace", "--chrome-itt-loging", NULL };
	char small[64];

	for (size_t size = 1; size < sizeof(small); size++) {
		memset(small, '#', sizeof(small));
		CHECK(xs_options_parse(&options, 2, argv, &app, small, size) < 0, "accepted");
		CHECK(memchr(small, '\0', size) && small[size] == '#', "%zu bytes", size);
	}
}

static void wishes(void)
{
	for (unsigned bits = 0; bits < 64; bits++) {
		struct xs_options o = { .host_timing = bits & 1,
					.device_timing = bits & 2,
					.chrome_call = bits & 4,
					.chrome_kernel = bits & 8,
					.chrome_device = bits & 16,
					.chrome_itt = bits & 32 };

		CHECK(xs_want_chrome(&o) == !!(bits & 60) && xs_want_itt(&o) == !!(bits & 32) &&
			      xs_want_calls(&o) == !!(bits & 5) &&
			      xs_want_device(&o) == !!(bits & 26),
		      "%u", bits);
	}
}

static void help(void)
{
	char *out = NULL, name[64];
	size_t size = 0;
	FILE *file = open_memstream(&out, &size);

	(void)xs_options_help(file, NULL);
	(void)fclose(file);
	for (size_t i = 0; i < xs_option_count; i++) {
		(void)snprintf(name, sizeof(name), "--%s", xs_option_table[i].name);
		CHECK(strstr(out, name) && strstr(out, xs_option_table[i].help), "%s", name);
	}
	free(out);
}

/* ---- what others could have written ---- */

static const char *const given[] = {
	"a",
	"-h -c --ring-size 64K --backlog 0 --backlog-disk 1024G --on-full overwrite a",
	"--chrome-event-buffer-size -1 --call-stacks -q --sampling-interval 1 a",
	"--include-kernels one --include-kernels two --exclude-calls x --ranks-to-sample 0,3-5 a",
	"--flight-recorder 10s --trigger task:a>5ms --flight-memory 1M --format perfetto "
	"--compress zstd a",
	"--delay 1s --duration 2s --output-dir-path d a",
};

/* Each row's own field, in bytes; texts with the byte more that some have. */
static size_t field_size(const struct xs_option *row)
{
	if (row->type == XS_OPT_FLAG)
		return sizeof(bool);
	if (row->type == XS_OPT_CHOICE)
		return sizeof(uint32_t);
	return row->type >= XS_OPT_TEXT ? row->high + (row->adds != XS_LAST && !row->valid)
					: sizeof(uint64_t);
}

static void mended(void)
{
	static struct xs_options before;

	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		good(given[i]);
		before = options;
		CHECK(xs_options_mend(&options) && !memcmp(&before, &options, sizeof(options)),
		      "%s: nothing to mend", given[i]);
	}
	for (size_t i = 0; i < xs_option_count; i++) {
		const struct xs_option *row = &xs_option_table[i];
		bool any = row->type == XS_OPT_COUNT && row->choices; /* -1 is one of them */

		CHECK(!parse("--include-kernels one a"), "%s", error);
		xs_options_default(&before);
		memset((char *)&options + row->offset, any ? 0x7f : 0xff, field_size(row));
		CHECK(!xs_options_mend(&options), "--%s cannot be that", row->name);
		CHECK(xs_options_mend(&options), "--%s: all is mended", row->name);
		CHECK(!memcmp((char *)&before + row->offset, (char *)&options + row->offset,
			      row->type >= XS_OPT_TEXT ? 1 : field_size(row)),
		      "--%s as if it was not given", row->name);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("defaults", defaults);
	tap_run("every row", every_row);
	tap_run("sizes", sizes);
	tap_run("ranks", ranks);
	tap_run("what adds up", repeated);
	tap_run("pieces of names", pieces);
	tap_run("which kernels are wanted", kernels);
	tap_run("letters together", letters_together);
	tap_run("where the application begins", where_the_application_begins);
	tap_run("the nearest name", nearest);
	tap_run("conflicts", conflicts);
	tap_run("small buffers", small_buffers);
	tap_run("what is wanted", wishes);
	tap_run("help", help);
	tap_run("what cannot be given", mended);
	return tap_done();
}
