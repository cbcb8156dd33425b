/*
 * The facts of the Unified Runtime's binary interface that -c needs: of each function that is
 * listed here the arguments that it has had since version 0.10, in their order. A function may have
 * more behind them. With a call comes the address of each argument (calls.c).
 *
 * No Debian package carries the header. Source: ur_api.h of PyPI's intel-sycl-rt 2025.0, 2025.2,
 * 2025.3 and 2026.2 (versions 0.10 to 0.12). tests/test_xpti.py compares.
 */
#ifndef XS_UR_ABI_H
#define XS_UR_ABI_H

#include "ur_types.h"

/* the versions that are known */
#define UR_MAJOR	0u
#define UR_OLDEST_MINOR 10u
#define UR_NEWEST_MINOR 12u

ur_result_t urContextCreate(uint32_t DeviceCount, const ur_device_handle_t *phDevices,
			    const void *pProperties, ur_context_handle_t *phContext);
ur_result_t urContextRelease(ur_context_handle_t hContext);
ur_result_t urQueueCreate(ur_context_handle_t hContext, ur_device_handle_t hDevice,
			  const ur_queue_properties_t *pProperties, ur_queue_handle_t *phQueue);
ur_result_t urQueueRelease(ur_queue_handle_t hQueue);
ur_result_t urQueueFinish(ur_queue_handle_t hQueue);
ur_result_t urQueueFlush(ur_queue_handle_t hQueue);
ur_result_t urEventWait(uint32_t numEvents, const ur_event_handle_t *phEventWaitList);
ur_result_t urEventGetInfo(ur_event_handle_t hEvent, ur_event_info_t propName, size_t propSize,
			   void *pPropValue, size_t *pPropSizeRet);
ur_result_t urEventGetProfilingInfo(ur_event_handle_t hEvent, ur_profiling_info_t propName,
				    size_t propSize, void *pPropValue, size_t *pPropSizeRet);
ur_result_t urEventRelease(ur_event_handle_t hEvent);
ur_result_t urMemBufferCreate(ur_context_handle_t hContext, ur_mem_flags_t flags, size_t size,
			      const void *pProperties, ur_mem_handle_t *phBuffer);
ur_result_t urMemImageCreate(ur_context_handle_t hContext, ur_mem_flags_t flags,
			     const ur_image_format_t *pImageFormat,
			     const ur_image_desc_t *pImageDesc, void *pHost,
			     ur_mem_handle_t *phMem);
ur_result_t urMemBufferPartition(ur_mem_handle_t hBuffer, ur_mem_flags_t flags,
				 ur_buffer_create_type_t bufferCreateType,
				 const ur_buffer_region_t *pRegion, ur_mem_handle_t *phMem);
ur_result_t urMemRelease(ur_mem_handle_t hMem);
ur_result_t urUSMHostAlloc(ur_context_handle_t hContext, const ur_usm_desc_t *pUSMDesc,
			   ur_usm_pool_handle_t pool, size_t size, void **ppMem);
ur_result_t urUSMDeviceAlloc(ur_context_handle_t hContext, ur_device_handle_t hDevice,
			     const ur_usm_desc_t *pUSMDesc, ur_usm_pool_handle_t pool, size_t size,
			     void **ppMem);
ur_result_t urUSMSharedAlloc(ur_context_handle_t hContext, ur_device_handle_t hDevice,
			     const ur_usm_desc_t *pUSMDesc, ur_usm_pool_handle_t pool, size_t size,
			     void **ppMem);
ur_result_t urUSMFree(ur_context_handle_t hContext, void *pMem);
ur_result_t urUSMPitchedAllocExp(ur_context_handle_t hContext, ur_device_handle_t hDevice,
				 const ur_usm_desc_t *pUSMDesc, ur_usm_pool_handle_t pool,
				 size_t widthInBytes, size_t height, size_t elementSizeBytes,
				 void **ppMem, size_t *pResultPitch);
ur_result_t urProgramCreateWithIL(ur_context_handle_t hContext, const void *pIL, size_t length,
				  const void *pProperties, ur_program_handle_t *phProgram);
