/*
 * What backends want to be called: lists without locks, the newest first; and who is told names.
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

_Atomic uint32_t xs_named_devices[XS_NAMED_DEVICES];
_Atomic(xs_namer *) xs_object_namer;

void xs_name_object(enum xs_object object, uint64_t handle, const char *name)
{
	xs_namer *tell;
	uint32_t id = name ? xs_name(name, 0) : 0;

	if (!id)
		return;
	/* first of all: a backend that comes now takes it from there */
	if (object == XS_OBJECT_DEVICE && handle < XS_NAMED_DEVICES)
		atomic_store(&xs_named_devices[handle], id);
	tell = atomic_load(&xs_object_namer);
	if (tell)
		tell(object, handle, id);
}
