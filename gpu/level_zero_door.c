/*
 * Our place in Level Zero's loader: that of its validation layer.
 *
 * With ZE_ENABLE_VALIDATION_LAYER=1 (the launcher sets it) the loader opens libze_validation_layer.so.1 at the program's first zeInit and
 * gives it every table of functions. dlopen() is ours, and gives it libxstrace-ze.so instead, whose functions all lead to
 * xs_ze_table(). Nothing of this happens in a program that does not call zeInit, and nobody depends on how it reached the loader.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "level_zero.h"
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

/* Is one of the two at this address, which may be no memory any more? A call of the kernel, but only where a table is given twice. */
static bool holds(const void *address, const void *one, const void *other)
{
	const void *word;
	struct iovec to = { &word, sizeof(word) }, from = { (void *)(uintptr_t)address, sizeof(word) };

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof(word))
		return errno != EFAULT;
	return word && (word == one || word == other);
}

/*
 * May anybody still call through the last table of this name? Not where the static loader has put symbols of the loader's into the table that it
 * had asked for (it does since 1.21.9): they lead to a table that the loader makes later, and loader 1.8, which has then looked for its
 * drivers twice, makes that of other functions.
 */
static bool in_use(const struct xs_ze_place *place, void **entry, const void *real, const void *wrapper)
{
	if (!place->before || place->before == place->entries)
		return false; /* the same loader has made its table anew */
	if (xs_ze_alive_word)
		return true; /* there are contexts, and they are of the functions that we have */
	return holds(place->before + ((const char *)entry - place->entries), wrapper, real);
}

void xs_ze_put(struct xs_ze_place *place, void **entry, void **target, void *wrapper)
{
	if (!*entry || *entry == wrapper || place->refused)
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
	static const char *seen[XS_ZE_TABLES];
	const struct xs_options *options = xs_collector_options();
	struct xs_ze_place place = { .entries = entries };
	ze_result_t (*next)(uint32_t, void *);

	if (!entries)
		return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
	if (number < XS_ZE_TABLES && options) {
		xs_ze_calls = xs_want_calls(options);
		xs_ze_appends = xs_want_enqueues(options);
		xs_ze_device = xs_want_device(options);
		place.before = seen[number];
		xs_ze_wrap(number, version, entries, xs_ze_calls, &place);
		if (place.taken)
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
