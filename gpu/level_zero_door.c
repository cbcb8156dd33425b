/*
 * Our place in Level Zero's loader: that of its validation layer.
 *
 * With ZE_ENABLE_VALIDATION_LAYER=1 (the launcher sets it) the loader opens libze_validation_layer.so.1 at the program's first zeInit and
 * gives it every table of functions. dlopen() is ours, and gives it libxstrace-ze.so instead, whose functions all lead to
 * xs_ze_table(). Nothing of this happens in a program that does not call zeInit, and nobody depends on how it reached the loader.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "level_zero_wrap.h"
#include "shm.h"

#define EXPORT __attribute__((visibility("default")))
#define LAYER "libxstrace-ze.so"
#define THEIRS "libze_validation_layer.so.1"

struct xs_ze_tables xs_ze;
bool xs_ze_calls, xs_ze_appends, xs_ze_device;

/* ---- dlopen ---- */

typedef void *dlopen_function(const char *name, int mode);
dlopen_function *xs_real_dlopen __attribute__((visibility("hidden")));
const char *xs_dlopen_name(const char *name) __attribute__((visibility("hidden"), used));

/* Is the name, with or without a directory, that of the layer whose place we take? */
static bool is_theirs(const char *name)
{
	size_t length = strlen(name), part = strlen(THEIRS);

	return length >= part && !strcmp(name + length - part, THEIRS) && (length == part || name[length - part - 1] == '/');
}

/* The layer lies beside this library; where that was preloaded by a link, beside what the link points to. */
static const char *layer_path(void)
{
	static char path[PATH_MAX + sizeof(LAYER)];
	Dl_info self;

	if (!dladdr((void *)&xs_ze, &self) || !self.dli_fname || !realpath(self.dli_fname, path))
		return NULL;
	strcpy(strrchr(path, '/') + 1, LAYER);
	return path;
}

static void *no_dlopen(const char *name, int mode)
{
	(void)name;
	(void)mode;
	return NULL;
}

/* The name that dlopen() is to be called with. */
const char *xs_dlopen_name(const char *name)
{
	const struct xs_options *options;
	const char *path;

	if (!xs_real_dlopen) {
		*(void **)&xs_real_dlopen = dlsym(RTLD_NEXT, "dlopen");
		if (!xs_real_dlopen)
			xs_real_dlopen = no_dlopen;
	}
	if (__builtin_expect(!name || !is_theirs(name), 1))
		return name;
	options = xs_collector_options();
	if (!options || (!xs_want_calls(options) && !xs_want_device(options)))
		return name;
	path = layer_path();
	return path ? path : name;
}

/* A jump and not a call: glibc looks into the caller's RUNPATH, and knows the caller by its return address. */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call xs_dlopen_name\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	movq %rax, %rdi\n"
	"	jmp *xs_real_dlopen(%rip)\n"
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
	"	bl xs_dlopen_name\n"
	"	ldp x1, x30, [sp], #16\n"
	"	.cfi_adjust_cfa_offset -16\n"
	"	adrp x16, xs_real_dlopen\n"
	"	ldr x16, [x16, :lo12:xs_real_dlopen]\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size dlopen, .-dlopen\n"
	".popsection\n");
#else
EXPORT void *dlopen(const char *name, int mode)
{
	name = xs_dlopen_name(name);
	return xs_real_dlopen(name, mode);
}
#endif

/* ---- tables ---- */

bool xs_ze_take(void **target, void *real)
{
	void *none = NULL;

	/* extensions are asked for by any thread */
	return __atomic_compare_exchange_n(target, &none, real, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || none == real;
}

void xs_ze_put(void **entry, void **target, void *wrapper, bool again)
{
	if (!*entry || *entry == wrapper)
		return;
	if (again)
		*target = *entry;
	if (xs_ze_take(target, *entry) && wrapper)
		*entry = wrapper;
}

/* The user's own validation layer, which is to be there too: between the program and us. */
static void *chained(const char *name)
{
	static void *handle;
	static bool tried;
	const char *wanted = getenv(XS_ENV_ZE_VALIDATION);

	if (!tried && wanted && xs_real_dlopen)
		handle = xs_real_dlopen(THEIRS, RTLD_LAZY | RTLD_LOCAL);
	tried = true;
	return handle ? dlsym(handle, name) : NULL;
}

/* The loader gives us a table. 0: all is well. */
EXPORT ze_result_t xs_ze_table(uint32_t number, const char *name, uint32_t version, void *entries);
EXPORT ze_result_t xs_ze_table(uint32_t number, const char *name, uint32_t version, void *entries)
{
	static void *seen[XS_ZE_TABLES];
	const struct xs_options *options = xs_collector_options();
	ze_result_t (*next)(uint32_t, void *);

	if (!entries)
		return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
	if (number < XS_ZE_TABLES && options) {
		xs_ze_calls = xs_want_calls(options);
		xs_ze_appends = xs_want_enqueues(options);
		xs_ze_device = xs_want_device(options);
		xs_ze_wrap(number, version, entries, xs_ze_calls, !seen[number] || seen[number] == entries);
		seen[number] = entries;
	}
	*(void **)&next = chained(name);
	return next ? next(version, entries) : ZE_RESULT_SUCCESS;
}

ze_result_t xs_hook_zeDriverGetExtensionFunctionAddress(ze_driver_handle_t driver, const char *name, void **function)
{
	ze_result_t result = xs_ze.zeDriver.pfnGetExtensionFunctionAddress(driver, name, function);

	if (!result && name && function && *function)
		*function = xs_ze_wrap_extension(name, *function, xs_ze_calls);
	return result;
}
