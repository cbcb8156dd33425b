/*
 * What the program calls its devices, contexts and streams (by NVTX), for the drain process: under
 * the numbers that CUPTI's records have.
 */
#include <dlfcn.h>

#include "xs_cuda.h"

static struct xs_activity_file *file_of_names;
/* The driver's; NULL: it has none. */
static CUresult (*get_context)(CUstream, CUcontext *);

static void name_object(uint64_t id, uint32_t name)
{
	struct xs_activity_object *object = xs_activity_object_of(file_of_names, id, true);

	if (!object)
		return;
	atomic_store_explicit(&object->name, name, memory_order_relaxed);
	/* the name; pairs with the acquire in the drain process */
	atomic_fetch_add_explicit(&file_of_names->objects, 1, memory_order_release);
}

static void name_context(CUcontext context, uint32_t name)
{
	uint32_t id;

	if (xs_cupti.GetContextId && !xs_cupti.GetContextId(context, &id))
		name_object((uint64_t)id << 32 | XS_ACTIVITY_CONTEXT, name);
}

static void name_stream(CUstream stream, uint32_t name)
{
	CUcontext context = NULL;
	uint32_t id, number;
	bool known;

	if (!get_context || !xs_cupti.GetContextId || !xs_cupti.GetStreamIdEx)
		return;
	xs_cuda_is_ours = true;
	known = !get_context(stream, &context);
	xs_cuda_is_ours = false;
	if (known && !xs_cupti.GetContextId(context, &id) &&
	    !xs_cupti.GetStreamIdEx(NULL, stream, 0, &number))
		name_object((uint64_t)id << 32 | number, name);
}

static void name_device(uint64_t number, uint32_t name)
{
	if (number < XS_ACTIVITY_DEVICES)
		atomic_store_explicit(&file_of_names->device[number].given, name,
				      memory_order_release);
}

static void take(enum xs_object object, uint64_t handle, uint32_t name)
{
	if (!xs_cuda_own_process())
		return;
	if (object == XS_OBJECT_DEVICE)
		name_device(handle, name);
	else if (object == XS_OBJECT_CONTEXT)
		name_context((CUcontext)(uintptr_t)handle, name);
	else
		name_stream((CUstream)(uintptr_t)handle, name);
}

void xs_cuda_take_names(struct xs_activity_file *file)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	uint32_t name;

	if (driver)
		*(void **)&get_context = dlsym(driver, "cuStreamGetCtx");
	file_of_names = file;
	atomic_store(&xs_object_namer, take);
	for (uint32_t i = 0; i < XS_NAMED_DEVICES; i++) {
		name = atomic_load(&xs_named_devices[i]);
		if (name)
			name_device(i, name);
	}
}
