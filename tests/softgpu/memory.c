/* Memory. A device's is one sparse file in memory of which each allocation maps a part, so that
 * another process can map the same (IPC), use after free is a fault, and the total is finite. Host
 * and shared memory are the heap's. */
#include "driver.h"
#include "ipc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sg_allocation *allocations; /* by address */
static size_t count, capacity;
static uint64_t last_id;
static int device_fd = -1;
static off_t device_end;

/* The first that ends past the pointer: the one that holds it, if any does. */
static size_t position(const char *pointer)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (allocations[middle].base + allocations[middle].size > pointer)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static struct sg_allocation *find(const void *pointer)
{
	size_t at = position(pointer);

	return at < count && allocations[at].base <= (const char *)pointer ? &allocations[at]
									   : NULL;
}

bool sg_find_allocation(const void *pointer, struct sg_allocation *ret)
{
	const struct sg_allocation *found;

	(void)pthread_mutex_lock(&lock);
	found = find(pointer);
	if (found)
		*ret = *found;
	(void)pthread_mutex_unlock(&lock);
	return found;
}

static bool add(struct sg_allocation *allocation)
{
	bool done = false;
	size_t at;

	(void)pthread_mutex_lock(&lock);
	if (count == capacity) {
		size_t more = capacity ? capacity * 2 : 64;
		struct sg_allocation *grown = realloc(allocations, more * sizeof(*grown));

		if (!grown)
			goto out;
		allocations = grown;
		capacity = more;
	}
	at = position(allocation->base);
	memmove(allocations + at + 1, allocations + at, (count - at) * sizeof(*allocations));
	allocation->id = ++last_id;
	allocations[at] = *allocation;
	count++;
	done = true;
out:
	(void)pthread_mutex_unlock(&lock);
	return done;
}

static size_t page_round(size_t size)
{
	return (size + 4095) & ~(size_t)4095;
}

/*
 * A part of the device's memory that was never given before: what was freed is returned to the
 * system, not used again.
 */
static bool device_map(struct sg_allocation *allocation)
{
	size_t size = page_round(allocation->size);
	void *base = MAP_FAILED;

	(void)pthread_mutex_lock(&lock);
	if (device_fd < 0)
		device_fd = memfd_create("softgpu-memory", MFD_CLOEXEC);
	if (device_fd >= 0 && !ftruncate(device_fd, device_end + (off_t)size)) {
		allocation->offset = device_end;
		base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, device_fd, device_end);
		if (base != MAP_FAILED)
			device_end += (off_t)size;
	}
	(void)pthread_mutex_unlock(&lock);
	allocation->base = base;
	allocation->mapped = true;
	return base != MAP_FAILED;
}

static bool reserve(struct sg_device *device, size_t size)
{
	if (atomic_fetch_add(&device->root->used, page_round(size)) + page_round(size) <=
	    sg_config.memory)
		return true;
	atomic_fetch_sub(&device->root->used, page_round(size));
	return false;
}

static void give_back(const struct sg_allocation *allocation)
{
	if (allocation->mapped) {
		(void)munmap(allocation->base, page_round(allocation->size));
		if (!allocation->ipc)
			(void)fallocate(device_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					allocation->offset, (off_t)page_round(allocation->size));
	} else {
		free(allocation->base);
	}
	if (allocation->device && !allocation->ipc)
		atomic_fetch_sub(&allocation->device->root->used, page_round(allocation->size));
}

static ze_result_t allocate(ze_memory_type_t type, struct sg_device *device, size_t size,
			    size_t alignment, void **ret)
{
	struct sg_allocation allocation = { .type = type, .device = device, .size = size };

	if (sg_config.cancels)
		pthread_testcancel();
	if (!size)
		return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
	if (alignment & (alignment - 1))
		return ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
	if (size > sg_config.memory)
		return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
	if (device && !reserve(device, size))
		return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
	if (type == ZE_MEMORY_TYPE_DEVICE) {
		if (!device_map(&allocation)) {
			atomic_fetch_sub(&device->root->used, page_round(size));
			return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
		}
	} else {
		void *base;

		if (posix_memalign(&base, alignment < 64 ? 64 : alignment, size)) {
			if (device)
				atomic_fetch_sub(&device->root->used, page_round(size));
			return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
		}
		allocation.base = base;
	}
	if (!add(&allocation)) {
		give_back(&allocation);
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	}
	*ret = allocation.base;
	return SG_OK;
}

ze_result_t sg_zeMemAllocDevice(ze_context_handle_t context, const ze_device_mem_alloc_desc_t *desc,
				size_t size, size_t alignment, ze_device_handle_t device,
				void **ret)
{
	SG_ENTER_WITH(context && device, desc && ret);
	return allocate(ZE_MEMORY_TYPE_DEVICE, (struct sg_device *)device, size, alignment, ret);
}

ze_result_t sg_zeMemAllocHost(ze_context_handle_t context, const ze_host_mem_alloc_desc_t *desc,
			      size_t size, size_t alignment, void **ret)
{
	SG_ENTER_WITH(context, desc && ret);
	return allocate(ZE_MEMORY_TYPE_HOST, NULL, size, alignment, ret);
}

