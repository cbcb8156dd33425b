/*
 * A subscriber of XPTI's that keeps nothing, for the same events as xstrace's. What a program costs
 * under xstrace over this is what xstrace costs; what it costs itself is the runtime's and the
 * framework's.
 */
#include <dlfcn.h>
#include <string.h>

#include "xpti_abi.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void xptiTraceInit(unsigned major, unsigned minor, const char *version, const char *stream);
EXPORT void xptiTraceFinish(const char *stream);

/* As those of gpu/sycl/subscriber.c. */
static const struct {
	const char *stream;
	uint16_t types[12];
} wanted[] = {
	{ "sycl",
	  { XPTI_BEGIN(XPTI_GRAPH), XPTI_BEGIN(XPTI_NODE), XPTI_BEGIN(XPTI_EDGE),
	    XPTI_BEGIN(XPTI_TASK), XPTI_END(XPTI_TASK), XPTI_BEGIN(XPTI_WAIT), XPTI_END(XPTI_WAIT),
	    XPTI_BEGIN(XPTI_QUEUE), XPTI_END(XPTI_QUEUE) } },
	{ "sycl.experimental.mem_alloc",
	  { XPTI_BEGIN(XPTI_ALLOC), XPTI_END(XPTI_ALLOC), XPTI_BEGIN(XPTI_RELEASE),
	    XPTI_END(XPTI_RELEASE) } },
	{ "ur.call", { XPTI_BEGIN(XPTI_FUNCTION_WITH_ARGS), XPTI_END(XPTI_FUNCTION_WITH_ARGS) } },
};

static void keep_nothing(uint16_t type, const struct xpti_event *parent,
			 const struct xpti_event *event, uint64_t instance, const void *user)
{
	(void)type, (void)parent, (void)event, (void)instance, (void)user;
}

EXPORT void xptiTraceInit(unsigned major, unsigned minor, const char *version, const char *stream)
{
	void *framework = dlopen("libxptifw.so", RTLD_LAZY | RTLD_NOLOAD);
	xpti_register_stream *add_stream;
	xpti_register_callback *add_callback;

	(void)major, (void)minor, (void)version;
	if (!framework)
		framework = dlopen("libxptifw.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!framework || !stream)
		return;
	add_stream = (xpti_register_stream *)dlsym(framework, "xptiRegisterStream");
	add_callback = (xpti_register_callback *)dlsym(framework, "xptiRegisterCallback");
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		uint8_t number;

		if (strcmp(wanted[i].stream, stream) != 0)
			continue;
		number = add_stream(stream);
		for (size_t k = 0; wanted[i].types[k]; k++)
			(void)add_callback(number, wanted[i].types[k], keep_nothing);
	}
}

EXPORT void xptiTraceFinish(const char *stream)
{
	(void)stream;
}
