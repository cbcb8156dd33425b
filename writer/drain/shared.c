#include "shared.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

/* In the order of run->shared_inodes. */
static const struct {
	const char *name, *missing;
	uint64_t size;
} files[XS_SHARED_FILES] = {
	{ "control", "recording may have ended early", sizeof(struct xs_control) },
	{ "mailbox", "processes may be missing", sizeof(struct xs_mailbox) },
	{ "strings", "names that were to be read there are missing", XS_STRINGS_SIZE },
};

void xs_shared_note(struct xs_run *run)
{
	struct stat st;

	for (size_t i = 0; i < XS_SHARED_FILES; i++)
		if (!fstatat(run->directory, files[i].name, &st, AT_SYMLINK_NOFOLLOW))
			run->shared_inodes[i] = st.st_ino;
}

/* Does the directory's name still lead to it, for processes of this user? */
static bool has_directory(const struct xs_run *run)
{
	struct stat ours, named;

	return fstat(run->directory, &ours) < 0 ||
	       (!lstat(run->dir, &named) && named.st_dev == ours.st_dev &&
		named.st_ino == ours.st_ino && named.st_uid == geteuid() &&
		(named.st_mode & 07777) == 0700);
}

/* Would a process take the file for the run's? */
static bool has_file(const struct xs_run *run, size_t i)
{
	struct stat st;

	return !fstatat(run->directory, files[i].name, &st, AT_SYMLINK_NOFOLLOW) &&
	       (!run->shared_inodes[i] || st.st_ino == run->shared_inodes[i]) &&
	       S_ISREG(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 07777) == 0600 &&
	       st.st_nlink == 1;
}

/* By these a process knows that it belongs to the run, and what is wanted. */
static bool has_words(const struct xs_run *run)
{
	return !memcmp((const void *)run->control, run->made,
		       offsetof(struct xs_control, consumer)) &&
	       xs_control_is_whole(run->control);
}

/*
 * A program that cannot join the run has nobody to tell. It may be over before anybody looks at it.
 */
static void tell_closed(const struct xs_run *run)
{
	static const char since[] = "programs that were started since are not traced";

	if (!has_directory(run)) {
		xs_tell("[WARNING] %s, the directory of this run, was removed, moved or given to "
			"others while it went on; %s\n",
			run->dir, since);
		return;
	}
	for (size_t i = 0; i < XS_SHARED_FILES; i++)
		if (!has_file(run, i)) {
			xs_tell("[WARNING] '%s', a file that the run's processes share, was "
				"removed, replaced or given to others while it went on; %s\n",
				files[i].name, since);
			return;
		}
	if (!has_words(run))
		xs_tell("[WARNING] '%s', a file that the run's processes share, was overwritten; "
			"%s\n",
			files[0].name, since);
}

bool xs_shared_tell(const struct xs_run *run)
{
	bool cut = false;
	struct stat st;

	for (size_t i = 0; i < XS_SHARED_FILES; i++) {
		if (fstatat(run->directory, files[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode) || (uint64_t)st.st_size >= files[i].size)
			continue;
		cut = true;
		xs_tell("[WARNING] %s%s%s'%s', a file that the run's processes share, was cut; "
			"%s\n",
			run->recovering ? "--recover " : "", run->recovering ? run->dir : "",
			run->recovering ? ": " : "", files[i].name, files[i].missing);
	}
	if (!run->recovering && !cut)
		tell_closed(run);
	return cut;
}