ur_result_t urProgramBuild(ur_context_handle_t hContext, ur_program_handle_t hProgram,
			   const char *pOptions);
ur_result_t urProgramBuildExp(ur_program_handle_t hProgram, uint32_t numDevices,
			      const ur_device_handle_t *phDevices);
ur_result_t urProgramCompileExp(ur_program_handle_t hProgram, uint32_t numDevices,
				const ur_device_handle_t *phDevices);
ur_result_t urProgramLinkExp(ur_context_handle_t hContext, uint32_t numDevices,
			     const ur_device_handle_t *phDevices);
ur_result_t urProgramRelease(ur_program_handle_t hProgram);
ur_result_t urKernelCreate(ur_program_handle_t hProgram, const char *pKernelName,
			   ur_kernel_handle_t *phKernel);
ur_result_t urKernelCreateWithNativeHandle(uintptr_t hNativeKernel, ur_context_handle_t hContext,
					   ur_program_handle_t hProgram, const void *pProperties,
					   ur_kernel_handle_t *phKernel);
ur_result_t urKernelGetGroupInfo(ur_kernel_handle_t hKernel, ur_device_handle_t hDevice,
				 ur_kernel_group_info_t propName, size_t propSize, void *pPropValue,
				 size_t *pPropSizeRet);
ur_result_t urKernelRelease(ur_kernel_handle_t hKernel);
ur_result_t urKernelSetArgValue(ur_kernel_handle_t hKernel, uint32_t argIndex, size_t argSize,
				const void *pProperties, const void *pArgValue);
ur_result_t urKernelSetArgLocal(ur_kernel_handle_t hKernel, uint32_t argIndex, size_t argSize,
				const void *pProperties);
ur_result_t urKernelSetArgPointer(ur_kernel_handle_t hKernel, uint32_t argIndex,
				  const void *pProperties, const void *pArgValue);
ur_result_t urKernelSetArgMemObj(ur_kernel_handle_t hKernel, uint32_t argIndex,
				 const void *pProperties, ur_mem_handle_t hArgValue);
ur_result_t urKernelGetSuggestedLocalWorkSize(ur_kernel_handle_t hKernel, ur_queue_handle_t hQueue,
					      uint32_t numWorkDim, const size_t *pGlobalWorkOffset,
					      const size_t *pGlobalWorkSize,
					      size_t *pSuggestedLocalWorkSize);
ur_result_t urEnqueueKernelLaunch(ur_queue_handle_t hQueue, ur_kernel_handle_t hKernel,
				  uint32_t workDim, const size_t *pGlobalWorkOffset,
				  const size_t *pGlobalWorkSize, const size_t *pLocalWorkSize);
ur_result_t urEnqueueKernelLaunchWithArgsExp(
	ur_queue_handle_t hQueue, ur_kernel_handle_t hKernel, uint32_t workDim,
	const size_t *pGlobalWorkOffset, const size_t *pGlobalWorkSize,
	const size_t *pLocalWorkSize, uint32_t numArgs, const ur_exp_kernel_arg_properties_t *pArgs,
	const ur_kernel_launch_ext_properties_t *launchPropList, uint32_t numEventsInWaitList,
	const ur_event_handle_t *phEventWaitList, ur_event_handle_t *phEvent);
ur_result_t urEnqueueCooperativeKernelLaunchExp(
	ur_queue_handle_t hQueue, ur_kernel_handle_t hKernel, uint32_t workDim,
	const size_t *pGlobalWorkOffset, const size_t *pGlobalWorkSize,
	const size_t *pLocalWorkSize, uint32_t numEventsInWaitList,
	const ur_event_handle_t *phEventWaitList, ur_event_handle_t *phEvent);
ur_result_t urEnqueueEventsWait(ur_queue_handle_t hQueue, uint32_t numEventsInWaitList,
				const ur_event_handle_t *phEventWaitList,
				ur_event_handle_t *phEvent);
ur_result_t urEnqueueEventsWaitWithBarrier(ur_queue_handle_t hQueue, uint32_t numEventsInWaitList,
					   const ur_event_handle_t *phEventWaitList,
					   ur_event_handle_t *phEvent);
