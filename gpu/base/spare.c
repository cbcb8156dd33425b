#include "spare.h"

#include <string.h>

#include "lock.h"

void *xs_spare_take(struct xs_spare *spare, size_t size)
{
	void **found;

	xs_lock_robust(&spare->lock);
	found = spare->first;
	if (found)
		spare->first = *found;
	xs_unlock(&spare->lock);
	return found ? found : xs_arena(size);
}

void *xs_spare_take_zeroed(struct xs_spare *spare, size_t size)
{
	void *memory = xs_spare_take(spare, size);

	return memory ? memset(memory, 0, size) : NULL;
}

void xs_spare_give(struct xs_spare *spare, void *memory)
{
	xs_lock_robust(&spare->lock);
	*(void **)memory = spare->first;
	spare->first = memory;
	xs_unlock(&spare->lock);
}
