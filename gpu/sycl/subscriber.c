/*
 * Our place among XPTI's subscribers: the framework opens this library because XPTI_SUBSCRIBERS
 * names it, and calls it once for each stream of events.
 *
 * Streams that end in ".debug" are left alone: the runtime takes them for the same as the one
 * without, and the last registration would win. A callback is not told the stream, so each
 * stream has callbacks of its own.
 */
#include <dlfcn.h>
#include <string.h>

#include "shm.h"
#include "sycl.h"

#define EXPORT	  __attribute__((visibility("default")))
#define FRAMEWORK "xpti.framework"
#define UR_CALLS  "ur.call"

/* Called by name alone. */
EXPORT void xptiTraceInit(unsigned major, unsigned minor, const char *version, const char *stream);
EXPORT void xptiTraceFinish(const char *stream);

#define BOTH(number, begin, end)       \
	{ XPTI_BEGIN(number), begin }, \
	{                              \
		XPTI_END(number), end  \
	}
static const struct {
	const char *name;
	struct {
		uint16_t type;
		xpti_callback *callback;
	} wanted[20];
} streams[] = {
	{ "sycl",
	  { { XPTI_BEGIN(XPTI_GRAPH), sycl_graph },
	    { XPTI_BEGIN(XPTI_NODE), sycl_node },
	    { XPTI_BEGIN(XPTI_EDGE), sycl_edge },
	    BOTH(XPTI_TASK, sycl_task_begin, sycl_task_end),
	    BOTH(XPTI_BARRIER, sycl_barrier_begin, sycl_wait_end),
	    BOTH(XPTI_WAIT, sycl_wait_begin, sycl_wait_end),
	    BOTH(XPTI_QUEUE, sycl_queue_create, sycl_queue_destroy),
	    { XPTI_BEGIN(XPTI_DIAGNOSTICS), sycl_diagnostics } } },
	{ "sycl.experimental.mem_alloc",
	  { BOTH(XPTI_ALLOC, sycl_alloc_begin, sycl_alloc_end),
	    BOTH(XPTI_RELEASE, sycl_release_begin, sycl_release_end) } },
	{ "sycl.experimental.buffer",
	  { BOTH(XPTI_MEMORY_OBJECT, sycl_buffer_create, sycl_buffer_destroy),
	    { XPTI_BEGIN(XPTI_ACCESSOR), sycl_accessor } } },
	{ "sycl.experimental.image",
	  { BOTH(XPTI_MEMORY_OBJECT, sycl_image_create, sycl_image_destroy),
	    { XPTI_BEGIN(XPTI_ACCESSOR), sycl_image_accessor } } },
	{ UR_CALLS, { BOTH(XPTI_FUNCTION_WITH_ARGS, sycl_call_begin, sycl_call_end) } },
	{ "sycl.pi", { BOTH(XPTI_FUNCTION, sycl_function_begin, sycl_function_end) } },
};

/* Which framework it is: that of whoever calls us. */
static void *function_of(void *library, const char *name)
{
	void *function = library ? dlsym(library, name) : NULL;

	if (!function)
		(void)dlerror(); /* no error that the program sees */
	return function;
}

static void *library_of(const void *address)
{
	Dl_info info;
	void *library = NULL;

	if (dladdr(address, &info) && info.dli_fname)
		/* what calls us from now on stays, even if the program closes it */
		library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	if (!library) /* it is the program itself */
		library = dlopen(NULL, RTLD_LAZY);
	return library;
}

static void subscribe(void *library, const char *name)
{
	xpti_register_stream *register_stream =
		(xpti_register_stream *)function_of(library, "xptiRegisterStream");
	xpti_register_callback *register_callback =
		(xpti_register_callback *)function_of(library, "xptiRegisterCallback");

	if (!register_stream || !register_callback)
		return;
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		uint8_t stream;

		if (strcmp(streams[i].name, name) != 0)
			continue;
		stream = register_stream(name);
		for (size_t k = 0; k < 20 && streams[i].wanted[k].callback; k++)
			(void)register_callback(stream, streams[i].wanted[k].type,
						streams[i].wanted[k].callback);
	}
}

/* ---- a runtime that does not call us ---- */

static _Atomic bool called;

static void at_end(void)
{
	const struct xs_options *options = xs_joined() ? xs_options_of_run() : NULL;

	/* a byte: what is no bool any more, as somebody has overwritten it, must not be read as one
	 */
	if (options && *(const unsigned char *)&options->chrome_sycl && !atomic_load(&called) &&
	    xs_has_library("libsycl.so"))
		xs_tell_unseen(XS_UNSEEN_XPTI_NONE);
}

static __attribute__((constructor)) void loaded(void)
{
	static struct xs_hook hook = { .function = at_end };

	xs_at_end(&hook);
}

/* ---- entry points ---- */

EXPORT void xptiTraceInit(unsigned major, unsigned minor, const char *version, const char *stream)
{
	const struct xs_options *options = xs_collector_options();
	struct sycl_framework framework;
	void *library;

	(void)version;
	if (!stream || !options || !options->chrome_sycl || xs_first_self())
		return;
	atomic_store(&called, true);
	if (!strcmp(stream, FRAMEWORK) && major > 1) {
		sycl_facts_off();
		xs_tell_unseen(XS_UNSEEN_XPTI_NEWER);
	}
	library = library_of(__builtin_return_address(0));
	framework.lookup_object = (xpti_lookup_object *)function_of(library, "xptiLookupObject");
	framework.register_string =
		(xpti_register_string *)function_of(library, "xptiRegisterString");
	if (!sycl_facts_init(&framework)) {
		xs_tell_unseen(XS_UNSEEN_XPTI_SECOND);
		return;
	}
	sycl_calls_init();
	if (!strcmp(stream, UR_CALLS))
		sycl_calls_version(major, minor);
	subscribe(library, stream);
}

EXPORT void xptiTraceFinish(const char *stream)
{
	(void)stream;
}
