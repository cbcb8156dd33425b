/* Graphs: not yet there; a stream that captures does not exist. */
#include "driver.h"

CUresult sc_capture(struct sc_stream *stream, const struct sc_cmd *cmd)
{
	(void)stream, (void)cmd;
	return CUDA_ERROR_NOT_SUPPORTED;
}
