/*
 * The first call finds the MPI library, and each wrapper the function behind it.
 */
#include "mpi_wrap.h"

#include <errno.h>

static _Atomic uint32_t ready, publish_lock;

/*
 * No lock is held while the dynamic loader is asked: threads that are here together all find the
 * same.
 */
static void set_up(void *caller)
{
	struct xs_mpi_abi abi = { .handle_mask = UINT64_MAX };
	const char *soname = xs_mpi_library_open(caller);

	if (soname) {
		xs_mpi_abi_choose(&abi, soname, xs_mpi_find_data);
		xs_mpi_handles_find();
		xs_mpi_comms_find();
		xs_mpi_requests_find();
		xs_mpi_errors_find();
	}
	xs_lock_robust(&publish_lock);
	if (!atomic_load_explicit(&ready, memory_order_relaxed))
		xs_mpi_abi = abi; /* changes no more: others go by it */
	atomic_store_explicit(&ready, 1, memory_order_release);
	xs_unlock(&publish_lock);
}

/*
 * The result of a function that no library has: no program can be linked with it, but one may have
 * looked ours up.
 */
static int missing(void)
{
	return xs_mpi_abi.error_other;
}

void *xs_mpi_find(const char *name, void *caller)
{
	int saved = errno;
	void *found;

	if (!atomic_load_explicit(&ready, memory_order_acquire))
		set_up(caller);
	found = xs_mpi_find_behind(name, caller);
	if (!found)
		found = xs_mpi_find_in(name);
	errno = saved;
	return found ? found : (void *)missing;
}
