/*
 * The Python functions of a process's threads: which they are is read while the threads stand
 * still, what they are called when they have gone on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "python_frames.h"
#include "stacks.h"

static struct xs_python python;
static bool found;

/* What is there at this moment: pages that were kept may be of another one. */
static int read_now(void *data, uint64_t address, void *to, size_t bytes)
{
	struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)address, bytes };
	pid_t pid = (pid_t)(intptr_t)data;

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes ? 0 : -EFAULT;
}

bool xs_python_look(pid_t pid)
{
	const struct xs_module *module;

	found = false; /* it may have become another program */
	for (size_t i = 0; !found && (module = xs_module_at(i)); i++) {
		const char *name = strrchr(module->path, '/');

		/* the program itself comes first, whatever it is called */
		if (!i || (name && !strncmp(name + 1, "libpython3", 10)))
			found = !xs_python_find(&python, read_now, (void *)(intptr_t)pid,
						module->start);
	}
	return found;
}

static struct xs_python_thread list[XS_THREADS_MAX];
static uint32_t count;

void xs_python_list(void)
{
	count = found ? xs_python_threads(&python, list, XS_THREADS_MAX) : 0;
}

static bool is_of(const struct xs_python_thread *which, const struct xs_thread *thread)
{
	return which->tid ? which->tid == (uint64_t)thread->inner
			  : which->pthread && which->pthread == (uint64_t)thread->registers.fs_base;
}

void xs_python_copy_one(struct xs_thread *thread)
{
	static struct xs_python_frame frames[XS_FRAMES_MAX];
	uint32_t n, i = 0;

	if (!thread->copied || thread->python)
		return;
	while (i < count && !is_of(&list[i], thread))
		i++;
	if (i == count)
		return;
	n = xs_python_frames(&python, list[i].state, frames, XS_FRAMES_MAX, &thread->python_more);
	thread->python = malloc(n * sizeof(*frames) + 1);
	if (!thread->python)
		return;
	memcpy(thread->python, frames, n * sizeof(*frames));
	thread->python_count = n;
}

void xs_python_copy(struct xs_threads *threads)
{
	for (size_t i = 0; count && i < threads->count; i++)
		xs_python_copy_one(&threads->list[i]);
}

/* The file's name, without its directory. */
static const char *base_of(const struct xs_python_text *file)
{
	const char *slash = strrchr(file->text, '/');

	return slash ? slash + 1 : file->text;
}

const char *xs_python_text(const struct xs_python_frame *frame)
{
	static char text[2 * XS_PYTHON_TEXT_MAX + 32];
	struct xs_python_text function, file;

	xs_python_function(&python, frame->code, &function);
	xs_python_file(&python, frame->code, &file);
	(void)snprintf(text, sizeof(text), "%s (%s:%u)", function.text, base_of(&file),
		       xs_python_first_line(&python, frame->code));
	return text;
}

uint64_t xs_python_identity(const struct xs_python_frame *frame)
{
	return xs_python_check_of(&python, frame->code);
}

void xs_python_print(const struct xs_thread *thread)
{
	for (uint32_t i = 0; i < thread->python_count; i++) {
		const struct xs_python_frame *frame = &thread->python[i];
		struct xs_python_text function, file;

		xs_python_function(&python, frame->code, &function);
		xs_python_file(&python, frame->code, &file);
		printf("P %d ", frame->is_entry);
		xs_print_text(function.text, "");
		printf(" (");
		xs_print_text(base_of(&file), "");
		printf(":%u)\n", xs_python_line(&python, frame));
	}
}
