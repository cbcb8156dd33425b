/*
 * Any command line: options within their bounds, or one line that says what is wrong. The input's
 * words end with NUL bytes. An input that begins with a line of DEMAND is what dynolog asks for
 * instead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "demand_config.h"
#include "options.h"
#include "ring.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(const struct xs_options *options)
{
	for (size_t i = 0; i < xs_option_count; i++) {
		const struct xs_option *row = &xs_option_table[i];
		const char *field = (const char *)options + row->offset;
		uint64_t number;
		uint32_t choice, choices = 1;

		switch (row->type) {
		case XS_OPT_FLAG:
			if (*(const unsigned char *)field > 1)
				abort();
			break;
		case XS_OPT_CHOICE:
			for (const char *c = row->choices; *c; c++)
				choices += *c == '|';
			memcpy(&choice, field, sizeof(choice));
			if (choice >= choices)
				abort();
			break;
		case XS_OPT_COUNT:
		case XS_OPT_MAYBE_COUNT:
		case XS_OPT_SIZE:
		case XS_OPT_TIME:
			memcpy(&number, field, sizeof(number));
			if (row->choices && number == UINT64_MAX) /* "-1": not given */
				break;
			if (number && (number < row->low || number > row->high))
				abort();
			break;
		case XS_OPT_CHECKED:
			if (*field && !row->valid(field))
				abort();
			/* fallthrough */
		case XS_OPT_TEXT:
		case XS_OPT_MAYBE_TEXT:
			if (!memchr(field, '\0', row->high))
				abort();
			break;
		}
	}
	if (options->ring_size < XS_RING_MIN || options->ring_size > XS_RING_MAX ||
	    options->ring_size & (options->ring_size - 1))
		abort();
}

static void ask(const char *text, size_t length)
{
	static struct xs_demand_config config;
	static char error[256], path[PATH_MAX + 1];
	bool valid;

	memset(error, 'x', sizeof(error));
	memset(path, 'x', sizeof(path));
	valid = xs_demand_parse(&config, text, length, error, sizeof(error));
	if (!memchr(config.log_file, '\0', sizeof(config.log_file)) ||
	    !memchr(config.trace_id, '\0', sizeof(config.trace_id)) || config.start_iteration < -1)
		abort();
	if (!valid) {
		if (!memchr(error, '\0', sizeof(error)) || !error[0])
			abort();
		for (const char *at = error; *at; at++)
			if ((unsigned char)*at < ' ')
				abort();
		return;
	}
	(void)xs_demand_path(&config, 1 + (int32_t)length, path);
	if (path[0] != '/' || strstr(path, "..") || !memchr(path, '\0', PATH_MAX))
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static const char demand[] = "DEMAND\n";
	static char text[8192], error[512];
	static struct xs_options options;
	char *argv[128] = { "xstrace" };
	int argc = 1, app = -1, result;

	if (size >= sizeof(text))
		return 0;
	if (size >= strlen(demand) && !memcmp(data, demand, strlen(demand))) {
		ask((const char *)data + strlen(demand), size - strlen(demand));
		return 0;
	}
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t at = 0; at < size && argc < 127; at += strlen(text + at) + 1)
		argv[argc++] = text + at;
	memset(error, 'x', sizeof(error));
	result = xs_options_parse(&options, argc, argv, &app, error, sizeof(error));
	if (app < 1 || app > argc || (result && result != -EINVAL))
		abort();
	if (result && (!memchr(error, '\0', sizeof(error)) || !error[0]))
		abort();
	if (!result)
		check(&options);
	return 0;
}
