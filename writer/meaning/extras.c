/*
 * What tasks have that are not plain. Most tasks are: so it is apart, and its memory is used again.
 */
#include "extras.h"

#include <stdlib.h>

#include "sink.h"
#include "task_record.h"

#define ARGS_MAX   (256u << 10) /* bytes of one task's arguments */
#define ARGS_BYTES (256u << 20) /* of all tasks that are open in a process */
#define ARGS_ROOM  64u		/* of a task's first ones */

/* What tasks have that are not plain. */
struct xs_extras {
	struct xs_extra *spare; /* unused ones */
	uint64_t selves;	/* given out so far, see struct xs_extra */
	uint64_t bytes;		/* room of all arguments */
};

struct xs_extra *xs_extra_of(struct xs_process *process, struct xs_open *task)
{
	struct xs_extra *extra = task->extra;

	if (extra)
		return extra;
	if (!process->extras)
		process->extras = calloc(1, sizeof(*process->extras));
	if (!process->extras)
		return NULL;
	extra = process->extras->spare;
	if (extra)
		process->extras->spare = extra->next;
	else
		extra = calloc(1, sizeof(*extra));
	return task->extra = extra;
}

void xs_extra_drop(struct xs_process *process, struct xs_open *task)
{
	struct xs_extra *extra = task->extra;

	if (!extra)
		return;
	/* those that are open need it more than those to come, which need not be as many */
	if (process->extras->bytes > ARGS_BYTES / 2) {
		process->extras->bytes -= extra->room;
		free(extra->args);
		extra->args = NULL;
		extra->room = 0;
	}
	/* its memory is used again */
	*extra = (struct xs_extra){ .next = process->extras->spare,
				    .args = extra->args,
				    .room = extra->room };
	process->extras->spare = extra;
	task->extra = NULL;
}

void xs_extras_free(struct xs_process *process)
{
	while (process->extras && process->extras->spare) {
		struct xs_extra *extra = process->extras->spare;

		process->extras->spare = extra->next;
		free(extra->args);
		free(extra);
	}
	free(process->extras);
	process->extras = NULL;
}

bool xs_extra_self(struct xs_process *process, struct xs_open *task, struct xs_id *ret)
{
	struct xs_extra *extra = xs_extra_of(process, task);

	if (!extra)
		return false;
	if (!extra->self)
		extra->self = ++process->extras->selves;
	*ret = xs_id_of_self(extra->self);
	return true;
}

/* Room for `more` bytes of arguments. */
static bool grow_args(struct xs_process *process, struct xs_extra *extra, uint32_t more)
{
	uint32_t room = extra->room ? extra->room : ARGS_ROOM;
	unsigned char *grown;

	if (extra->length + more <= extra->room)
		return true;
	while (room < extra->length + more)
		room *= 2;
	if (room > ARGS_MAX || process->extras->bytes >= ARGS_BYTES)
		return false;
	grown = realloc(extra->args, room);
	if (!grown)
		return false;
	process->extras->bytes += room - extra->room;
	extra->args = grown;
	extra->room = room;
	return true;
}

void xs_extra_add_args(struct xs_process *process, struct xs_open *task,
		       const struct xs_args_record *record, uint32_t length)
{
	const unsigned char *args = (const unsigned char *)(record + 1), *values;
	struct xs_extra *extra = length ? xs_extra_of(process, task) : NULL;
	uint32_t whole = 0, given;
	struct xs_arg arg;

	if (!extra)
		return;
	while (xs_args_next(args, length, &whole, &arg, &values))
		;
	if (!whole)
		return;
	given = whole < length ? whole : length;
	if (!grow_args(process, extra, whole)) {
		extra->cut = true;
		return;
	}
	memcpy(extra->args + extra->length, args, given);
	memset(extra->args + extra->length + given, 0, whole - given);
	extra->length += whole;
}

void xs_extra_move_args(struct xs_process *process, struct xs_open *task, struct xs_open *from)
{
	struct xs_extra *args = from->extra;
	bool has_some = args && (args->length || args->cut);
	struct xs_extra *extra = has_some ? xs_extra_of(process, task) : NULL;

	if (!extra)
		return;
	extra->cut |= args->cut;
	if (!grow_args(process, extra, args->length)) {
		extra->cut = true;
		return;
	}
	memcpy(extra->args + extra->length, args->args, args->length);
	extra->length += args->length;
}

void xs_extra_set_id(struct xs_process *process, struct xs_open *task, const struct xs_id *id)
{
	if (!xs_id_is_null(id) && xs_extra_of(process, task))
		task->extra->id = *id;
}
