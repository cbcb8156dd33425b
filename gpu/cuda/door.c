/*
 * Our place in CUDA: the driver loads the library that CUDA_INJECTION64_PATH names when it is
 * initialised, and calls InitializeInjection() of it. A program without CUDA never comes here.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"
#include "sys.h"

#define EXPORT __attribute__((visibility("default")))

/* Another library of the user's that wants to be loaded in our way: it comes first. */
static void load_users(void)
{
	const char *path = getenv(XS_ENV_CUDA_INJECTION);
	void *library = path && path[0] ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*initialize)(void) = NULL;

	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		(void)initialize();
}

/* Why CUDA is not traced; for the drain process to tell. */
static void turn_off(struct xs_activity_file *file, const char *what, CUptiResult result)
{
	const char *text = NULL;
	struct xs_part parts[6] = { { what, (uint32_t)strlen(what) } };
	uint32_t count = 1;
	char digits[12], *at = digits + sizeof(digits);

	if (xs_cupti.subscriber)
		(void)xs_cupti.Unsubscribe(xs_cupti.subscriber);
	xs_cupti.subscriber = NULL;
	if (result) {
		unsigned number = (unsigned)result;

		for (; number; number /= 10)
			*--at = (char)('0' + number % 10);
		parts[count++] = (struct xs_part){ " answers ", 9 };
		parts[count++] = (struct xs_part){ at, (uint32_t)(digits + sizeof(digits) - at) };
		if (xs_cupti.GetResultString && !xs_cupti.GetResultString(result, &text) && text) {
			parts[count++] = (struct xs_part){ ", ", 2 };
			parts[count++] = (struct xs_part){ text, (uint32_t)strlen(text) };
		}
	}
	if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
		parts[count++] = (struct xs_part){ ": another profiler is active in it", 34 };
	file->off = xs_name_parts(parts, count, 0);
}

/* As CUpti_SubscriberParams, which headers have from CUDA 13.1 on. */
struct subscriber_params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
	uint8_t several, padding[7];
};

#define SEVERAL_FROM 130300u

static CUptiResult subscribe(uint32_t version)
{
	struct subscriber_params params = { .size = sizeof(params),
					    .name = "xstrace",
					    .several = 1 };
	const struct xs_cupti_later *later = &xs_cupti.later;

	xs_cupti.several = version >= SEVERAL_FROM && later->subscribe &&
			   later->register_callbacks && later->enable;
	if (xs_cupti.several)
		return later->subscribe(&xs_cupti.subscriber, xs_cuda_on_call, NULL, &params);
	return xs_cupti.Subscribe(&xs_cupti.subscriber, xs_cuda_on_call, NULL);
}

static void start(struct xs_activity_file *file, const struct xs_options *options)
{
	const char *why = NULL;
	struct xs_front *front;
	CUptiResult result;

	if (!xs_cupti_open(&why)) {
		turn_off(file, why, CUPTI_SUCCESS);
		return;
	}
	front = xs_cuda_front();
	result = xs_cupti.GetVersion(&file->version);
	if (result) {
		turn_off(file, "cuptiGetVersion()", result);
		return;
	}
	result = subscribe(file->version);
	if (result) {
		turn_off(file, "cuptiSubscribe()", result);
		return;
	}
	if (xs_want_device(options) && !xs_cuda_take_place(front)) {
		turn_off(file,
			 "the program has called cuptiActivityRegisterCallbacks(): another "
			 "profiler is active in it",
			 CUPTI_SUCCESS);
		return;
	}
	result = xs_cuda_enable_activity(options, xs_cuda_is_clock_theirs());
	if (result) {
		turn_off(file, "cuptiActivityEnable()", result);
		return;
	}
	result = xs_cuda_enable_calls(options);
	if (result) {
		turn_off(file, "cuptiEnableCallback()", result);
		return;
	}
	xs_cuda_watch_ends();
	xs_cuda_take_names(file);
	/* libraries' destructors run later: libcupti is still there */
	xs_cuda_flush_at_ends();
}

/* Once; without options there is no run, and may be one later. */
static void begin(const struct xs_options *options)
{
	static _Atomic uint32_t begun;
	struct xs_activity_file *file;
	struct xs_blocked blocked;

	if (!options || (!xs_want_calls(options) && !xs_want_device(options)) ||
	    atomic_exchange(&begun, 1))
		return;
	xs_cuda_owner = (pid_t)xs_sys(SYS_getpid);
	file = xs_cuda_activity();
	if (!file) {
		xs_tell_unseen(XS_UNSEEN_MEMORY);
		return;
	}
	xs_cuda_texts(file);
	blocked = xs_block();
	start(file, options);
	xs_cuda_have_place();
	xs_unblock(blocked);
	/* all of the above; pairs with the acquire in the drain process */
	atomic_store_explicit(&file->magic, XS_MAGIC, memory_order_release);
	xs_tell_activity();
}

EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void)
{
	static _Atomic uint32_t loaded;

	if (!atomic_exchange(&loaded, 1))
		load_users();
	begin(xs_collector_options());
	return 1;
}

/* The program has begun a run; its driver may have looked for an injected library before. */
static void begin_late(void)
{
	if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD))
		begin(xs_collector_options());
}

static struct xs_hook at_begin = { .function = begin_late };

__attribute__((constructor)) static void wait_for_begin(void)
{
	xs_at_begin(&at_begin);
}
