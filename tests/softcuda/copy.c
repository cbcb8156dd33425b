/* Copies and fills. */
#include "driver.h"

#include <string.h>

enum { HTOD = 1, DTOH = 2, DTOD = 8, HTOH = 9, PTOP = 10 }; /* as CUPTI's */

static void side(const void *at, uint8_t *kind, int *device, bool host)
{
	struct sc_block block;

	*kind = host ? SC_PAGEABLE : SC_ON_DEVICE;
	*device = -1;
	if (sc_block_of(at, &block)) {
		*kind = block.kind;
		*device = block.device;
	}
}

static CUresult copy(void *to, const void *from, size_t bytes, uint8_t kind, CUstream stream,
		     bool async)
{
	struct sc_cmd cmd = { .kind = SC_COPY,
			      .stream = sc_stream_of(stream),
			      .to = to,
			      .from = from,
			      .bytes = bytes,
			      .copy_kind = kind,
			      .async = async };
	CUresult ret;

	if (!bytes)
		return CUDA_SUCCESS;
	if (sc_slow() || !kind || kind == DTOD) {
		side(to, &cmd.to_kind, &cmd.to_device, !kind || kind == DTOH || kind == HTOH);
		side(from, &cmd.from_kind, &cmd.from_device, !kind || kind == HTOD || kind == HTOH);
	}
	if (!kind) {
		bool to_host = cmd.to_kind < SC_ON_DEVICE, from_host = cmd.from_kind < SC_ON_DEVICE;

		cmd.copy_kind = from_host ? (to_host ? HTOH : HTOD) : to_host ? DTOH : DTOD;
	}
	ret = sc_submit(&cmd);
	return ret || async || cmd.stream->capture ? ret : sc_stream_drain(cmd.stream);
}

CUresult impl_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy((void *)dstDevice, srcHost, ByteCount, HTOD, NULL, false);
}

CUresult impl_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy(dstHost, (void *)srcDevice, ByteCount, DTOH, NULL, false);
}

CUresult impl_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy((void *)dstDevice, (void *)srcDevice, ByteCount, DTOD, NULL, false);
}

CUresult impl_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy((void *)dst, (void *)src, ByteCount, 0, NULL, false);
}

CUresult impl_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
				   CUstream hStream)
{
	return copy((void *)dstDevice, srcHost, ByteCount, HTOD, hStream, true);
}

CUresult impl_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
				   CUstream hStream)
{
	return copy(dstHost, (void *)srcDevice, ByteCount, DTOH, hStream, true);
}

CUresult impl_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
				   CUstream hStream)
{
	return copy((void *)dstDevice, (void *)srcDevice, ByteCount, DTOD, hStream, true);
}

CUresult impl_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return copy((void *)dst, (void *)src, ByteCount, 0, hStream, true);
}

CUresult impl_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
				CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	struct sc_cmd cmd = { .kind = SC_PEER,
			      .stream = sc_stream_of(hStream),
			      .to = (void *)dstDevice,
			      .from = (void *)srcDevice,
			      .bytes = ByteCount,
			      .copy_kind = PTOP,
			      .from_kind = SC_ON_DEVICE,
			      .to_kind = SC_ON_DEVICE,
			      .async = true };

	if (!dstContext || !srcContext)
		return CUDA_ERROR_INVALID_CONTEXT;
	cmd.to_device = ((struct sc_context *)dstContext)->device->ordinal;
	cmd.from_device = ((struct sc_context *)srcContext)->device->ordinal;
	return sc_submit(&cmd);
}

CUresult impl_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
			   CUcontext srcContext, size_t ByteCount)
{
	CUresult ret = impl_cuMemcpyPeerAsync(dstDevice, dstContext, srcDevice, srcContext,
					      ByteCount, NULL);

	return ret ? ret : sc_stream_drain(sc_stream_of(NULL));
}

static CUresult set(CUdeviceptr to, uint32_t value, uint32_t size, size_t count, CUstream stream,
		    bool async)
{
	struct sc_cmd cmd = { .kind = SC_SET,
			      .stream = sc_stream_of(stream),
			      .to = (void *)to,
			      .value = value,
			      .value_size = size,
			      .bytes = count * size,
			      .async = async };
	CUresult ret;

	if (!count)
		return CUDA_SUCCESS;
	if (sc_slow())
		side(cmd.to, &cmd.to_kind, &cmd.to_device, false);
	ret = sc_submit(&cmd);
	return ret || async || cmd.stream->capture ? ret : sc_stream_drain(cmd.stream);
}

CUresult impl_cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return set(dstDevice, uc, 1, N, NULL, false);
}

CUresult impl_cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return set(dstDevice, us, 2, N, NULL, false);
}

CUresult impl_cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return set(dstDevice, ui, 4, N, NULL, false);
}

CUresult impl_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	return set(dstDevice, uc, 1, N, hStream, true);
}

CUresult impl_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	return set(dstDevice, us, 2, N, hStream, true);
}

CUresult impl_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
	return set(dstDevice, ui, 4, N, hStream, true);
}
