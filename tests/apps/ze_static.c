/*
 * What a program does that carries Level Zero's static loader (BUILD_STATIC of
 * github.com/oneapi-src/level-zero, source/lib/ze_lib.cpp and ze_libddi.cpp): it opens
 * libze_loader.so.1, lets it look for drivers (zeLoaderInit), has it fill tables of its own
 * (zeGet...ProcAddrTable), and only then calls the loader's zeInit, which makes the loader's own
 * tables.
 *
 *     ze_static tables|symbols
 *
 * tables: it calls what the tables hold (1.21.1 to 1.21.8). symbols: it puts the loader's symbols
 * over that (since 1.21.9).
 */
#include <level_zero/ze_ddi.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;
static ze_dditable_t tables;

static void *find(const char *name)
{
	void *ret = dlsym(library, name);

	if (!ret) {
		fprintf(stderr, "ze_static: no %s\n", name);
		exit(1);
	}
	return ret;
}

static void check(const char *call, ze_result_t result)
{
	if (result == ZE_RESULT_SUCCESS)
		return;
	fprintf(stderr, "ze_static: %s: 0x%x\n", call, result);
	exit(1);
}

#define CHECK(call) check(#call, call)

/* of all loaders that we trace, whatever headers this is built with */
#define VERSION ZE_API_VERSION_1_4
#define TABLE(name)                                            \
	CHECK(((ze_result_t(*)(ze_api_version_t, void *))find( \
		"zeGet" #name "ProcAddrTable"))(VERSION, &tables.name))
#define SYMBOL(table, member) *(void **)&tables.table.pfn##member = find("ze" #table #member)

static void load(bool symbols)
{
	library = dlopen("libze_loader.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "ze_static: %s\n", dlerror());
		exit(1);
	}
	CHECK(((ze_result_t(*)(void))find("zeLoaderInit"))());
	/* all of them: a loader's objects go with its functions */
	TABLE(Global);
	TABLE(Driver);
	TABLE(Device);
	TABLE(Context);
	TABLE(CommandQueue);
	TABLE(CommandList);
	TABLE(Image);
	TABLE(Fence);
	TABLE(EventPool);
	TABLE(Event);
	TABLE(Module);
	TABLE(ModuleBuildLog);
	TABLE(Kernel);
	TABLE(Sampler);
	TABLE(PhysicalMem);
	TABLE(Mem);
	TABLE(VirtualMem);
	if (symbols) {
		/* none of what was in them stays; here: but what is called */
		memset(&tables, 0, sizeof(tables));
		*(void **)&tables.Global.pfnInit = find("zeInit");
		SYMBOL(Driver, Get);
		SYMBOL(Device, Get);
		SYMBOL(Context, Create);
		SYMBOL(Context, Destroy);
		SYMBOL(Mem, AllocDevice);
		SYMBOL(Mem, Free);
		SYMBOL(CommandList, CreateImmediate);
		SYMBOL(CommandList, AppendMemoryCopy);
		SYMBOL(CommandList, AppendBarrier);
		SYMBOL(CommandList, Destroy);
	}
	CHECK(((__typeof__(&zeInit))find("zeInit"))(0));
	CHECK(tables.Global.pfnInit(0));
}

int main(int argc, char **argv)
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

	load(argc > 1 && !strcmp(argv[1], "symbols"));
	CHECK(tables.Driver.pfnGet(&count, &driver));
	count = 1;
	CHECK(tables.Device.pfnGet(driver, &count, &device));
	CHECK(tables.Context.pfnCreate(driver, &context_desc, &context));
	CHECK(tables.Mem.pfnAllocDevice(context, &memory_desc, sizeof(data), 64, device, &memory));
	CHECK(tables.CommandList.pfnCreateImmediate(context, device, &queue_desc, &list));
	CHECK(tables.CommandList.pfnAppendMemoryCopy(list, memory, data, sizeof(data), NULL, 0,
						     NULL));
	CHECK(tables.CommandList.pfnAppendBarrier(list, NULL, 0, NULL));
	CHECK(tables.CommandList.pfnAppendMemoryCopy(list, back, memory, sizeof(back), NULL, 0,
						     NULL));
	CHECK(tables.CommandList.pfnDestroy(list));
	CHECK(tables.Mem.pfnFree(context, memory));
	CHECK(tables.Context.pfnDestroy(context));
	printf("launched 2 copies: %s\n", back);
	return 0;
}
