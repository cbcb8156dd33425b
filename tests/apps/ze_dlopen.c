/*
 * The loader by dlopen and dlsym, as languages' bindings and SYCL's adapters do it: no symbol of it
 * is in the program.
 *
 *     ze_dlopen [deep] [LOADER...]
 *
 * deep: with RTLD_DEEPBIND, as SYCL's runtime opens adapters with UR_ADAPTERS_DEEP_BIND=1. Several
 * loaders are used one after the other.
 */
#include <level_zero/ze_api.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static void *find(const char *name)
{
	void *ret = dlsym(library, name);

	if (!ret) {
		fprintf(stderr, "ze_dlopen: no %s\n", name);
		exit(1);
	}
	return ret;
}

#define CALL(function, ...)                                                                 \
	do {                                                                                \
		ze_result_t result = ((__typeof__(&function))find(#function))(__VA_ARGS__); \
		if (result != ZE_RESULT_SUCCESS) {                                          \
			fprintf(stderr, "ze_dlopen: %s: 0x%x\n", #function, result);        \
			return 1;                                                           \
		}                                                                           \
	} while (0)

static int run(const char *loader, int mode)
{
	ze_device_mem_alloc_desc_t memory_desc = {
		.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC
	};
	ze_command_queue_desc_t queue_desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
					       .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS };
	ze_context_desc_t context_desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
	char data[256] = "copied by the device", back[256] = "";
	ze_context_handle_t context;
	ze_command_list_handle_t list;
	ze_driver_handle_t driver;
	ze_device_handle_t device;
	uint32_t count = 1;
	void *memory;

	library = dlopen(loader, RTLD_NOW | RTLD_LOCAL | mode);
	if (!library) {
		fprintf(stderr, "ze_dlopen: %s\n", dlerror());
		return 1;
	}
	CALL(zeInit, 0);
	CALL(zeDriverGet, &count, &driver);
	count = 1;
	CALL(zeDeviceGet, driver, &count, &device);
	CALL(zeContextCreate, driver, &context_desc, &context);
	CALL(zeMemAllocDevice, context, &memory_desc, sizeof(data), 64, device, &memory);
	CALL(zeCommandListCreateImmediate, context, device, &queue_desc, &list);
	CALL(zeCommandListAppendMemoryCopy, list, memory, data, sizeof(data), NULL, 0, NULL);
	CALL(zeCommandListAppendBarrier, list, NULL, 0, NULL);
	CALL(zeCommandListAppendMemoryCopy, list, back, memory, sizeof(back), NULL, 0, NULL);
	CALL(zeCommandListDestroy, list);
	CALL(zeMemFree, context, memory);
	CALL(zeContextDestroy, context);
	printf("launched 2 copies: %s\n", back);
	return 0;
}

int main(int argc, char **argv)
{
	int mode = argc > 1 && !strcmp(argv[1], "deep") ? RTLD_DEEPBIND : 0, first = mode ? 2 : 1,
	    failed = 0;

	if (argc == first)
		return run("libze_loader.so.1", mode);
	for (int i = first; i < argc; i++)
		failed |= run(argv[i], mode);
	return failed;
}
