/*
 * Which libcupti: the one that the program uses itself, or that belongs to its CUDA.
 *
 * libcupti is opened and never linked: a program without CUDA knows nothing of it.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "xs_cuda.h"

struct xs_cupti xs_cupti;
pid_t xs_cuda_owner;

/* Newest first. Of 11 each minor version has a name of its own. */
static const struct {
	const char *runtime, *cupti;
} majors[] = {
	{ "libcudart.so.14", "libcupti.so.14" },     { "libcudart.so.13", "libcupti.so.13" },
	{ "libcudart.so.12", "libcupti.so.12" },     { "libcudart.so.11.0", "libcupti.so.11.8" },
	{ "libcudart.so.11.0", "libcupti.so.11.7" }, { "libcudart.so.11.0", "libcupti.so.11.6" },
	{ "libcudart.so.11.0", "libcupti.so.11.5" }, { "libcudart.so.11.0", "libcupti.so.11.4" },
	{ "libcudart.so.11.0", "libcupti.so.11.3" }, { "libcudart.so.11.0", "libcupti.so.11.2" },
	{ "libcudart.so.11.0", "libcupti.so.11.1" }, { "libcudart.so.11.0", "libcupti.so.11.0" },
};
#define MAJORS (sizeof(majors) / sizeof(majors[0]))

/* One thread at a time looks (door.c). */
static char path[2 * PATH_MAX];

static void *open_at(const char *directory, size_t length, const char *below, const char *name)
{
	size_t between = strlen(below), last = strlen(name);

	if (!length || length + between + last + 1 > sizeof(path))
		return NULL;
	memcpy(path, directory, length);
	memcpy(path + length, below, between);
	memcpy(path + length + between, name, last + 1);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Where the CUDA runtime lies: in a toolkit beside libcupti, of PyPI's packages in a folder near.
 */
static void *open_beside(void *runtime, const char *name)
{
	static const char *const near[] = { "", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/" };
	void *some = dlsym(runtime, "cudaRuntimeGetVersion"), *handle = NULL;
	const char *slash;
	Dl_info info;

	if (!some || !dladdr(some, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	for (size_t i = 0; slash && !handle && i < sizeof(near) / sizeof(near[0]); i++)
		handle = open_at(info.dli_fname, (size_t)(slash + 1 - info.dli_fname), near[i],
				 name);
	return handle;
}

static void *open_below(const char *variable, const char *name)
{
	const char *home = getenv(variable);
	void *handle = NULL;

	if (!home || !home[0])
		return NULL;
	handle = open_at(home, strlen(home), "/lib64/", name);
	return handle ? handle : open_at(home, strlen(home), "/extras/CUPTI/lib64/", name);
}

/* Of one version, wherever it is: the one beside the runtime fits for certain. */
static void *open_any(const char *name, void *runtime)
{
	void *handle = runtime ? open_beside(runtime, name) : NULL;

	if (!handle)
		handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		handle = open_below("CUDA_HOME", name);
	if (!handle)
		handle = open_below("CUDA_PATH", name);
	return handle ? handle : open_at("/usr/local/cuda", 15, "/lib64/", name);
}

/* What the program uses already; else what goes with its runtime; else, as it may be linked
   statically, the newest that is there. */
static void *open_library(void)
{
	void *handle = NULL, *runtime;
	bool some = false;

	for (size_t i = 0; !handle && i < MAJORS; i++)
		handle = dlopen(majors[i].cupti, RTLD_NOW | RTLD_NOLOAD);
	for (size_t i = 0; !handle && i < MAJORS; i++) {
		runtime = dlopen(majors[i].runtime, RTLD_NOW | RTLD_NOLOAD);
		if (!runtime)
			continue;
		some = true;
		handle = open_any(majors[i].cupti, runtime);
		(void)dlclose(runtime);
	}
	for (size_t i = 0; !some && !handle && i < MAJORS; i++)
		handle = open_any(majors[i].cupti, NULL);
	return handle;
}

static void take_later(void *library)
{
	struct xs_cupti_later *later = &xs_cupti.later;

	*(void **)&later->subscribe = dlsym(library, "cuptiSubscribe_v2");
	*(void **)&later->register_callbacks = dlsym(library, "cuptiActivityRegisterCallbacks_v2");
	*(void **)&later->enable = dlsym(library, "cuptiActivityEnable_v2");
	*(void **)&later->disable = dlsym(library, "cuptiActivityDisable_v2");
	*(void **)&later->next_record = dlsym(library, "cuptiActivityGetNextRecord_v2");
	*(void **)&later->dropped = dlsym(library, "cuptiActivityGetNumDroppedRecords_v2");
}

bool xs_cupti_open(const char **ret_why)
{
	void *library = open_library();

	if (!library) {
		*ret_why = "no libcupti was found; it is part of the CUDA toolkit and of PyPI's "
			   "nvidia-cuda-cupti: set CUDA_HOME or LD_LIBRARY_PATH";
		return false;
	}
#define TAKE(name) *(void **)&xs_cupti.name = dlsym(library, "cupti" #name);
#define CHECK(name)                                                \
	if (!xs_cupti.name) {                                      \
		*ret_why = "its libcupti has no cupti" #name "()"; \
		return false;                                      \
	}
	XS_CUPTI_NEEDED(TAKE)
	XS_CUPTI_OPTIONAL(TAKE)
	XS_CUPTI_NEEDED(CHECK)
#undef TAKE
#undef CHECK
	take_later(library);
	xs_cupti.library = library;
	return true;
}

static _Atomic uint64_t enabled; /* bit n: kind n */
_Static_assert(XS_ACTIVITY_KINDS <= 64, "a bit for each kind");

CUptiResult xs_cuda_enable(CUpti_ActivityKind kind)
{
	CUptiResult result = xs_cupti.several
				     ? xs_cupti.later.enable(xs_cupti.subscriber, kind, NULL)
				     : xs_cupti.ActivityEnable(kind);

	if (!result)
		atomic_fetch_or(&enabled, 1ull << kind);
	return result;
}

bool xs_cuda_has_enabled(CUpti_ActivityKind kind)
{
	return (uint32_t)kind < XS_ACTIVITY_KINDS && atomic_load(&enabled) >> kind & 1;
}

static void disable(CUpti_ActivityKind kind)
{
	if (!xs_cupti.several && xs_cupti.ActivityDisable)
		(void)xs_cupti.ActivityDisable(kind);
	if (xs_cupti.several && xs_cupti.later.disable)
		(void)xs_cupti.later.disable(xs_cupti.subscriber, kind, NULL);
}

void xs_cuda_disable(uint64_t but)
{
	uint64_t kinds = atomic_exchange(&enabled, 0) & ~but;

	for (unsigned kind = 0; kind < XS_ACTIVITY_KINDS; kind++)
		if (kinds >> kind & 1)
			disable((CUpti_ActivityKind)kind);
}