ze_result_t sg_zeMemAllocShared(ze_context_handle_t context,
				const ze_device_mem_alloc_desc_t *device_desc,
				const ze_host_mem_alloc_desc_t *host_desc, size_t size,
				size_t alignment, ze_device_handle_t device, void **ret)
{
	SG_ENTER_WITH(context, device_desc && host_desc && ret);
	return allocate(ZE_MEMORY_TYPE_SHARED, (struct sg_device *)device, size, alignment, ret);
}

static ze_result_t release(void *pointer, bool ipc)
{
	struct sg_allocation *found, freed;

	(void)pthread_mutex_lock(&lock);
	found = find(pointer);
	if (!found || found->base != pointer || found->ipc != ipc) {
		(void)pthread_mutex_unlock(&lock);
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	}
	freed = *found;
	count--;
	memmove(found, found + 1, (count - (size_t)(found - allocations)) * sizeof(*found));
	(void)pthread_mutex_unlock(&lock);
	give_back(&freed);
	return SG_OK;
}

ze_result_t sg_zeMemFree(ze_context_handle_t context, void *pointer)
{
	SG_ENTER_WITH(context, pointer);
	return release(pointer, false);
}

ze_result_t sg_zeMemFreeExt(ze_context_handle_t context, const ze_memory_free_ext_desc_t *desc,
			    void *pointer)
{
	SG_ENTER_WITH(context, desc && pointer);
	return release(pointer, false);
}

ze_result_t sg_zeMemGetAllocProperties(ze_context_handle_t context, const void *pointer,
				       ze_memory_allocation_properties_t *ret,
				       ze_device_handle_t *device)
{
	struct sg_allocation found;

	SG_ENTER_WITH(context, pointer && ret);
	if (!sg_find_allocation(pointer, &found))
		found = (struct sg_allocation){ .type = ZE_MEMORY_TYPE_UNKNOWN };
	ret->type = found.type;
	ret->id = found.id;
	ret->pageSize = 4096;
	if (device)
		*device = (ze_device_handle_t)found.device;
	return SG_OK;
}

#define HOST_IMPORTED ((ze_memory_type_t)4) /* of newer headers */

ze_result_t sg_zexDriverImportExternalPointer(ze_driver_handle_t driver, void *pointer, size_t size)
{
	struct sg_allocation allocation = { .type = HOST_IMPORTED, .base = pointer, .size = size };

	SG_ENTER_WITH(driver, pointer);
	return add(&allocation) ? SG_OK : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

ze_result_t sg_zexDriverReleaseImportedPointer(ze_driver_handle_t driver, void *pointer)
{
	struct sg_allocation *found;

	SG_ENTER_WITH(driver, pointer);
	(void)pthread_mutex_lock(&lock);
	found = find(pointer);
	if (found && found->type == HOST_IMPORTED && found->base == pointer) {
		memmove(found, found + 1,
			(size_t)(allocations + count - found - 1) * sizeof(*found));
		count--;
	} else {
		found = NULL;
	}
	(void)pthread_mutex_unlock(&lock);
	return found ? SG_OK : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

ze_result_t sg_zeMemGetAddressRange(ze_context_handle_t context, const void *pointer, void **base,
				    size_t *size)
{
	struct sg_allocation found;

	SG_ENTER_WITH(context, pointer);
	if (!sg_find_allocation(pointer, &found))
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	if (base)
		*base = found.base;
	if (size)
		*size = found.size;
	return SG_OK;
}

ze_result_t sg_zeMemGetIpcHandle(ze_context_handle_t context, const void *pointer,
				 ze_ipc_mem_handle_t *ret)
{
	struct sg_ipc ipc = { .magic = SG_IPC_MEMORY, .pid = getpid(), .fd = device_fd };
	struct sg_allocation found;

	SG_ENTER_WITH(context, pointer && ret);
	if (!sg_find_allocation(pointer, &found) || found.type != ZE_MEMORY_TYPE_DEVICE ||
	    found.ipc)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	ipc.size = found.size;
	ipc.offset = (uint64_t)found.offset;
	ipc.device = (uint32_t)found.device->root->id;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->data, &ipc, sizeof(ipc));
	return SG_OK;
}

ze_result_t sg_zeMemOpenIpcHandle(ze_context_handle_t context, ze_device_handle_t device,
				  ze_ipc_mem_handle_t handle, ze_ipc_memory_flags_t flags,
				  void **ret)
{
	struct sg_allocation allocation = { .type = ZE_MEMORY_TYPE_DEVICE,
					    .device = (struct sg_device *)device,
					    .mapped = true,
					    .ipc = true };
	struct sg_ipc ipc;
	void *base;
	int fd;

	SG_ENTER_WITH(context && device, ret);
	(void)flags;
	memcpy(&ipc, handle.data, sizeof(ipc));
	if (ipc.magic != SG_IPC_MEMORY)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	fd = sg_ipc_open(&ipc);
	if (fd < 0)
		return ZE_RESULT_ERROR_INVALID_ARGUMENT;
	base = mmap(NULL, page_round(ipc.size), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    (off_t)ipc.offset);
	(void)close(fd);
	if (base == MAP_FAILED)
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	allocation.base = base;
	allocation.size = ipc.size;
	if (!add(&allocation)) {
		(void)munmap(base, page_round(ipc.size));
		return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	}
	*ret = base;
	return SG_OK;
}

ze_result_t sg_zeMemCloseIpcHandle(ze_context_handle_t context, const void *pointer)
{
	SG_ENTER_WITH(context, pointer);
	return release((void *)(uintptr_t)pointer, true);
}
