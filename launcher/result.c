/*
 * Where results go. --result-dir: DIR/[rank_<r>.]xstrace.<pid>/run_config.json, which says what was
 * run and how. Its first six keys are unitrace's, whose scripts read them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "launcher.h"
#include "paths.h"
#include "text.h"
#include "version.h"

#define TRIES 10000u

/* Opened, in *ret_at: a link may be in its place a moment later, where others may write there. */
static int make_directory(struct xs_result *result, const struct xs_launch *launch, int *ret_at)
{
	char rank[24] = "", number[16] = "", parent[PATH_MAX - 64];
	int error = xs_path_from_root(launch->control->options.result_dir, parent, sizeof(parent)),
	    above = error < 0 ? error : open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (above < 0)
		return error < 0 ? error : -errno;
	if (launch->control->rank >= 0)
		(void)snprintf(rank, sizeof(rank), "rank_%d.", launch->control->rank);
	for (unsigned n = 1; n < TRIES; n++) {
		const char *name = result->directory + strlen(parent) + (parent[1] != '\0');

		if (n > 1)
			(void)snprintf(number, sizeof(number), "-%u", n);
		(void)snprintf(result->directory, sizeof(result->directory), "%s/%sxstrace.%d%s",
			       parent[1] ? parent : "", rank, getpid(), number);
		error = mkdirat(above, name, 0777) ? -errno : 0;
		if (!error)
			*ret_at =
				openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (!error && *ret_at < 0)
			error = -errno;
		if (error != -EEXIST)
			break;
	}
	close(above);
	if (error < 0)
		result->directory[0] = '\0';
	return error;
}

static void put_text(FILE *out, const char *text)
{
	size_t length = strlen(text);
	char *escaped = malloc(6 * length + XS_JSON_MICROS_MAX);

	if (escaped)
		fprintf(out, "\"%.*s\"", (int)(xs_json_escape(escaped, text, length) - escaped),
			escaped);
	else
		fputs("null", out);
	free(escaped);
}

/* Up to `end`, or NULL. */
static void put_list(FILE *out, const char *key, char **words, char **end)
{
	fprintf(out, "  \"%s\": [", key);
	for (char **word = words; word != end && *word; word++) {
		if (word != words)
			fputs(", ", out);
		put_text(out, *word);
	}
	fputs("],\n", out);
}

static void put_member(FILE *out, const char *key, const char *text)
{
	fprintf(out, "  \"%s\": ", key);
	put_text(out, text);
	fputs(",\n", out);
}

static void put_config(FILE *out, const struct xs_launch *launch, char **all, char **argv)
{
	const struct xs_control *control = launch->control;
	char host[256] = "", cwd[PATH_MAX] = "", pid[16];

	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(pid, sizeof(pid), "%d", getpid());
	fputs("{\n", out);
	put_member(out, "unitrace version", "xstrace " XS_VERSION);
	put_member(out, "app", argv[0]);
	put_list(out, "unitrace_args", all + 1, argv);
	put_list(out, "app_args", argv + 1, NULL);
	put_member(out, "Host", host);
	put_member(out, "pid", pid);
	put_member(out, "tool", "xstrace");
	put_member(out, "version", XS_VERSION);
	put_member(out, "run", control->run_id);
	if (getcwd(cwd, sizeof(cwd)))
		put_member(out, "directory", cwd);
	if (control->rank >= 0)
		fprintf(out, "  \"rank\": %d,\n", control->rank);
	fprintf(out, "  \"start_ns\": %llu\n}\n", (unsigned long long)control->real0);
}

int xs_report_check(const struct xs_options *options)
{
	char directory[PATH_MAX], report[PATH_MAX];
	const char *name = strrchr(options->output, '/');
	int error;

	if (!options->output[0])
		return 0;
	name = name ? name + 1 : options->output;
	if (!*name || !strcmp(name, ".") || !strcmp(name, "..")) {
		xs_tell("xstrace: --output %s: a directory; add a file's name, as in rep.txt\n",
			options->output);
		return -1;
	}
	/* where it says, whatever --output-dir-path is */
	error = xs_path_from_root(options->output, report, sizeof(report));
	if (error < 0) {
		xs_tell("xstrace: --output %s: %s\n", options->output, strerror(-error));
		return -1;
	}
	(void)snprintf(directory, sizeof(directory), "%.*s",
		       strrchr(report, '/') > report ? (int)(strrchr(report, '/') - report) : 1,
		       report);
	if (access(directory, W_OK | X_OK) == 0)
		return 0;
	xs_tell("xstrace: --output %s: %s: %s\n", options->output, directory, strerror(errno));
	return -1;
}

int xs_result_create(struct xs_result *result, const struct xs_launch *launch, char **all,
		     char **argv)
{
	int at = -1, fd, error = make_directory(result, launch, &at);
	FILE *out;
	bool bad;

	if (error < 0)
		return error;
	(void)snprintf(launch->control->own_directory, sizeof(launch->control->own_directory), "%s",
		       result->directory);
	(void)snprintf(result->config, sizeof(result->config), "%s/run_config.json",
		       result->directory);
	fd = openat(at, "run_config.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	error = -errno;
	close(at);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out)
		return error;
	put_config(out, launch, all, argv);
	bad = ferror(out);
	return fclose(out) || bad ? -errno : 0;
}

void xs_result_remove(const struct xs_result *result)
{
	if (result->config[0])
		(void)unlink(result->config);
	if (result->directory[0])
		(void)rmdir(result->directory);
}

/* ---- where results go, before the application starts ---- */

static int make_output(const struct xs_options *options, bool *ret_made)
{
	char inside[XS_PATH_MAX + 2];

	(void)snprintf(inside, sizeof(inside), "%s/.", options->output_dir);
	if (!options->output_dir[0])
		return 0;
	*ret_made = !mkdir(options->output_dir, 0777);
	if (*ret_made || (errno == EEXIST && !access(inside, F_OK)))
		return 0;
	xs_tell("xstrace: --%s %s: %s\n", options->result_dir[0] ? "result-dir" : "output-dir-path",
		options->output_dir, strerror(errno));
	return -errno;
}

int xs_output_check(const struct xs_options *options, bool *ret_made)
{
	char dir[PATH_MAX];
	int error;

	if (make_output(options, ret_made) < 0)
		return -1;
	/* no path leads into a working directory that was removed, or lies too deep */
	error = xs_path_from_root(options->output_dir, dir, sizeof(dir));
	if (!error && access(dir, W_OK | X_OK) < 0)
		error = -errno;
	if ((xs_want_chrome(options) || options->result_dir[0]) && error < 0) {
		xs_tell("xstrace: cannot write in %s: %s; --%s chooses another directory\n", dir,
			strerror(-error),
			options->result_dir[0] ? "result-dir" : "output-dir-path");
		return -1;
	}
	return xs_report_check(options);
}
