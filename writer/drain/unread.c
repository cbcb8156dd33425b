#include "unread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "processes.h"
#include "text.h"

void xs_unread_begin(struct xs_process *process)
{
	process->unread = (struct xs_unread){ .files = 0 };
}

bool xs_unread_is_other(const struct xs_process *process, uint64_t made_as, uint64_t inode,
			uint32_t number)
{
	return made_as && !process->run->copied &&
	       made_as != xs_file_word(inode, process->pid, process->serial, number);
}

void xs_unread_note(struct xs_process *process, const char *name, int error)
{
	struct xs_unread *unread = &process->unread;

	unread->want |= xs_unread_for_want(error);
	if (unread->files++)
		return;
	unread->error = error;
	(void)snprintf(unread->name, sizeof(unread->name), "%s", name);
}

bool xs_unread_for_want(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

const char *xs_unread_reason(int error)
{
	switch (-error) {
	case ENOENT:
		return "it was removed";
	case EBADMSG:
		return "it was cut or overwritten";
	case EPERM:
	case EACCES:
	case ELOOP:
	case EISDIR:
	case ENXIO:
		return "it is another file, or not this user's alone";
	default:
		return strerror(-error);
	}
}

/* --recover: there was no memory for its trace, which has begun, or for one of what is in its
 * rings. */
static bool has_no_trace(const struct xs_process *process)
{
	return process->run->recovering && !process->run->refused && !process->out &&
	       xs_want_chrome(process->run->options) &&
	       (process->no_memory || (process->kept && process->kept->output[0]));
}

void xs_unread_end(struct xs_process *process, bool overwritten)
{
	struct xs_run *run = process->run;

	if (overwritten) /* nor does it say what there is */
		xs_unread_begin(process);
	if (process->no_backlog)
		xs_unread_note(process, "backlog", process->no_backlog);
	if (has_no_trace(process))
		xs_unread_note(process, process->name, -ENOMEM);
	if (!process->unread.files || !run->recovering)
		return;
	if (process->unread.want)
		xs_file_failed(process);
	else
		run->incomplete = true;
}

void xs_unread_tell(const struct xs_process *process)
{
	const struct xs_unread *unread = &process->unread;
	const struct xs_run *run = process->run;
	bool one = unread->files == 1;

	if (!unread->files)
		return;
	xs_tell("[WARNING] %s%s%s%u file%s of process %d (%s) could not be read%s: %s: %s; %s\n",
		run->recovering ? "--recover " : "", run->recovering ? run->dir : "",
		run->recovering ? ": " : "", unread->files, one ? "" : "s", process->pid,
		process->comm, one ? "" : ", the first of them", unread->name,
		xs_unread_reason(unread->error),
		run->recovering && unread->want ? XS_UNREAD_AGAIN : "events are missing");
}
