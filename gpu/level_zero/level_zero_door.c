/*
 * Our place in Level Zero's loader: that of its validation layer.
 *
 * With ZE_ENABLE_VALIDATION_LAYER=1 (the launcher sets it) the loader opens
 * libze_validation_layer.so.1 at the program's first zeInit and gives it every table of functions.
 * dlopen() is ours, and gives it libxstrace-ze.so instead, whose functions all lead to
 * xs_ze_table(). Nothing of this happens in a program that does not call zeInit, and it does not
 * matter how the program reached the loader.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>

#include "level_zero.h"
#include "shm.h"

#define EXPORT __attribute__((visibility("default")))
#define LAYER  "libxstrace-ze.so"
/* the same, under the name of the layer whose place we take */
#define DEEP   "libxstrace-ze-deep.so"
#define THEIRS "libze_validation_layer.so.1"

/* ---- dlopen ---- */

typedef void *dlopen_function(const char *name, int mode);
dlopen_function *xs_real_dlopen __attribute__((visibility("hidden")));
/* How a call of dlopen() goes on; two registers. */
struct way {
	const char *name;
	dlopen_function *next;
};
struct way xs_dlopen_way(const char *name, int mode) __attribute__((visibility("hidden"), used));

/* From the C library, where it is new enough. */
#pragma weak _r_debug
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

/* Is the name, with or without a directory, that of the layer whose place we take? */
static bool is_theirs(const char *name)
{
	size_t length = strlen(name), part = strlen(THEIRS);

	return length >= part && !strcmp(name + length - part, THEIRS) &&
	       (length == part || name[length - part - 1] == '/');
}

#define LINKS_MAX 8
#define PATH_ROOM (2 * PATH_MAX + sizeof(DEEP))

/* In the place of a link in `path`, what it points to. False: it is none, or too long. */
static bool follow(char *path)
{
	char *target = path + PATH_MAX, *part = strrchr(path, '/');
	long length = xs_sys(SYS_readlinkat, AT_FDCWD, path, target, PATH_MAX - 1);
	size_t before = length > 0 && target[0] != '/' && part ? (size_t)(part + 1 - path) : 0;

	if (length <= 0 || before + (size_t)length >= PATH_MAX)
		return false;
	memcpy(path + before, target, (size_t)length);
	path[before + (size_t)length] = '\0';
	return true;
}

/*
 * The path of a file that lies beside this library; where that was preloaded by a link, beside what
 * the link points to. NULL: unknown. It is kept as long as the process lives, so this is called
 * once for each file, or a few times where threads are at it together.
 */
static char *path_beside(const char *file)
{
	char *path = xs_arena(PATH_ROOM), *part;
	Dl_info self;

	if (!path || !dladdr((void *)&xs_ze, &self) || !self.dli_fname ||
	    strlen(self.dli_fname) >= PATH_MAX)
		return NULL;
	strcpy(path, self.dli_fname);
	for (int i = 0; i < LINKS_MAX && follow(path); i++)
		;
	part = strrchr(path, '/');
	if (!part)
		return NULL;
	strcpy(part + 1, file);
	return path;
}

static bool wanted(void)
{
	const struct xs_options *options = xs_collector_options();

	return options && (xs_want_calls(options) || xs_want_device(options));
}

/*
 * What is opened with RTLD_DEEPBIND calls glibc's dlopen and not ours. If that is the loader, or
 * something that opens it, it finds our layer all the same: glibc takes a library that is there for
 * the one whose name it bears.
 */
static void open_deep(const char *name)
{
	static atomic_flag done = ATOMIC_FLAG_INIT;
	const char *path;

	if (!wanted())
		return;
	if (getenv(XS_ENV_ZE_VALIDATION)) {
		if (strstr(name, "libze_loader"))
			xs_tell_unseen(XS_UNSEEN_ZE_DEEP);
	} else if (!atomic_flag_test_and_set(&done)) {
		path = path_beside(DEEP);
		if (path)
			(void)xs_real_dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	}
}

/*
 * A static ittnotify opens us at the program's first event, with a lock held that a child of fork()
 * would find taken. glibc's dlopen() takes 30 us there, because nothing of it has run before. So
 * the first who asks for this library by the path by which it is loaded gets a handle at once.
 *
 * A preloaded library that was never opened has no scope of its own (dlsym() would crash), so it is
 * the program's handle, if that leads to our functions by all names that loaders ask for: another
 * preloaded library may be a layer, too. It can be closed once without effect.
 */
static bool is_first_of_own(const char *name)
{
	static const char *const entries[] = { "__itt_api_init",      "__itt_api_version",
					       "clGetLayerInfo",      "clInitLayer",
					       "InitializeInjection", "InitializeInjectionNvtx2" };
	static atomic_flag done = ATOMIC_FLAG_INIT;
	struct dl_find_object own;
	bool ours = true;

	if (!_dl_find_object || _dl_find_object((void *)(uintptr_t)is_first_of_own, &own) ||
	    strcmp(own.dlfo_link_map->l_name, name) != 0 || atomic_flag_test_and_set(&done))
		return false;
	for (size_t i = 0; ours && i < sizeof(entries) / sizeof(entries[0]); i++) {
		const void *found = dlsym(RTLD_DEFAULT, entries[i]);

		ours = found >= own.dlfo_map_start && found < own.dlfo_map_end;
	}
	return ours;
}

