/*
 * In front of those functions of CUPTI's by which a program takes the records of activity for
 * itself, or changes which there are: before CUPTI 13.3 a process has one pair of callbacks for
 * buffers, one set of kinds that are enabled, and later ones have one clock, too. What happens then
 * is in theirs.c.
 *
 * Who is linked with libcupti finds the functions that we export. Who asks dlsym() for those of a
 * libcupti gets some that are in front of that very one: there may be several.
 */
#include <dlfcn.h>

#include "front.h"
#include "elf_symbols.h"

#define EXPORT __attribute__((visibility("default")))

static const char names[XS_FRONT_FUNCTIONS][40] = {
	[XS_FRONT_REGISTER] = "cuptiActivityRegisterCallbacks",
	[XS_FRONT_ENABLE] = "cuptiActivityEnable",
	[XS_FRONT_DUMP] = "cuptiActivityEnableAndDump",
	[XS_FRONT_DISABLE] = "cuptiActivityDisable",
	[XS_FRONT_CONTEXT] = "cuptiActivityDisableContext",
	[XS_FRONT_CLOCK] = "cuptiActivityRegisterTimestampCallback",
};

#define FRONTS 4u
static struct xs_front fronts[FRONTS];

#define IN_FRONT(n)                                                                          \
	static CUptiResult CUPTIAPI register_##n(CUpti_BuffersCallbackRequestFunc request,   \
						 CUpti_BuffersCallbackCompleteFunc complete) \
	{                                                                                    \
		return xs_cuda_register_theirs(&fronts[n], request, complete);               \
	}                                                                                    \
	static CUptiResult CUPTIAPI enable_##n(CUpti_ActivityKind kind)                      \
	{                                                                                    \
		return xs_cuda_enable_theirs(&fronts[n], XS_FRONT_ENABLE, kind);             \
	}                                                                                    \
	static CUptiResult CUPTIAPI dump_##n(CUpti_ActivityKind kind)                        \
	{                                                                                    \
		return xs_cuda_enable_theirs(&fronts[n], XS_FRONT_DUMP, kind);               \
	}                                                                                    \
	static CUptiResult CUPTIAPI disable_##n(CUpti_ActivityKind kind)                     \
	{                                                                                    \
		return xs_cuda_disable_theirs(&fronts[n], kind);                             \
	}                                                                                    \
	static CUptiResult CUPTIAPI context_##n(CUcontext context, CUpti_ActivityKind kind)  \
	{                                                                                    \
		return xs_cuda_disable_context_theirs(&fronts[n], context, kind);            \
	}                                                                                    \
	static CUptiResult CUPTIAPI clock_##n(CUpti_TimestampCallbackFunc clock)             \
	{                                                                                    \
		return xs_cuda_clock_theirs(&fronts[n], clock);                              \
	}
IN_FRONT(0)
IN_FRONT(1)
IN_FRONT(2)
IN_FRONT(3)

#define ALL_OF(n)                                                      \
	{ (void *)register_##n, (void *)enable_##n,  (void *)dump_##n, \
	  (void *)disable_##n,	(void *)context_##n, (void *)clock_##n }
static void *const ours[FRONTS][XS_FRONT_FUNCTIONS] = { ALL_OF(0), ALL_OF(1), ALL_OF(2),
							ALL_OF(3) };

/* NULL: it is no library's, or there are too many libraries. */
static struct xs_front *front_of(enum xs_front_function n, void *real)
{
	void *there;
	Dl_info info;

	if (!dladdr(real, &info) || !info.dli_fbase)
		return NULL;
	for (uint32_t i = 0; i < FRONTS; i++) {
		there = NULL;
		if (!atomic_compare_exchange_strong(&fronts[i].base, &there, info.dli_fbase) &&
		    there != info.dli_fbase)
			continue;
		atomic_store(&fronts[i].real[n], real);
		return &fronts[i];
	}
	return NULL;
}

/* What is behind `function`, if that is ours. */
static void *real_of(void *function)
{
	for (uint32_t i = 0; i < FRONTS; i++)
		for (uint32_t n = 0; n < XS_FRONT_FUNCTIONS; n++)
			if (ours[i][n] == function)
				return atomic_load(&fronts[i].real[n]);
	return function;
}

/* ---- dlsym() ---- */

static enum xs_front_function number_of(const char *name)
{
	uint32_t n = 0;

	while (n < XS_FRONT_FUNCTIONS && !xs_elf_is_same(name, names[n]))
		n++;
	return (enum xs_front_function)n;
}

static bool has(const char *name)
{
	return name[0] == 'c' && number_of(name) != XS_FRONT_FUNCTIONS;
}

/* Through a handle of the program's own it finds what we export, which is answer enough. */
static void *answer(const char *name, void *found)
{
	enum xs_front_function n = number_of(name);
	Dl_info theirs, own;
	struct xs_front *front;

	if (!dladdr(found, &theirs) || !dladdr(names, &own) || theirs.dli_fbase == own.dli_fbase)
		return found;
	front = front_of(n, found);
	return front ? ours[front - fronts][n] : found;
}

__attribute__((constructor)) static void begin(void)
{
	static const struct xs_in_front front = { has, answer };

	__atomic_store_n(&xs_in_front, &front, __ATOMIC_RELEASE);
}

struct xs_front *xs_cuda_front(void)
{
	*(void **)&xs_cupti.ActivityRegisterCallbacks =
		real_of((void *)xs_cupti.ActivityRegisterCallbacks);
	*(void **)&xs_cupti.ActivityEnable = real_of((void *)xs_cupti.ActivityEnable);
	*(void **)&xs_cupti.ActivityDisable = real_of((void *)xs_cupti.ActivityDisable);
	*(void **)&xs_cupti.ActivityRegisterTimestampCallback =
		real_of((void *)xs_cupti.ActivityRegisterTimestampCallback);
	return front_of(XS_FRONT_REGISTER, (void *)xs_cupti.ActivityRegisterCallbacks);
}

/* ---- what is exported ---- */

static void *find_in(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD), *found = NULL;

	if (handle) {
		found = dlsym(handle, name);
		(void)dlclose(handle);
	}
	return found;
}

