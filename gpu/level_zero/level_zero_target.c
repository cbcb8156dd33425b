/*
 * The functions below us, how they came to us, and what the options want of them.
 */
#include <errno.h>
#include <sys/uio.h>

#include "level_zero.h"

struct xs_ze_tables xs_ze;
bool xs_ze_calls, xs_ze_kernel_calls, xs_ze_appends, xs_ze_device, xs_ze_waits, xs_ze_queries,
	xs_ze_places;
const _Atomic uint32_t *xs_ze_alive_word;

void xs_ze_want(const struct xs_options *options)
{
	xs_ze_calls = xs_want_calls(options);
	xs_ze_kernel_calls = xs_want_kernel_calls(options);
	xs_ze_appends = xs_want_enqueues(options);
	xs_ze_waits = options->chrome_kernel;
	xs_ze_device = xs_want_device(options);
	xs_ze_queries = options->metric_query;
	xs_ze_places = xs_want_stalls(options);
}

bool xs_ze_take(void **target, void *real)
{
	void *now = NULL;

	/*
	 * extensions are asked for by any thread, while others call them: it is written once, and
	 * not touched again
	 */
	return __atomic_compare_exchange_n(target, &now, real, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE) ||
	       now == real;
}

/*
 * Is one of the two at this address, which may be no memory any more? A call of the kernel, but
 * only where a table is given twice.
 */
static bool holds(const void *address, const void *one, const void *other)
{
	const void *word;
	struct iovec to = { &word, sizeof(word) },
		     from = { (void *)(uintptr_t)address, sizeof(word) };

	long got = xs_sys(SYS_process_vm_readv, xs_sys(SYS_getpid), &to, 1, &from, 1, 0);

	if (got != (long)sizeof(word))
		return got != -EFAULT;
	return word && (word == one || word == other);
}

/*
 * Can the program still call through the previous table of this name? Not if the static loader has
 * put the loader's symbols into the table that it had asked for (since 1.21.9). These lead to a
 * table that the loader makes later. Loader 1.8 has then looked for its drivers twice, and fills
 * that table with other functions.
 */
static bool in_use(const struct xs_ze_place *place, void **entry, const void *real,
		   const void *wrapper)
{
	if (!place->before || place->before == place->entries)
		return false; /* the same loader has made its table anew */
	if (xs_ze_alive_word)
		return true; /* there are contexts, and they are of the functions that we have */
	return holds(place->before + ((const char *)entry - place->entries), wrapper, real);
}

void xs_ze_put(struct xs_ze_place *place, void **entry, void **target, void *wrapper)
{
	if (!*entry || *entry == wrapper || (place->refused && place->whole))
		return;
	if (!xs_ze_take(target, *entry)) {
		if (in_use(place, entry, *target, wrapper)) {
			place->refused = true;
			return;
		}
		*target = *entry;
	}
	place->taken = true;
	if (wrapper)
		*entry = wrapper;
}
