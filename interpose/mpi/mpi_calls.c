/*
 * Finding the MPI library, and the rare half of what each call does.
 */
#include "mpi_wrap.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>

__thread uintptr_t xs_mpi_inside __attribute__((tls_model("initial-exec")));
struct xs_mpi_abi xs_mpi_abi = { .handle_mask = UINT64_MAX };

/*
 * A library calls itself from few places, each a fixed way below its wrapper: a way that was once
 * seen by a look at the stack is known. Any other call from below may be one after a jump.
 */
bool xs_mpi_is_there(uintptr_t mark)
{
	static _Atomic uint64_t known[256];
	uint64_t way = (*(const uintptr_t *)mark ^ (uint64_t)(xs_mpi_inside - mark) << 48) *
			       0x9e3779b97f4a7c15ull |
		       1;
	_Atomic uint64_t *place = &known[way >> 56];

	if (mark < xs_mpi_inside) {
		if (atomic_load_explicit(place, memory_order_relaxed) == way)
			return true;
		if (xs_companion_came_by(xs_mpi_inside)) {
			atomic_store_explicit(place, way, memory_order_relaxed);
			return true;
		}
	}
	xs_mpi_inside = 0;
	return false;
}

void xs_mpi_write_long(const struct xs_mpi_call *call, uint32_t words, const uint64_t *word,
		       uint32_t count)
{
	union {
		struct xs_mpi_record record;
		uint64_t word[sizeof(struct xs_mpi_record) / 8 + XS_MPI_WORDS + 1];
	} buffer = { .record = { .event = { .tick = call->call.tick,
					    .name = call->function,
					    .kind = XS_MPI,
					    .source = XS_SOURCE_MPI,
					    .flags = call->result ? XS_FLAG_FAILED : 0 } } };
	uint64_t *place = buffer.record.word;

	(void)xs_call_leave(&call->call);
	for (uint32_t i = 0; i < count; i++)
		*place++ = word[i];
	if (call->result) {
		words |= 1u << XS_MPI_RESULT;
		*place++ = (uint32_t)call->result;
	}
	if (call->duration >> 48) {
		words |= 1u << XS_MPI_DURATION;
		*place++ = call->duration;
	}
	buffer.record.duration = call->duration & 0xffffffffffffu;
	buffer.record.words = words & 0xffff;
	buffer.record.event.words = (uint8_t)((place - buffer.word + 1) & ~1);
	xs_companion_record(&buffer, 8u * buffer.record.event.words);
}

/* ---- the library ---- */

static void *library; /* handle of the one that defines PMPI_Init */
static _Atomic uint32_t ready, publish_lock;
int (*xs_mpi_type_size)(xs_word type, int64_t *size);

void *xs_mpi_find_in(const char *name)
{
	return library ? dlsym(library, name) : NULL;
}

/* An address that programs may have copied into themselves. */
static void *find_data(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	return found ? found : xs_mpi_find_in(name);
}

static void *find_behind(const char *name, void *caller)
{
	void *found = dlsym(RTLD_NEXT, name), *handle;
	Dl_info info;

	if (found)
		return found;
	/*
	 * a library that dlopen() loads has its dependencies in a scope of its own, which only its
	 * own code can search
	 */
	if (!dladdr(caller, &info) || !info.dli_fname[0])
		return NULL;
	handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	found = dlsym(handle, name);
	dlclose(handle);
	return found;
}

static const char *soname_of(const struct link_map *map)
{
	const char *strings = NULL;
	size_t at = 0;

	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_STRTAB)
			strings = (const char *)d->d_un.d_ptr;
		if (d->d_tag == DT_SONAME)
			at = d->d_un.d_val;
	}
	return strings && at ? strings + at : "";
}

#pragma weak dladdr1 /* glibc's: see mpi_probe.c */

/*
 * No lock is held while the dynamic loader is asked: threads that are here together all find the
 * same.
 */
static void set_up(void *caller)
{
	struct xs_mpi_abi abi = { .handle_mask = UINT64_MAX };
	void *init = find_behind("PMPI_Init", caller);
	struct link_map *map;
	Dl_info info;

	if (init && dladdr1 && dladdr1(init, &info, (void **)&map, RTLD_DL_LINKMAP)) {
		library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
		xs_mpi_abi_choose(&abi, soname_of(map), find_data);
		*(void **)&xs_mpi_type_size = xs_mpi_find_in("PMPI_Type_size_x");
		xs_mpi_comms_find();
		xs_mpi_requests_find();
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
	found = find_behind(name, caller);
	if (!found)
		found = xs_mpi_find_in(name);
	errno = saved;
	return found ? found : (void *)missing;
}
