#include "stored.h"

#include <errno.h>
#include <sys/stat.h>

#include "text.h"

/* Does the name lead to the file? Also if nobody can say. */
static bool is_there(const char *path, uint64_t device, uint64_t inode)
{
	struct stat st;

	if (stat(path, &st))
		return errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
	return !inode || (st.st_dev == device && st.st_ino == inode);
}

void xs_tell_stored(const char *what, const char *path, uint64_t device, uint64_t inode, int error)
{
	if (is_there(path, device, inode))
		xs_tell("[INFO] %s stored in %s%s\n", what, path,
			error ? " (what came before the disk was full)" : "");
	else
		xs_tell("xstrace: %s is gone: it was removed, moved or replaced before it was "
			"complete\n",
			path);
}

void xs_tell_output(const char *what, const char *path, const struct xs_output *out, int error)
{
	if (out->cut && is_there(path, out->device, out->inode))
		xs_tell("xstrace: %s was cut before it was complete; what had been written of it "
			"is "
			"lost\n",
			path);
	else
		xs_tell_stored(what, path, out->device, out->inode, error);
}
