#include "new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "merge.h"

#define TRIES 100000

/* those that end a program, as somebody or something sends them */
static const int ending[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU };

static char unfinished[PATH_MAX];
static volatile sig_atomic_t is_unfinished;

static void end(int number)
{
	if (is_unfinished)
		(void)unlink(unfinished);
	(void)signal(number, SIG_DFL);
	(void)raise(number); /* it comes when this function returns */
}

void xm_new_file_init(void)
{
	struct sigaction before, action = { .sa_handler = end };

	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		if (!sigaction(ending[i], NULL, &before) && before.sa_handler == SIG_DFL)
			(void)sigaction(ending[i], &action, NULL);
}

/* Between the file and the note of it there is no signal. */
static void hold(sigset_t *before)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, before);
}

static void let_go(const sigset_t *before)
{
	(void)sigprocmask(SIG_SETMASK, before, NULL);
}

int xm_new_file_open(const char *wanted)
{
	const char *slash = strrchr(wanted, '/');
	int directory = slash ? (int)(slash - wanted) + 1 : 0, fd = -EEXIST;
	sigset_t before;

	hold(&before);
	for (int i = 0; i < TRIES && fd == -EEXIST; i++) {
		if (snprintf(unfinished, sizeof(unfinished), "%.*s.xstrace-merge-%d-%d", directory,
			     wanted, (int)getpid(), i) >= (int)sizeof(unfinished)) {
			fd = -ENAMETOOLONG;
			break;
		}
		fd = open(unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0)
			fd = -errno;
	}
	is_unfinished = fd >= 0;
	let_go(&before);
	return fd;
}

/* A directory may take files and give none back (chattr +a). */
static void forget(void)
{
	if (unlink(unfinished) < 0 && errno != ENOENT)
		xm_say("[WARNING] %s cannot be removed: %s; nothing needs it any more", unfinished,
		       strerror(errno));
}

/* 0 or -errno: -EEXIST where the name is taken. */
static int take_name(const char *path)
{
	int fd;

	if (!link(unfinished, path)) {
		forget();
		return 0;
	}
	if (errno == EEXIST || errno == ENAMETOOLONG)
		return -errno;
	/* a file system without links, or no right to make any */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	close(fd);
	if (!rename(unfinished, path))
		return 0;
	fd = -errno;
	(void)unlink(path);
	return fd;
}

/* ".json", also ".json.zst"; NULL: none. */
static const char *suffix_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
		   *dot = strrchr(name, '.'), *before = dot;

	if (dot && (!strcmp(dot, ".zst") || !strcmp(dot, ".gz")))
		while (before > name && *--before != '.')
			;
	return before && *before == '.' ? before : dot;
}

int xm_new_file_keep(const char *wanted, char *path)
{
	const char *dot = suffix_of(wanted);
	int stem = dot ? (int)(dot - wanted) : (int)strlen(wanted), result = -EEXIST;
	sigset_t before;

	hold(&before);
	for (int i = 1; i < TRIES && result == -EEXIST; i++) {
		if (i == 1)
			(void)snprintf(path, PATH_MAX, "%s", wanted);
		else
			(void)snprintf(path, PATH_MAX, "%.*s-%d%s", stem, wanted, i,
				       dot ? dot : "");
		result = take_name(path);
	}
	if (!result)
		is_unfinished = false;
	let_go(&before);
	if (result)
		xm_new_file_drop();
	return result;
}

void xm_new_file_drop(void)
{
	is_unfinished = false;
	forget();
}
