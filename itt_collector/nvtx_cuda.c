/*
 * NVTX's names for CUDA's devices, contexts and streams. Who knows the objects is told
 * (xs_name_object()). Events have no track that could have a name.
 */
#include "nvtx.h"

/* The user's library's functions; NULL: none. */
static void (*next_cuda[NVTX_CUDA_SIZE])(void);
static void (*next_cudart[NVTX_CUDART_SIZE])(void);

#define NAMED(function, table, place, type, object)                                    \
	static void function##_a(type handle, const char *name)                        \
	{                                                                              \
		NEXT(table, place##_A, void (*)(type, const char *), handle, name);    \
		xs_name_object(object, (uintptr_t)handle, name);                       \
	}                                                                              \
	static void function##_w(type handle, const wchar_t *name)                     \
	{                                                                              \
		char text[NVTX_WIDE_MAX];                                              \
                                                                                       \
		NEXT(table, place##_W, void (*)(type, const wchar_t *), handle, name); \
		xs_name_object(object, (uintptr_t)handle, nvtx_wide(text, name));      \
	}

NAMED(cu_device, cuda, NVTX_CU_DEVICE, int, XS_OBJECT_DEVICE)
NAMED(cu_context, cuda, NVTX_CU_CONTEXT, void *, XS_OBJECT_CONTEXT)
NAMED(cu_stream, cuda, NVTX_CU_STREAM, void *, XS_OBJECT_STREAM)
NAMED(cuda_device, cudart, NVTX_CUDA_DEVICE, int, XS_OBJECT_DEVICE)
NAMED(cuda_stream, cudart, NVTX_CUDA_STREAM, void *, XS_OBJECT_STREAM)

void nvtx_cuda_note(nvtx_get_module *get)
{
	nvtx_note(get, NVTX_CUDA, next_cuda, NVTX_CUDA_SIZE);
	nvtx_note(get, NVTX_CUDART, next_cudart, NVTX_CUDART_SIZE);
}

void nvtx_cuda_take(nvtx_get_module *get, bool others)
{
	static void (*const cuda[NVTX_CUDA_SIZE])(void) = {
		[NVTX_CU_DEVICE_A] = NVTX_OURS(cu_device_a),
		[NVTX_CU_DEVICE_W] = NVTX_OURS(cu_device_w),
		[NVTX_CU_CONTEXT_A] = NVTX_OURS(cu_context_a),
		[NVTX_CU_CONTEXT_W] = NVTX_OURS(cu_context_w),
		[NVTX_CU_STREAM_A] = NVTX_OURS(cu_stream_a),
		[NVTX_CU_STREAM_W] = NVTX_OURS(cu_stream_w),
	};
	static void (*const cudart[NVTX_CUDART_SIZE])(void) = {
		[NVTX_CUDA_DEVICE_A] = NVTX_OURS(cuda_device_a),
		[NVTX_CUDA_DEVICE_W] = NVTX_OURS(cuda_device_w),
		[NVTX_CUDA_STREAM_A] = NVTX_OURS(cuda_stream_a),
		[NVTX_CUDA_STREAM_W] = NVTX_OURS(cuda_stream_w),
	};

	nvtx_take(get, NVTX_CUDA, cuda, next_cuda, NVTX_CUDA_SIZE, others);
	nvtx_take(get, NVTX_CUDART, cudart, next_cudart, NVTX_CUDART_SIZE, others);
}
