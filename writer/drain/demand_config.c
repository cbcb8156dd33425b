/*
 * --on-demand: Kineto's keys, one in a line (KEY=VALUE, # begins a remark). What has no meaning
 * here is passed over, as Kineto does with keys that it does not know.
 */
#include "demand_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity_types.h"
#include "text.h"

#define DEFAULT_DURATION 500000000u
#define MS		 1000000u
#define INT32_TOP	 2147483647u
/* a line of a log file's name and its key */
#define LINE_MAX_BYTES (PATH_MAX + 64u)

struct line {
	struct xs_demand_config *config;
	const char *key, *value;
};

static bool read_number(const char *text, uint64_t most, uint64_t *ret)
{
	char *end;

	if (*text < '0' || *text > '9' || strlen(text) > 19)
		return false;
	*ret = strtoull(text, &end, 10);
	return !*end && *ret <= most;
}

static bool read_bool(const char *text, bool *ret)
{
	static const char *const words[] = { "n", "y",	   "no",   "yes", "f",
					     "t", "false", "true", "0",	  "1" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(text, words[i])) {
			*ret = i % 2;
			return true;
		}
	return false;
}

/* ---- the values ---- */

static bool set_file(struct line *line)
{
	size_t length = strlen(line->value);

	if (length >= sizeof(line->config->log_file))
		return false;
	memcpy(line->config->log_file, line->value, length + 1);
	return true;
}

static bool set_id(struct line *line)
{
	size_t length = strlen(line->value);

	if (length >= sizeof(line->config->trace_id))
		return false;
	memcpy(line->config->trace_id, line->value, length + 1);
	return true;
}

static bool set_seconds(struct line *line)
{
	bool valid = read_number(line->value, INT32_TOP, &line->config->duration);

	line->config->duration *= 1000ull * MS;
	return valid;
}

static bool set_milliseconds(struct line *line)
{
	bool valid = read_number(line->value, INT32_TOP, &line->config->duration);

	line->config->duration *= MS;
	return valid;
}

static bool set_iterations(struct line *line)
{
	return read_number(line->value, INT32_TOP, &line->config->iterations);
}

static bool set_start_time(struct line *line)
{
	return read_number(line->value, INT64_MAX / MS, &line->config->start_time);
}

static bool set_start_iteration(struct line *line)
{
	uint64_t number = 0;
	/* -1: by time */
	bool valid = !strcmp(line->value, "-1") || read_number(line->value, INT32_TOP, &number);

	line->config->start_iteration = line->value[0] == '-' ? -1 : (int64_t)number;
	return valid;
}

static bool set_roundup(struct line *line)
{
	if (!read_number(line->value, INT32_TOP, &line->config->roundup))
		return false;
	if (line->config->roundup && line->config->start_iteration < 0)
		line->config->start_iteration = 0;
	return true;
}

static bool set_enabled(struct line *line)
{
	return read_bool(line->value, &line->config->enabled);
}

static bool set_fabric(struct line *line)
{
	line->config->fabric_given = true;
	return read_bool(line->value, &line->config->fabric);
}

static bool set_interval(struct line *line)
{
	bool valid = read_number(line->value, INT32_TOP, &line->config->interval);

	line->config->interval *= 1000ull * MS;
	return valid;
}

/* A list of names with commas between; a name that is not known makes it invalid, as for Kineto. */
static bool set_types(struct line *line)
{
	line->config->types = 0;
	for (const char *at = line->value; *at;) {
		size_t length = strcspn(at, ","), n = length;
		const char *name = at;
		int type;

		at += length + (at[length] == ',');
		for (; n && (*name == ' ' || *name == '\t'); n--)
			name++;
		while (n && (name[n - 1] == ' ' || name[n - 1] == '\t'))
			n--;
		if (!n)
			continue;
		type = xs_activity_type_of(name, n);
		if (type < 0)
			return false;
		line->config->types |= 1ull << type;
	}
	return true;
}

