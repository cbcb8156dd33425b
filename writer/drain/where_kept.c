/* Where threads were, kept for the dumps of the flight recorder: as old as its history, and
 * bounded. */
#include <stdlib.h>
#include <string.h>

#include "extras.h"
#include "flight.h"
#include "sink.h"
#include "task_record.h"
#include "where.h"

#define KEPT_MAX (4u << 20) /* bytes of a process */

struct xs_kept_stack {
	struct xs_kept_stack *next;
	uint64_t tick;
	uint32_t tid, name, length;
	unsigned char args[];
};

static void drop_oldest(struct xs_process *process)
{
	struct xs_kept_stack *oldest = process->stacks;

	process->stacks = oldest->next;
	process->stacks_bytes -= sizeof(*oldest) + oldest->length;
	free(oldest);
}

void xs_where_keep(struct xs_process *process, const struct xs_mark *mark, uint64_t tick)
{
	uint32_t length = mark->extra->length;
	struct xs_kept_stack *stack = malloc(sizeof(*stack) + length), **last;

	if (!stack)
		return;
	stack->next = NULL;
	stack->tick = tick;
	stack->tid = mark->tid;
	stack->name = mark->name;
	stack->length = length;
	memcpy(stack->args, mark->extra->args, length);
	for (last = &process->stacks; *last; last = &(*last)->next)
		;
	*last = stack;
	process->stacks_bytes += sizeof(*stack) + length;
	while (process->stacks != stack &&
	       (process->stacks_bytes > KEPT_MAX ||
		xs_process_ns(process, process->stacks->tick) + process->run->options->flight <
			mark->ns))
		drop_oldest(process);
}

void xs_where_dump(struct xs_process *process)
{
	const struct xs_dump *dump = process->run->dump;

	for (struct xs_kept_stack *stack = process->stacks; stack; stack = stack->next) {
		struct xs_extra extra = { .args = stack->args, .length = stack->length };
		const struct xs_mark mark = { .tid = stack->tid,
					      .name = stack->name,
					      .ns = xs_process_ns(process, stack->tick),
					      .scope = XS_SCOPE_THREAD,
					      .extra = &extra };

		if (mark.ns >= dump->from && mark.ns <= dump->to)
			XS_TELL_SINKS(process, mark, process, &mark);
	}
}

void xs_where_forget(struct xs_process *process)
{
	while (process->stacks)
		drop_oldest(process);
}
