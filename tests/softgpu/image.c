/* Images: rows of pixels in the heap, one layer behind another; copying is copying regions. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

struct sg_image {
	char *pixels;
	size_t pixel; /* bytes */
	uint32_t width, height, depth;
};

static size_t pixel_size(ze_image_format_layout_t layout)
{
	static const unsigned char sizes[] = { 1, 2, 4, 2, 4, 4, 8, 8, 16, 4, 4, 2, 2, 2 };

	return (size_t)layout < sizeof(sizes) ? sizes[layout] : 0;
}

ze_result_t sg_zeImageGetProperties(ze_device_handle_t device, const ze_image_desc_t *desc,
				    ze_image_properties_t *ret)
{
	SG_ENTER_WITH(device, desc && ret);
	if (!pixel_size(desc->format.layout))
		return ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT;
	ret->samplerFilterFlags = ZE_IMAGE_SAMPLER_FILTER_FLAG_POINT |
				  ZE_IMAGE_SAMPLER_FILTER_FLAG_LINEAR;
	return SG_OK;
}

ze_result_t sg_zeImageCreate(ze_context_handle_t context, ze_device_handle_t device,
			     const ze_image_desc_t *desc, ze_image_handle_t *ret)
{
	struct sg_image *image;

	SG_ENTER_WITH(context && device, desc && ret);
	if (desc->type > ZE_IMAGE_TYPE_BUFFER)
		return ZE_RESULT_ERROR_INVALID_ENUMERATION;
	if (!pixel_size(desc->format.layout))
		return ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT;
	if (!desc->width || desc->width > 16384 || desc->height > 16384 || desc->depth > 2048 ||
	    desc->arraylevels > 2048)
		return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
	image = calloc(1, sizeof(*image));
	if (!image)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	image->pixel = pixel_size(desc->format.layout);
	image->width = (uint32_t)desc->width;
	image->height = desc->height ? desc->height : 1;
	image->depth = desc->arraylevels ? desc->arraylevels : desc->depth ? desc->depth : 1;
	image->pixels = calloc((size_t)image->width * image->height * image->depth, image->pixel);
	if (!image->pixels) {
		free(image);
		return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
	}
	*ret = (ze_image_handle_t)image;
	return SG_OK;
}

ze_result_t sg_zeImageDestroy(ze_image_handle_t handle)
{
	SG_ENTER();
	SG_HANDLE(handle);
	free(((struct sg_image *)handle)->pixels);
	free(handle);
	return SG_OK;
}

/* One side of a copy: where it begins and how far it is from row to row and layer to layer. */
struct side {
	char *at;
	size_t pitch, slice, pixel;
	uint32_t width, height, depth; /* in pixels; of memory, 0: as the other side */
};

static bool image_side(ze_image_handle_t handle, const ze_image_region_t *region, struct side *ret)
{
	const struct sg_image *image = (const struct sg_image *)handle;
	const ze_image_region_t all = { 0, 0, 0, image->width, image->height, image->depth };
	uint32_t height, depth;

	if (!region)
		region = &all;
	height = region->height ? region->height : 1;
	depth = region->depth ? region->depth : 1;
	if (!region->width || (uint64_t)region->originX + region->width > image->width ||
	    (uint64_t)region->originY + height > image->height ||
	    (uint64_t)region->originZ + depth > image->depth)
		return false;
	ret->pixel = image->pixel;
	ret->pitch = image->width * image->pixel;
	ret->slice = ret->pitch * image->height;
	ret->at = image->pixels + region->originX * image->pixel + region->originY * ret->pitch +
		  region->originZ * ret->slice;
	ret->width = region->width;
	ret->height = height;
	ret->depth = depth;
	return true;
}

/* Memory holds the region's rows one after another, or as far apart as is said. */
static void memory_side(const void *pointer, uint32_t pitch, uint32_t slice,
			const struct side *image, struct side *ret)
{
	*ret = *image;
	ret->at = (char *)(uintptr_t)pointer;
	ret->pitch = pitch ? pitch : image->width * image->pixel;
	ret->slice = slice ? slice : ret->pitch * image->height;
}

static ze_result_t append(ze_command_list_handle_t list, const char *name, const struct side *to,
			  const struct side *from, const struct sg_wanted *wanted)
{
	struct sg_cmd *cmd;
	ze_result_t result;

	if (to->pixel != from->pixel || to->width != from->width || to->height != from->height ||
	    to->depth != from->depth)
		return ZE_RESULT_ERROR_INVALID_SIZE;
	result = sg_append_begin(list, SG_REGION, name, wanted, &cmd);
	if (result)
		return result;
	cmd->dst = to->at;
	cmd->src = from->at;
	cmd->region = (struct sg_region){ (uint32_t)(to->width * to->pixel),
					  to->height,
					  to->depth,
					  to->pitch,
					  to->slice,
					  from->pitch,
					  from->slice };
	cmd->bytes = (uint64_t)cmd->region.width * to->height * to->depth;
	return sg_append_end(list, cmd);
}