static const struct {
	const char *key;
	bool (*set)(struct line *line);
} keys[] = {
	{ "ACTIVITIES_LOG_FILE", set_file },
	{ "ACTIVITIES_DURATION_SECS", set_seconds },
	{ "ACTIVITIES_DURATION_MSECS", set_milliseconds },
	{ "ACTIVITIES_ITERATIONS", set_iterations },
	{ "ACTIVITIES_ENABLED", set_enabled },
	{ "ACTIVITY_TYPES", set_types },
	{ "PROFILE_START_TIME", set_start_time },
	{ "PROFILE_START_ITERATION", set_start_iteration },
	{ "PROFILE_START_ITERATION_ROUNDUP", set_roundup },
	{ "REQUEST_TRACE_ID", set_id },
	{ "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS", set_interval },
	{ "ENABLE_IPC_FABRIC", set_fabric },
};

/* ---- lines ---- */

static char *trim(char *text)
{
	char *end = text + strlen(text);

	text += strspn(text, " \t");
	while (end > text && strchr(" \t\r", end[-1]))
		*--end = '\0';
	return text;
}

/* A key and a value, in place. False: it is neither that nor empty. */
static bool read_line(struct xs_demand_config *config, char *text)
{
	struct line line = { .config = config };
	char *equals;

	text[strcspn(text, "#")] = '\0';
	text = trim(text);
	if (!*text)
		return true;
	equals = strchr(text, '=');
	if (!equals || strchr(equals + 1, '='))
		return false;
	*equals = '\0';
	line.key = trim(text);
	line.value = trim(equals + 1);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(line.key, keys[i].key))
			return keys[i].set(&line);
	return true;
}

static void set_defaults(struct xs_demand_config *config)
{
	memset(config, 0, sizeof(*config));
	config->duration = DEFAULT_DURATION;
	config->start_iteration = -1;
	config->interval = UINT64_MAX;
	config->enabled = true;
}

bool xs_demand_parse(struct xs_demand_config *config, const char *text, size_t length, char *error,
		     size_t error_size)
{
	char line[LINE_MAX_BYTES], shown[64];

	set_defaults(config);
	if (memchr(text, '\0', length)) {
		(void)snprintf(error, error_size, "it holds a zero byte");
		return false;
	}
	while (length) {
		const char *end = memchr(text, '\n', length);
		size_t n = end ? (size_t)(end - text) : length;

		if (n >= sizeof(line)) {
			(void)snprintf(error, error_size, "a line of it has %zu bytes", n);
			return false;
		}
		memcpy(line, text, n);
		line[n] = '\0';
		if (!read_line(config, line)) {
			*xs_plain(shown, text, n < 60 ? n : 60) = '\0';
			(void)snprintf(error, error_size, "its line \"%s\" is not understood",
				       shown);
			return false;
		}
		text += n + (end != NULL);
		length -= n + (end != NULL);
	}
	return true;
}

/* ---- the trace's path ---- */

/* The pid comes before the first of these endings that the path has. */
static size_t stem_of(const char *path)
{
	const char *at = strstr(path, ".pt.trace.json");

	if (!at)
		at = strstr(path, ".json");
	return at ? (size_t)(at - path) : 0;
}

void xs_demand_usual_path(int32_t pid, char *path)
{
	(void)sprintf(path, "/tmp/libkineto_activities_%d.json", pid);
}

bool xs_demand_path(const struct xs_demand_config *config, int32_t pid, char *path)
{
	const char *given = config->log_file;
	size_t stem = stem_of(given), length = strlen(given);
	/* the pid, ".tmp" and a number come to it */
	bool allowed = xs_demand_base(given) && !strstr(given, "..") && length < PATH_MAX - 64;

	if (!allowed)
		xs_demand_usual_path(pid, path);
	else if (stem)
		memcpy(path + stem + sprintf(mempcpy(path, given, stem), "_%d", pid), given + stem,
		       length - stem + 1);
	else
		memcpy(path, given, length + 1);
	return allowed || !given[0];
}