ur_result_t urEnqueueEventsWaitWithBarrierExt(ur_queue_handle_t hQueue,
					      const ur_exp_enqueue_ext_properties_t *pProperties,
					      uint32_t numEventsInWaitList,
					      const ur_event_handle_t *phEventWaitList,
					      ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemBufferRead(ur_queue_handle_t hQueue, ur_mem_handle_t hBuffer,
				   bool blockingRead, size_t offset, size_t size, void *pDst,
				   uint32_t numEventsInWaitList,
				   const ur_event_handle_t *phEventWaitList,
				   ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemBufferWrite(ur_queue_handle_t hQueue, ur_mem_handle_t hBuffer,
				    bool blockingWrite, size_t offset, size_t size,
				    const void *pSrc, uint32_t numEventsInWaitList,
				    const ur_event_handle_t *phEventWaitList,
				    ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemBufferReadRect(ur_queue_handle_t hQueue, ur_mem_handle_t hBuffer,
				       bool blockingRead, ur_rect_offset_t bufferOrigin,
				       ur_rect_offset_t hostOrigin, ur_rect_region_t region,
				       size_t bufferRowPitch, size_t bufferSlicePitch,
				       size_t hostRowPitch, size_t hostSlicePitch, void *pDst,
				       uint32_t numEventsInWaitList,
				       const ur_event_handle_t *phEventWaitList,
				       ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemBufferWriteRect(ur_queue_handle_t hQueue, ur_mem_handle_t hBuffer,
					bool blockingWrite, ur_rect_offset_t bufferOrigin,
					ur_rect_offset_t hostOrigin, ur_rect_region_t region,
					size_t bufferRowPitch, size_t bufferSlicePitch,
					size_t hostRowPitch, size_t hostSlicePitch, void *pSrc,
					uint32_t numEventsInWaitList,
					const ur_event_handle_t *phEventWaitList,
					ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemBufferCopy(ur_queue_handle_t hQueue, ur_mem_handle_t hBufferSrc,
				   ur_mem_handle_t hBufferDst, size_t srcOffset, size_t dstOffset,
				   size_t size, uint32_t numEventsInWaitList,
				   const ur_event_handle_t *phEventWaitList,
				   ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemBufferCopyRect(ur_queue_handle_t hQueue, ur_mem_handle_t hBufferSrc,
				       ur_mem_handle_t hBufferDst, ur_rect_offset_t srcOrigin,
				       ur_rect_offset_t dstOrigin, ur_rect_region_t region,
				       size_t srcRowPitch, size_t srcSlicePitch, size_t dstRowPitch,
				       size_t dstSlicePitch, uint32_t numEventsInWaitList,
				       const ur_event_handle_t *phEventWaitList,
				       ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemBufferFill(ur_queue_handle_t hQueue, ur_mem_handle_t hBuffer,
				   const void *pPattern, size_t patternSize, size_t offset,
				   size_t size, uint32_t numEventsInWaitList,
				   const ur_event_handle_t *phEventWaitList,
				   ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemImageRead(ur_queue_handle_t hQueue, ur_mem_handle_t hImage,
				  bool blockingRead, ur_rect_offset_t origin,
				  ur_rect_region_t region, size_t rowPitch, size_t slicePitch,
				  void *pDst, uint32_t numEventsInWaitList,
				  const ur_event_handle_t *phEventWaitList,
				  ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemImageWrite(ur_queue_handle_t hQueue, ur_mem_handle_t hImage,
				   bool blockingWrite, ur_rect_offset_t origin,
				   ur_rect_region_t region, size_t rowPitch, size_t slicePitch,
				   void *pSrc, uint32_t numEventsInWaitList,
				   const ur_event_handle_t *phEventWaitList,
				   ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemImageCopy(ur_queue_handle_t hQueue, ur_mem_handle_t hImageSrc,
				  ur_mem_handle_t hImageDst, ur_rect_offset_t srcOrigin,
				  ur_rect_offset_t dstOrigin, ur_rect_region_t region,
				  uint32_t numEventsInWaitList,
				  const ur_event_handle_t *phEventWaitList,
				  ur_event_handle_t *phEvent);
ur_result_t urEnqueueMemBufferMap(ur_queue_handle_t hQueue, ur_mem_handle_t hBuffer,
				  bool blockingMap, ur_map_flags_t mapFlags, size_t offset,
				  size_t size, uint32_t numEventsInWaitList,
				  const ur_event_handle_t *phEventWaitList,
				  ur_event_handle_t *phEvent, void **ppRetMap);
ur_result_t urEnqueueMemUnmap(ur_queue_handle_t hQueue, ur_mem_handle_t hMem, void *pMappedPtr,
			      uint32_t numEventsInWaitList,
			      const ur_event_handle_t *phEventWaitList, ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMFill(ur_queue_handle_t hQueue, void *pMem, size_t patternSize,
			     const void *pPattern, size_t size, uint32_t numEventsInWaitList,
			     const ur_event_handle_t *phEventWaitList, ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMMemcpy(ur_queue_handle_t hQueue, bool blocking, void *pDst,
			       const void *pSrc, size_t size, uint32_t numEventsInWaitList,
			       const ur_event_handle_t *phEventWaitList,
			       ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMPrefetch(ur_queue_handle_t hQueue, const void *pMem, size_t size,
				 ur_usm_migration_flags_t flags, uint32_t numEventsInWaitList,
				 const ur_event_handle_t *phEventWaitList,
				 ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMAdvise(ur_queue_handle_t hQueue, const void *pMem, size_t size,
			       ur_usm_advice_flags_t advice, ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMFill2D(ur_queue_handle_t hQueue, void *pMem, size_t pitch,
			       size_t patternSize, const void *pPattern, size_t width,
			       size_t height, uint32_t numEventsInWaitList,
			       const ur_event_handle_t *phEventWaitList,
			       ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMMemcpy2D(ur_queue_handle_t hQueue, bool blocking, void *pDst,
				 size_t dstPitch, const void *pSrc, size_t srcPitch, size_t width,
				 size_t height, uint32_t numEventsInWaitList,
				 const ur_event_handle_t *phEventWaitList,
				 ur_event_handle_t *phEvent);
ur_result_t urEnqueueDeviceGlobalVariableRead(ur_queue_handle_t hQueue,
					      ur_program_handle_t hProgram, const char *name,
					      bool blockingRead, size_t count, size_t offset,
					      void *pDst, uint32_t numEventsInWaitList,
					      const ur_event_handle_t *phEventWaitList,
					      ur_event_handle_t *phEvent);
ur_result_t urEnqueueTimestampRecordingExp(ur_queue_handle_t hQueue, bool blocking,
					   uint32_t numEventsInWaitList,
					   const ur_event_handle_t *phEventWaitList,
					   ur_event_handle_t *phEvent);
ur_result_t urEnqueueNativeCommandExp(ur_queue_handle_t hQueue, const void *pfnNativeEnqueue,
				      void *data, uint32_t numMemsInMemList,
				      const ur_mem_handle_t *phMemList, const void *pProperties,
				      uint32_t numEventsInWaitList,
				      const ur_event_handle_t *phEventWaitList,
				      ur_event_handle_t *phEvent);
ur_result_t urEnqueueHostTaskExp(ur_queue_handle_t hQueue, const void *pfnHostTask, void *data,
				 const void *pProperties, uint32_t numEventsInWaitList,
				 const ur_event_handle_t *phEventWaitList,
				 ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMDeviceAllocExp(ur_queue_handle_t hQueue, ur_usm_pool_handle_t pPool,
				       const size_t size, const void *pProperties,
				       uint32_t numEventsInWaitList,
				       const ur_event_handle_t *phEventWaitList, void **ppMem,
				       ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMSharedAllocExp(ur_queue_handle_t hQueue, ur_usm_pool_handle_t pPool,
				       const size_t size, const void *pProperties,
				       uint32_t numEventsInWaitList,
				       const ur_event_handle_t *phEventWaitList, void **ppMem,
				       ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMHostAllocExp(ur_queue_handle_t hQueue, ur_usm_pool_handle_t pPool,
				     const size_t size, const void *pProperties,
				     uint32_t numEventsInWaitList,
				     const ur_event_handle_t *phEventWaitList, void **ppMem,
				     ur_event_handle_t *phEvent);
ur_result_t urEnqueueUSMFreeExp(ur_queue_handle_t hQueue, ur_usm_pool_handle_t pPool, void *pMem,
				uint32_t numEventsInWaitList,
				const ur_event_handle_t *phEventWaitList,
				ur_event_handle_t *phEvent);
ur_result_t urBindlessImagesImageAllocateExp(ur_context_handle_t hContext,
					     ur_device_handle_t hDevice,
					     const ur_image_format_t *pImageFormat,
					     const ur_image_desc_t *pImageDesc,
					     ur_exp_image_mem_native_handle_t *phImageMem);
ur_result_t urBindlessImagesImageFreeExp(ur_context_handle_t hContext, ur_device_handle_t hDevice,
					 ur_exp_image_mem_native_handle_t hImageMem);
ur_result_t urBindlessImagesUnsampledImageCreateExp(ur_context_handle_t hContext,
						    ur_device_handle_t hDevice,
						    ur_exp_image_mem_native_handle_t hImageMem,
						    const ur_image_format_t *pImageFormat,
						    const ur_image_desc_t *pImageDesc,
						    ur_exp_image_native_handle_t *phImage);
ur_result_t urBindlessImagesSampledImageCreateExp(ur_context_handle_t hContext,
						  ur_device_handle_t hDevice,
						  ur_exp_image_mem_native_handle_t hImageMem,
						  const ur_image_format_t *pImageFormat,
						  const ur_image_desc_t *pImageDesc);
ur_result_t urBindlessImagesImageCopyExp(ur_queue_handle_t hQueue, const void *pSrc, void *pDst,
					 const ur_image_desc_t *pSrcImageDesc,
					 const ur_image_desc_t *pDstImageDesc,
					 const ur_image_format_t *pSrcImageFormat,
					 const ur_image_format_t *pDstImageFormat,
					 ur_exp_image_copy_region_t *pCopyRegion,
					 ur_exp_image_copy_flags_t imageCopyFlags);
ur_result_t urCommandBufferCreateExp(ur_context_handle_t hContext, ur_device_handle_t hDevice,
				     const ur_exp_command_buffer_desc_t *pCommandBufferDesc,
				     ur_exp_command_buffer_handle_t *phCommandBuffer);
ur_result_t urCommandBufferReleaseExp(ur_exp_command_buffer_handle_t hCommandBuffer);
ur_result_t urCommandBufferFinalizeExp(ur_exp_command_buffer_handle_t hCommandBuffer);
ur_result_t urCommandBufferAppendKernelLaunchExp(ur_exp_command_buffer_handle_t hCommandBuffer,
						 ur_kernel_handle_t hKernel, uint32_t workDim,
						 const size_t *pGlobalWorkOffset,
						 const size_t *pGlobalWorkSize,
						 const size_t *pLocalWorkSize);
ur_result_t urCommandBufferAppendKernelLaunchWithArgsExp(
	ur_exp_command_buffer_handle_t hCommandBuffer, ur_kernel_handle_t hKernel, uint32_t workDim,
	const size_t *pGlobalWorkOffset, const size_t *pGlobalWorkSize,
	const size_t *pLocalWorkSize, uint32_t numArgs, const ur_exp_kernel_arg_properties_t *pArgs,
	uint32_t numKernelAlternatives, const ur_kernel_handle_t *phKernelAlternatives,
	uint32_t numSyncPointsInWaitList,
	const ur_exp_command_buffer_sync_point_t *pSyncPointWaitList, uint32_t numEventsInWaitList,
	const ur_event_handle_t *phEventWaitList, ur_exp_command_buffer_sync_point_t *pSyncPoint,
	ur_event_handle_t *phEvent);
ur_result_t urCommandBufferAppendUSMMemcpyExp(
	ur_exp_command_buffer_handle_t hCommandBuffer, void *pDst, const void *pSrc, size_t size,
	uint32_t numSyncPointsInWaitList,
	const ur_exp_command_buffer_sync_point_t *pSyncPointWaitList);
ur_result_t urCommandBufferAppendUSMFillExp(
	ur_exp_command_buffer_handle_t hCommandBuffer, void *pMemory, const void *pPattern,
	size_t patternSize, size_t size, uint32_t numSyncPointsInWaitList,
	const ur_exp_command_buffer_sync_point_t *pSyncPointWaitList);
ur_result_t urCommandBufferAppendMemBufferCopyExp(
	ur_exp_command_buffer_handle_t hCommandBuffer, ur_mem_handle_t hSrcMem,
	ur_mem_handle_t hDstMem, size_t srcOffset, size_t dstOffset, size_t size,
	uint32_t numSyncPointsInWaitList,
	const ur_exp_command_buffer_sync_point_t *pSyncPointWaitList);
ur_result_t urCommandBufferAppendMemBufferWriteExp(
	ur_exp_command_buffer_handle_t hCommandBuffer, ur_mem_handle_t hBuffer, size_t offset,
	size_t size, const void *pSrc, uint32_t numSyncPointsInWaitList,
	const ur_exp_command_buffer_sync_point_t *pSyncPointWaitList);
ur_result_t urCommandBufferAppendMemBufferReadExp(
	ur_exp_command_buffer_handle_t hCommandBuffer, ur_mem_handle_t hBuffer, size_t offset,
	size_t size, void *pDst, uint32_t numSyncPointsInWaitList,
	const ur_exp_command_buffer_sync_point_t *pSyncPointWaitList);
ur_result_t urCommandBufferAppendMemBufferFillExp(
	ur_exp_command_buffer_handle_t hCommandBuffer, ur_mem_handle_t hBuffer,
	const void *pPattern, size_t patternSize, size_t offset, size_t size,
	uint32_t numSyncPointsInWaitList,
	const ur_exp_command_buffer_sync_point_t *pSyncPointWaitList);
ur_result_t urCommandBufferAppendUSMPrefetchExp(
	ur_exp_command_buffer_handle_t hCommandBuffer, const void *pMemory, size_t size,
	ur_usm_migration_flags_t flags, uint32_t numSyncPointsInWaitList,
	const ur_exp_command_buffer_sync_point_t *pSyncPointWaitList);
ur_result_t urCommandBufferAppendUSMAdviseExp(
	ur_exp_command_buffer_handle_t hCommandBuffer, const void *pMemory, size_t size,
	ur_usm_advice_flags_t advice, uint32_t numSyncPointsInWaitList,
	const ur_exp_command_buffer_sync_point_t *pSyncPointWaitList);
ur_result_t urEnqueueCommandBufferExp(ur_queue_handle_t hQueue,
				      ur_exp_command_buffer_handle_t hCommandBuffer,
				      uint32_t numEventsInWaitList,
				      const ur_event_handle_t *phEventWaitList,
				      ur_event_handle_t *phEvent);
ur_result_t urQueueBeginGraphCaptureExp(ur_queue_handle_t hQueue);
ur_result_t urQueueBeginCaptureIntoGraphExp(ur_queue_handle_t hQueue, ur_exp_graph_handle_t hGraph);
ur_result_t urQueueEndGraphCaptureExp(ur_queue_handle_t hQueue, ur_exp_graph_handle_t *phGraph);
ur_result_t urGraphInstantiateGraphExp(ur_exp_graph_handle_t hGraph,
				       ur_exp_executable_graph_handle_t *phExecGraph);
ur_result_t urEnqueueGraphExp(ur_queue_handle_t hQueue, ur_exp_executable_graph_handle_t hGraph,
			      uint32_t numEventsInWaitList,
			      const ur_event_handle_t *phEventWaitList, ur_event_handle_t *phEvent);
ur_result_t urGraphDestroyExp(ur_exp_graph_handle_t hGraph);

#endif