static void *open_own(const char *name, int mode)
{
	(void)name;
	(void)mode;
	return &_r_debug ? _r_debug.r_map : NULL;
}

static void *no_dlopen(const char *name, int mode)
{
	(void)name;
	(void)mode;
	return NULL;
}

static const char *layer_path(void)
{
	static _Atomic(char *) layer;
	char *ours = atomic_load_explicit(&layer, memory_order_acquire);

	if (!ours) {
		ours = path_beside(LAYER);
		atomic_store_explicit(&layer, ours, memory_order_release);
	}
	return ours;
}

struct way xs_dlopen_way(const char *name, int mode)
{
	const char *layer;

	if (name && (mode & (RTLD_LAZY | RTLD_NOW)) && is_first_of_own(name))
		return (struct way){ name, open_own };
	if (!xs_real_dlopen) {
		*(void **)&xs_real_dlopen = dlsym(RTLD_NEXT, "dlopen");
		if (!xs_real_dlopen)
			xs_real_dlopen = no_dlopen;
	}
	if (__builtin_expect(name && (mode & RTLD_DEEPBIND), 0))
		open_deep(name);
	if (__builtin_expect(name && is_theirs(name), 0) && wanted()) {
		layer = layer_path();
		name = layer ? layer : name;
	}
	return (struct way){ name, xs_real_dlopen };
}

/*
 * A jump and not a call: glibc looks into the caller's RUNPATH, and knows the caller by its return
 * address.
 */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call xs_dlopen_way\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	movq %rax, %rdi\n"
	"	jmp *%rdx\n"
	"	.cfi_endproc\n"
	".size dlopen, .-dlopen\n"
	".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
	".globl dlopen\n"
	".type dlopen, %function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	stp x1, x30, [sp, #-16]!\n"
	"	.cfi_adjust_cfa_offset 16\n"
	"	bl xs_dlopen_way\n"
	"	mov x16, x1\n"
	"	ldp x1, x30, [sp], #16\n"
	"	.cfi_adjust_cfa_offset -16\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size dlopen, .-dlopen\n"
	".popsection\n");
#else
EXPORT void *dlopen(const char *name, int mode)
{
	struct way way = xs_dlopen_way(name, mode);

	return way.next(way.name, mode);
}
#endif

/* ---- tables ---- */

/* The user's own validation layer, which is to be there too: between the program and us. */
static void *chained(const char *name)
{
	static void *handle;
	static bool tried;

	if (!tried && getenv(XS_ENV_ZE_VALIDATION) && xs_real_dlopen)
		handle = xs_real_dlopen(THEIRS, RTLD_LAZY | RTLD_LOCAL);
	tried = true;
	return handle ? dlsym(handle, name) : NULL;
}

/* A loader whose functions are not those that we have, and are left alone: is it used? */
static ze_pfnContextCreate_t second_create;

static ze_result_t ZE_APICALL second_context(ze_driver_handle_t driver,
					     const ze_context_desc_t *desc,
					     ze_context_handle_t *context)
{
	xs_tell_unseen(XS_UNSEEN_ZE_SECOND);
	return second_create(driver, desc, context);
}

static void watch_second(ze_context_dditable_t *entries)
{
	if (entries->pfnCreate && entries->pfnCreate != second_context &&
	    xs_ze_take((void **)&second_create, (void *)entries->pfnCreate))
		entries->pfnCreate = second_context;
}

/* The loader gives us a table. 0: all is well. */
EXPORT ze_result_t xs_ze_table(uint32_t number, const char *name, uint32_t version, void *entries);
EXPORT ze_result_t xs_ze_table(uint32_t number, const char *name, uint32_t version, void *entries)
{
	static const char *seen[XS_ZE_TABLES];
	const struct xs_options *options = xs_collector_options();
	struct xs_ze_place place = { .entries = entries };
	ze_result_t (*next)(uint32_t, void *);

	if (!entries)
		return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
	if (number < XS_ZE_TABLES && options) {
		xs_ze_want(options);
		place.before = seen[number];
		/* loaders fill that once more for each driver */
		place.whole = strcmp(name, "zeGetGlobalProcAddrTable") != 0;
		xs_ze_wrap(number, version, entries, xs_ze_calls, &place);
		if (place.taken)
			seen[number] = entries;
		if (place.taken && !strcmp(name, "zeGetEventPoolProcAddrTable"))
			xs_ze_pools_begin();
		else if (place.refused && !strcmp(name, "zeGetContextProcAddrTable"))
			watch_second(entries);
		if (version < (uint32_t)ZE_API_VERSION_1_4)
			xs_tell_unseen(XS_UNSEEN_ZE_OLD);
	}
	*(void **)&next = chained(name);
	return next ? next(version, entries) : ZE_RESULT_SUCCESS;
}
