/* What is said of a process on stderr when it has ended: what is missing, and what it has not
 * freed. */
#include <stdio.h>

#include "names.h"
#include "processes.h"
#include "program.h"
#include "text.h"
#include "unread.h"
#include "unseen.h"

static void tell_unseen(const struct xs_process *process)
{
	uint32_t unseen = atomic_load(&process->file->unseen);

	for (uint32_t i = 0; i < 32; i++)
		if (unseen & 1u << i && xs_unseen_text(i))
			xs_tell("[WARNING] process %d (%s): %s\n", process->pid, process->comm,
				xs_unseen_text(i));
}

static void tell_other_class(const struct xs_process *process)
{
	if (atomic_load(&process->file->unseen) & 1u << XS_UNSEEN_CLASS)
		xs_tell("[WARNING] process %d (%s): it has started %.*s, which %s and is "
			"not traced\n",
			process->pid, process->comm, (int)sizeof(process->file->other_class) - 1,
			process->file->other_class, xs_program_why_not(XS_PROGRAM_OTHER_CLASS));
}

/* What no table had room for. */
static void tell_omitted(const struct xs_process *process)
{
	char text[256] = "";
	size_t n = 0;

	for (int i = 0; i < XS_OMIT_COUNT; i++)
		if (process->omitted[i])
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %llu",
					      n ? ", " : "", xs_omit_word(i),
					      (unsigned long long)process->omitted[i]);
	if (n)
		xs_tell("[WARNING] process %d (%s) has more at once than xstrace keeps; how often "
			"something is left out or merged: %s\n",
			process->pid, process->comm, text);
}

/* What the trace and the reports lack, in a line for each kind of it. */
static void tell_missing(const struct xs_process *process)
{
	/* then what is on its way is nothing to tell */
	bool runs = process->run->flight && process->end == XS_END_RUNNING;
	const struct {
		uint64_t count;
		const char *what, *is, *are, *why;
	} missing[] = {
		{ process->unwritten ? process->lost : 0, "event", "is lost, at least",
		  "are lost, at least", ": what the disk did not take is not counted one by one" },
		{ process->unwritten ? 0 : process->lost, "event", "is lost", "are lost",
		  process->no_memory ? ": there was no memory for a trace of it"
				     : "; see --ring-size and --on-full, and otherData in the "
				       "trace for which threads" },
		/* that its file was cut has been said */
		{ process->cut ? 0 : process->corrupt, "ring", "was", "were",
		  " not as they should be; records of them may be missing" },
		{ process->impossible, "event", "is left out", "are left out",
		  ": the times that the program or a driver told cannot be (an end before the "
		  "begin, long before the run, or in the future)" },
		{ process->untimed, "command", "is missing", "are missing",
		  ": device times could not be had" },
		{ process->unmeasured, "kernel", "has", "have",
		  " no metrics: the device's counters could not be read" },
		{ process->unsampled, "sample", "of instructions is lost, at least",
		  "of instructions are lost, at least",
		  ": the device had no room for more; a longer --sampling-interval needs less" },
		{ runs ? 0 : process->open_commands, "command", "is missing", "are missing",
		  ": not known to be complete when the process ended, or while it was recorded" },
		{ runs ? 0 : process->open_requests, "MPI request", "was", "were",
		  " not known to be complete when the process ended, or while it was recorded" },
	};

	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
		if (missing[i].count)
			xs_tell("[WARNING] %llu %s%s of process %d (%s) %s%s\n",
				(unsigned long long)missing[i].count, missing[i].what,
				missing[i].count == 1 ? "" : "s", process->pid, process->comm,
				missing[i].count == 1 ? missing[i].is : missing[i].are,
				missing[i].why);
}

/* What the program has allocated on a device, and still had when it ended. */
static void tell_unfreed(const struct xs_process *process, const struct xs_unfreed *unfreed)
{
	uint64_t count = atomic_load(&unfreed->count), bytes = atomic_load(&unfreed->bytes);
	uint32_t device = atomic_load(&unfreed->device);

	if (count)
		xs_tell("[INFO] process %d (%s) has not freed %llu USM allocation%s of "
			"SYCL%s%.200s, "
			"%llu bytes\n",
			process->pid, process->comm, (unsigned long long)count,
			count == 1 ? "" : "s", device ? " on " : "",
			device ? xs_text_find(process->run, device).text : "",
			(unsigned long long)bytes);
}

bool xs_process_is_overwritten(const struct xs_process *process)
{
	const volatile struct xs_process_file *file = process->file;

	return file->magic != XS_MAGIC || file->pid != process->pid ||
	       file->serial != process->serial;
}

void xs_process_tell_end(const struct xs_process *process)
{
	if (xs_process_is_overwritten(process)) {
		tell_missing(process);
		tell_omitted(process);
		xs_tell("[WARNING] process %d (%s), or a child of it, has overwritten what it "
			"shares with us; what it could not record is not known\n",
			process->pid, process->comm);
		return;
	}
	for (unsigned i = 0;
	     i < XS_UNFREED && !(process->run->flight && process->end == XS_END_RUNNING); i++)
		tell_unfreed(process, &process->file->unfreed[i]);
	tell_missing(process);
	xs_unread_tell(process);
	tell_omitted(process);
	tell_unseen(process);
	tell_other_class(process);
}
