/*
 * What backends want to be called: lists without locks, the newest first.
 */
#include "self.h"

void xs_hang(struct xs_hook *_Atomic *hooks, struct xs_hook *hook)
{
	if (atomic_exchange(&hook->is_hung, true))
		return;
	hook->next = atomic_load(hooks);
	while (!atomic_compare_exchange_weak(hooks, &hook->next, hook))
		;
}

void xs_call_hooks(struct xs_hook *_Atomic *hooks)
{
	for (const struct xs_hook *hook = atomic_load(hooks); hook; hook = hook->next)
		hook->function();
}