/*
 * What the caller would call without us: what comes behind us in the program, else of the libraries
 * that the caller itself is linked with; else there is one, as a rule.
 */
static void *find_behind(const char *name, const void *caller)
{
	void *found = dlsym(RTLD_NEXT, name);
	const ElfW(Sym) * symbol;
	Dl_info info;

	if (!found && dladdr(caller, &info) && info.dli_fname)
		found = find_in(info.dli_fname, name);
	if (!found)
		(void)dlerror(); /* ours, and not for the program */
	for (const struct link_map *map = xs_elf_maps(); map && !found; map = map->l_next) {
		struct xs_elf_symbols s = xs_elf_symbols_of(map);

		symbol = map->l_ld == _DYNAMIC ? NULL : xs_elf_symbol(&s, name);
		if (symbol)
			found = (void *)(map->l_addr + symbol->st_value);
	}
	return real_of(found);
}

/* `none`: that of a library for which there is no room. NULL: there is no libcupti. */
static struct xs_front *front_behind(enum xs_front_function n, const void *caller,
				     struct xs_front *none)
{
	void *real = find_behind(names[n], caller);
	struct xs_front *front = real ? front_of(n, real) : NULL;

	if (front || !real)
		return front;
	*none = (struct xs_front){ .base = NULL };
	atomic_store(&none->real[n], real);
	return none;
}

EXPORT CUptiResult CUPTIAPI
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
			       CUpti_BuffersCallbackCompleteFunc funcBufferCompleted)
{
	struct xs_front none,
		*front = front_behind(XS_FRONT_REGISTER, __builtin_return_address(0), &none);

	return front ? xs_cuda_register_theirs(front, funcBufferRequested, funcBufferCompleted)
		     : CUPTI_ERROR_NOT_INITIALIZED;
}

static CUptiResult enable_behind(enum xs_front_function n, CUpti_ActivityKind kind,
				 const void *caller)
{
	struct xs_front none, *front = front_behind(n, caller, &none);

	return front ? xs_cuda_enable_theirs(front, n, kind) : CUPTI_ERROR_NOT_INITIALIZED;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
	return enable_behind(XS_FRONT_ENABLE, kind, __builtin_return_address(0));
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
	return enable_behind(XS_FRONT_DUMP, kind, __builtin_return_address(0));
}

EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
	struct xs_front none,
		*front = front_behind(XS_FRONT_DISABLE, __builtin_return_address(0), &none);

	return front ? xs_cuda_disable_theirs(front, kind) : CUPTI_ERROR_NOT_INITIALIZED;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind)
{
	struct xs_front none,
		*front = front_behind(XS_FRONT_CONTEXT, __builtin_return_address(0), &none);

	return front ? xs_cuda_disable_context_theirs(front, context, kind)
		     : CUPTI_ERROR_NOT_INITIALIZED;
}

EXPORT CUptiResult CUPTIAPI
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc funcTimestamp)
{
	struct xs_front none,
		*front = front_behind(XS_FRONT_CLOCK, __builtin_return_address(0), &none);

	return front ? xs_cuda_clock_theirs(front, funcTimestamp) : CUPTI_ERROR_NOT_INITIALIZED;
}