static ze_result_t between_images(ze_command_list_handle_t list, const char *name,
				  ze_image_handle_t to, ze_image_handle_t from,
				  const ze_image_region_t *to_region,
				  const ze_image_region_t *from_region,
				  const struct sg_wanted *wanted)
{
	struct side to_side, from_side;

	SG_HANDLE(list && to && from);
	if (!image_side(to, to_region, &to_side) || !image_side(from, from_region, &from_side))
		return ZE_RESULT_ERROR_INVALID_SIZE;
	return append(list, name, &to_side, &from_side, wanted);
}

static ze_result_t with_memory(ze_command_list_handle_t list, const char *name,
			       ze_image_handle_t image, const ze_image_region_t *region,
			       const void *pointer, uint32_t pitch, uint32_t slice, bool to_memory,
			       const struct sg_wanted *wanted)
{
	struct side image_at, memory_at;

	SG_HANDLE(list && image);
	SG_POINTER(pointer);
	if (!image_side(image, region, &image_at))
		return ZE_RESULT_ERROR_INVALID_SIZE;
	memory_side(pointer, pitch, slice, &image_at, &memory_at);
	return to_memory ? append(list, name, &memory_at, &image_at, wanted)
			 : append(list, name, &image_at, &memory_at, wanted);
}

#define WANTED() (&(struct sg_wanted){ (struct sg_event *)signal, nwait, wait })

ze_result_t sg_zeCommandListAppendImageCopy(ze_command_list_handle_t list, ze_image_handle_t to,
					    ze_image_handle_t from, ze_event_handle_t signal,
					    uint32_t nwait, ze_event_handle_t *wait)
{
	SG_ENTER();
	return between_images(list, "zeCommandListAppendImageCopy", to, from, NULL, NULL, WANTED());
}

ze_result_t sg_zeCommandListAppendImageCopyRegion(ze_command_list_handle_t list,
						  ze_image_handle_t to, ze_image_handle_t from,
						  const ze_image_region_t *to_region,
						  const ze_image_region_t *from_region,
						  ze_event_handle_t signal, uint32_t nwait,
						  ze_event_handle_t *wait)
{
	SG_ENTER();
	return between_images(list, "zeCommandListAppendImageCopyRegion", to, from, to_region,
			      from_region, WANTED());
}

ze_result_t sg_zeCommandListAppendImageCopyToMemory(ze_command_list_handle_t list, void *to,
						    ze_image_handle_t from,
						    const ze_image_region_t *region,
						    ze_event_handle_t signal, uint32_t nwait,
						    ze_event_handle_t *wait)
{
	SG_ENTER();
	return with_memory(list, "zeCommandListAppendImageCopyToMemory", from, region, to, 0, 0,
			   true, WANTED());
}

ze_result_t sg_zeCommandListAppendImageCopyFromMemory(ze_command_list_handle_t list,
						      ze_image_handle_t to, const void *from,
						      const ze_image_region_t *region,
						      ze_event_handle_t signal, uint32_t nwait,
						      ze_event_handle_t *wait)
{
	SG_ENTER();
	return with_memory(list, "zeCommandListAppendImageCopyFromMemory", to, region, from, 0, 0,
			   false, WANTED());
}

ze_result_t sg_zeCommandListAppendImageCopyToMemoryExt(ze_command_list_handle_t list, void *to,
						       ze_image_handle_t from,
						       const ze_image_region_t *region,
						       uint32_t pitch, uint32_t slice,
						       ze_event_handle_t signal, uint32_t nwait,
						       ze_event_handle_t *wait)
{
	SG_ENTER();
	return with_memory(list, "zeCommandListAppendImageCopyToMemoryExt", from, region, to, pitch,
			   slice, true, WANTED());
}

ze_result_t sg_zeCommandListAppendImageCopyFromMemoryExt(ze_command_list_handle_t list,
							 ze_image_handle_t to, const void *from,
							 const ze_image_region_t *region,
							 uint32_t pitch, uint32_t slice,
							 ze_event_handle_t signal, uint32_t nwait,
							 ze_event_handle_t *wait)
{
	SG_ENTER();
	return with_memory(list, "zeCommandListAppendImageCopyFromMemoryExt", to, region, from,
			   pitch, slice, false, WANTED());
}
