/* Contexts: a primary one of each device, and those that a program makes. */
#include "driver.h"

#include <stdlib.h>

enum { CREATED = 1, DESTROY_STARTING = 2 }; /* as CUPTI's resource callbacks */
enum { DEPTH_MAX = 16 };

struct sc_context *sc_contexts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last_id;
static __thread struct sc_context *stack[DEPTH_MAX];
static __thread unsigned depth;

struct sc_context *sc_current(void)
{
	struct sc_context *top = depth ? stack[depth - 1] : NULL;

	return top && !top->ended && !sc_ready() ? top : NULL;
}

static CUresult push(struct sc_context *context)
{
	if (depth == DEPTH_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack[depth++] = context;
	return CUDA_SUCCESS;
}

struct sc_context *sc_context_make(struct sc_device *device, unsigned flags)
{
	struct sc_context *context = calloc(1, sizeof(*context));

	context->device = device;
	context->flags = flags;
	(void)pthread_mutex_lock(&lock);
	context->id = ++last_id;
	context->next = sc_contexts;
	sc_contexts = context;
	(void)pthread_mutex_unlock(&lock);
	context->null_stream = sc_stream_make(context, 0, 0);
	SC_TELL(resource, CREATED, context, NULL, NULL);
	return context;
}

void sc_context_end(struct sc_context *context)
{
	struct sc_context **link = &sc_contexts;

	SC_TELL(resource, DESTROY_STARTING, context, NULL, NULL);
	while (context->streams)
		sc_stream_end(context->streams);
	(void)pthread_mutex_lock(&lock);
	while (*link && *link != context)
		link = &(*link)->next;
	if (*link)
		*link = context->next;
	(void)pthread_mutex_unlock(&lock);
	/* it stays, as any thread may still have it: what is asked of it then is an error, no crash
	 */
	context->ended = true;
}

static bool living(const struct sc_context *context)
{
	bool found = false;

	(void)pthread_mutex_lock(&lock);
	for (struct sc_context *at = sc_contexts; at; at = at->next)
		found |= at == context;
	(void)pthread_mutex_unlock(&lock);
	return found;
}

CUresult impl_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
			     unsigned int flags, CUdevice dev)
{
	(void)ctxCreateParams;
	if (sc_ready())
		return sc_ready();
	if (dev < 0 || dev >= (int)sc_config.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*pctx = (CUcontext)sc_context_make(&sc_devices[dev], flags);
	return push((struct sc_context *)*pctx);
}

CUresult impl_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return impl_cuCtxCreate_v4(pctx, NULL, flags, dev);
}

CUresult impl_cuCtxDestroy_v2(CUcontext ctx)
{
	struct sc_context *context = (struct sc_context *)ctx;

	if (!living(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth && stack[depth - 1] == context)
		depth--;
	sc_context_end(context);
	return CUDA_SUCCESS;
}

CUresult impl_cuCtxSetCurrent(CUcontext ctx)
{
	if (ctx && !living((struct sc_context *)ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth)
		depth--;
	return ctx ? push((struct sc_context *)ctx) : CUDA_SUCCESS;
}

CUresult impl_cuCtxPushCurrent_v2(CUcontext ctx)
{
	return living((struct sc_context *)ctx) ? push((struct sc_context *)ctx)
						: CUDA_ERROR_INVALID_CONTEXT;
}

CUresult impl_cuCtxPopCurrent_v2(CUcontext *pctx)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (pctx)
		*pctx = (CUcontext)stack[depth];
	return CUDA_SUCCESS;
}

CUresult impl_cuCtxGetCurrent(CUcontext *pctx)
{
	*pctx = (CUcontext)sc_current();
	return sc_ready();
}

CUresult impl_cuCtxGetDevice(CUdevice *device)
{
	if (!sc_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = sc_current()->device->ordinal;
	return CUDA_SUCCESS;
}

CUresult impl_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	(void)ctx;
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult impl_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	static pthread_mutex_t primary = PTHREAD_MUTEX_INITIALIZER;

	if (sc_ready())
		return sc_ready();
	if (dev < 0 || dev >= (int)sc_config.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	(void)pthread_mutex_lock(&primary);
	if (!sc_devices[dev].primary)
		sc_devices[dev].primary = sc_context_make(&sc_devices[dev], 0);
	sc_devices[dev].retained++;
	*pctx = (CUcontext)sc_devices[dev].primary;
	(void)pthread_mutex_unlock(&primary);
	return CUDA_SUCCESS;
}

CUresult impl_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct sc_context *context;

	if (sc_ready())
		return sc_ready();
	if (dev < 0 || dev >= (int)sc_config.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	context = sc_devices[dev].primary;
	sc_devices[dev].primary = NULL;
	sc_devices[dev].retained = 0;
	sc_devices[dev].lost = false;
	if (context)
		sc_context_end(context);
	return CUDA_SUCCESS;
}

CUresult impl_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	if (sc_ready())
		return sc_ready();
	if (dev < 0 || dev >= (int)sc_config.devices || !sc_devices[dev].primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	return --sc_devices[dev].retained ? CUDA_SUCCESS : impl_cuDevicePrimaryCtxReset_v2(dev);
}

CUresult impl_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	if (sc_ready())
		return sc_ready();
	if (dev < 0 || dev >= (int)sc_config.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = 0;
	*active = sc_devices[dev].primary != NULL;
	return CUDA_SUCCESS;
}

CUresult impl_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	(void)flags;
	return dev >= 0 && dev < (int)sc_config.devices ? sc_ready() : CUDA_ERROR_INVALID_DEVICE;
}

CUresult impl_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	(void)Flags;
	return living((struct sc_context *)peerContext) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult impl_cuCtxSynchronize(void)
{
	struct sc_context *context = sc_current();
	struct sc_synced synced = { .type = 4, .context = context, .start = 0 };
	CUresult ret = CUDA_SUCCESS;

	if (!context)
		return sc_ready() ? sc_ready() : CUDA_ERROR_INVALID_CONTEXT;
	synced.start = sc_now();
	for (struct sc_stream *stream = context->streams; stream; stream = stream->next)
		if (sc_stream_drain(stream))
			ret = CUDA_ERROR_LAUNCH_FAILED;
	synced.end = sc_now();
	synced.result = (int)ret;
	SC_TELL(synced, &synced);
	return ret;
}
