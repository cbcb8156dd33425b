/* Modules, kernels, memory, images, and what processes share. */
#include "conformance.h"

#include <sys/wait.h>

static struct ze_app app;

static void modules(void)
{
	const char *const expected[] = {
		"empty", "spin",    "nap",	 "add",
		"gemm",	 "reverse", "increment", "_ZTSZN4demo5scaleIfEEvPT_S1_mENKUlvE_clEvEUlT_E_"
	};
	struct {
		ze_structure_type_t stype;
		void *next;
		uint32_t registers;
	} file = { .stype = 0x00030012 };
	ze_kernel_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES,
					      .pNext = &file };
	ze_kernel_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_KERNEL_DESC,
				  .pKernelName = "softgpu_kernels" };
	ze_module_handle_t jit;
	ze_kernel_handle_t kernel;
	const char *names[16];
	unsigned char *binary;
	char name[64];
	uint32_t count = 0, *global, *other;
	size_t size;

	ze_app_open(&app, 0, -1);
	ZE_CHECK(zeModuleGetKernelNames(app.module, &count, NULL));
	CHECK(count == 8, "%u", count);
	ZE_CHECK(zeModuleGetKernelNames(app.module, &count, names));
	for (uint32_t i = 0; i < count && i < 8; i++)
		CHECK(!strcmp(names[i], expected[i]), "%s", names[i]);
	IS(zeKernelCreate(app.module, &desc, &kernel), ZE_RESULT_ERROR_INVALID_KERNEL_NAME);
	kernel = ze_app_kernel(&app, "gemm");
	ZE_CHECK(zeKernelGetProperties(kernel, &properties));
	CHECK(properties.numKernelArgs == 4 && properties.maxSubgroupSize == 16 &&
	      properties.localMemSize == 4096);
	CHECK(properties.privateMemSize == 64 && properties.spillMemSize == 192 &&
	      file.registers == 256);
	size = sizeof(name);
	ZE_CHECK(zeKernelGetName(kernel, &size, name));
	CHECK(!strcmp(name, "gemm") && size == 5);
	size = 0;
	ZE_CHECK(zeModuleGetNativeBinary(app.module, &size, NULL));
	CHECK(size == app.module_size);
	binary = malloc(size);
	ZE_CHECK(zeModuleGetNativeBinary(app.module, &size, binary));
	CHECK(!memcmp(binary, app.module_bytes, size));
	/* the same bytes a second time are another module, with variables of its own */
	jit = ze_app_module(&app, ZE_MODULE_FORMAT_IL_SPIRV);
	ZE_CHECK(zeModuleGetGlobalPointer(app.module, "softgpu_global", &size, (void **)&global));
	CHECK(size == 16 && global[2] == 3);
	ZE_CHECK(zeModuleGetGlobalPointer(jit, "softgpu_global", &size, (void **)&other));
	CHECK(other != global);
	ZE_CHECK(zeModuleDestroy(jit));
	ZE_CHECK(zeKernelDestroy(kernel));
	free(binary);
	ze_app_close(&app);
}

static void kernels(void)
{
	enum { N = 48, COUNT = 1000 };
	float *a, *b, *c;
	uint32_t n = N, *data;
	ze_group_count_t groups = { N / 8, N / 8, 1 }, many = { (COUNT + 63) / 64, 1, 1 },
			 parts = { 4, 1, 1 }, *indirect;
	ze_kernel_handle_t gemm, add, reverse;
	ze_command_list_handle_t list;

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 0, 0, true);
	a = ze_app_shared(&app, COUNT * 4 * 3);
	b = ze_app_shared(&app, COUNT * 4 * 3);
	c = ze_app_shared(&app, COUNT * 4 * 3);
	for (int i = 0; i < 3 * COUNT; i++) {
		a[i] = (float)(i % 17);
		b[i] = (float)(i % 5);
	}
	gemm = ze_app_kernel(&app, "gemm");
	add = ze_app_kernel(&app, "add");
	for (uint32_t i = 0; i < 3; i++) {
		ze_app_arg(gemm, i, sizeof(a), i == 0 ? &a : i == 1 ? &b : &c);
		ze_app_arg(add, i, sizeof(a), i == 0 ? &a : i == 1 ? &b : &c);
	}
	ze_app_arg(gemm, 3, sizeof(n), &n);
	ZE_CHECK(zeKernelSetGroupSize(gemm, 8, 8, 1));
	ZE_CHECK(zeCommandListAppendLaunchKernel(list, gemm, &groups, NULL, 0, NULL));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	for (int i = 0; i < N * N; i += 7) {
		float sum = 0;

		for (int k = 0; k < N; k++)
			sum += a[i / N * N + k] * b[k * N + i % N];
		CHECK(c[i] == sum, "at %d", i);
	}
	/*
	 * arguments are taken when the kernel is appended, the group count of an indirect launch
	 * when it runs
	 */
	n = COUNT;
	ze_app_arg(add, 3, sizeof(n), &n);
	ZE_CHECK(zeKernelSetGroupSize(add, 64, 1, 1));
	indirect = ze_app_host(&app, sizeof(*indirect));
	*indirect = many;
	ZE_CHECK(zeCommandListAppendLaunchKernelIndirect(list, add, indirect, NULL, 0, NULL));
	n = 0;
	ze_app_arg(add, 3, sizeof(n), &n);
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	for (int i = 0; i < COUNT; i++)
		CHECK(c[i] == a[i] + b[i], "at %d", i);
	reverse = ze_app_kernel(&app, "reverse");
	data = ze_app_shared(&app, 64 * 4);
	for (uint32_t i = 0; i < 64; i++)
		data[i] = i;
	ze_app_arg(reverse, 0, sizeof(data), &data);
	ze_app_arg(reverse, 1, 16 * sizeof(*data), NULL); /* local memory */
	ZE_CHECK(zeKernelSetGroupSize(reverse, 16, 1, 1));
	ZE_CHECK(zeCommandListAppendLaunchKernel(list, reverse, &parts, NULL, 0, NULL));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	for (uint32_t i = 0; i < 64; i++)
		CHECK(data[i] == i / 16 * 16 + 15 - i % 16);
}

static void memory(void)
{
	ze_memory_allocation_properties_t properties = {
		.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
	};
	ze_device_mem_alloc_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC };
	void *device, *host, *shared, *base, *none;
	ze_device_handle_t of;
	char local[8];
	uint64_t id;
	size_t size;

	settings("SOFTGPU_MEMORY", "0x400000", NULL);
	ze_app_open(&app, 0, -1);
	device = ze_app_device(&app, 5000);
	host = ze_app_host(&app, 5000);
	shared = ze_app_shared(&app, 5000);
	ZE_CHECK(zeMemGetAllocProperties(app.context, (char *)device + 4999, &properties, &of));
	CHECK(properties.type == ZE_MEMORY_TYPE_DEVICE && of == app.device && properties.id);
	id = properties.id;
	ZE_CHECK(zeMemGetAllocProperties(app.context, host, &properties, &of));
	CHECK(properties.type == ZE_MEMORY_TYPE_HOST && !of && properties.id != id);
	ZE_CHECK(zeMemGetAllocProperties(app.context, shared, &properties, &of));
	CHECK(properties.type == ZE_MEMORY_TYPE_SHARED && of == app.device);
	ZE_CHECK(zeMemGetAllocProperties(app.context, local, &properties, &of));
	CHECK(properties.type == ZE_MEMORY_TYPE_UNKNOWN && !of);
	ZE_CHECK(zeMemGetAddressRange(app.context, (char *)shared + 77, &base, &size));
	CHECK(base == shared && size == 5000);
	IS(zeMemAllocDevice(app.context, &desc, 0x3ff000, 64, app.device, &none),
	   ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
	ZE_CHECK(zeMemFree(app.context, device));
	ZE_CHECK(zeMemFree(app.context, shared));
	ZE_CHECK(zeMemAllocDevice(app.context, &desc, 0x3ff000, 64, app.device, &none));
	IS(zeMemFree(app.context, device), ZE_RESULT_ERROR_INVALID_ARGUMENT);
	ZE_CHECK(zeMemFree(app.context, none));
	ZE_CHECK(zeMemFree(app.context, host));
}

static void regions(void)
{
	enum { PITCH = 64, SLICE = 64 * 8 };
	ze_copy_region_t to = { 4, 1, 1, 16, 3, 2 }, from = { 0, 2, 0, 16, 3, 2 };
	ze_command_list_handle_t list;
	unsigned char *a, *b, pattern[4] = { 1, 2, 3, 4 };

	ze_app_open(&app, 0, -1);
	list = ze_app_immediate(&app, 1, 0, false);
	a = ze_app_shared(&app, SLICE * 4);
	b = ze_app_device(&app, SLICE * 4);
	for (int i = 0; i < SLICE * 4; i++) {
		a[i] = (unsigned char)(i * 3);
		b[i] = 0;
	}
	ZE_CHECK(zeCommandListAppendMemoryCopyRegion(list, b, &to, PITCH, SLICE, a, &from, PITCH,
						     SLICE, NULL, 0, NULL));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	for (unsigned z = 0; z < 4; z++)
		for (unsigned y = 0; y < 8; y++)
			for (unsigned x = 0; x < PITCH; x++) {
				bool inside = x >= 4 && x < 20 && y >= 1 && y < 4 && z >= 1 &&
					      z < 3;
				unsigned char expected =
					inside ? a[(z - 1) * SLICE + (y + 1) * PITCH + x - 4] : 0;

				CHECK(b[z * SLICE + y * PITCH + x] == expected, "at %u %u %u", x, y,
				      z);
			}
	ZE_CHECK(zeCommandListAppendMemoryFill(list, b, pattern, 4, 10, NULL, 0, NULL));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	for (int i = 0; i < 10; i++)
		CHECK(b[i] == i % 4 + 1);
}

static void images(void)
{
	enum { W = 20, H = 6 };
	ze_image_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_IMAGE_DESC,
				 .type = ZE_IMAGE_TYPE_2D,
				 .width = W,
				 .height = H };
	ze_image_region_t part = { 5, 1, 0, 10, 3, 1 }, place = { 0, 0, 0, 10, 3, 1 };
	ze_image_handle_t one, two;
	ze_command_list_handle_t list;
	uint32_t *in, *out;

	ze_app_open(&app, 0, -1);
	desc.format.layout = ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8;
	ZE_CHECK(zeImageCreate(app.context, app.device, &desc, &one));
	ZE_CHECK(zeImageCreate(app.context, app.device, &desc, &two));
	list = ze_app_immediate(&app, 0, 0, true);
	in = ze_app_host(&app, W * H * 4);
	out = ze_app_host(&app, W * H * 4);
	for (uint32_t i = 0; i < W * H; i++)
		in[i] = i + 1000;
	ZE_CHECK(zeCommandListAppendImageCopyFromMemory(list, one, in, NULL, NULL, 0, NULL));
	ZE_CHECK(zeCommandListAppendImageCopy(list, two, one, NULL, 0, NULL));
	ZE_CHECK(zeCommandListAppendImageCopyRegion(list, two, one, &place, &part, NULL, 0, NULL));
	ZE_CHECK(zeCommandListAppendImageCopyToMemory(list, out, two, NULL, NULL, 0, NULL));
	ZE_CHECK(ze_app_list_sync(&app, list, UINT64_MAX));
	for (uint32_t y = 0; y < H; y++)
		for (uint32_t x = 0; x < W; x++)
			CHECK(out[y * W + x] ==
				      (x < 10 && y < 3 ? in[(y + 1) * W + x + 5] : in[y * W + x]),
			      "at %u %u", x, y);
	part.width = W;
	IS(zeCommandListAppendImageCopyRegion(list, two, one, &place, &part, NULL, 0, NULL),
	   ZE_RESULT_ERROR_INVALID_SIZE);
	ZE_CHECK(zeImageDestroy(one));
	ZE_CHECK(zeImageDestroy(two));
	desc.format.layout = ZE_IMAGE_FORMAT_LAYOUT_444P;
	IS(zeImageCreate(app.context, app.device, &desc, &one),
	   ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT);
}

/*
 * A child takes memory and events of its parent: it writes the one and waits for and signals the
 * others.
 */
struct shared_handles {
	ze_ipc_mem_handle_t memory;
	ze_ipc_event_pool_handle_t pool;
};

static int ipc_child(int fd)
{
	struct shared_handles handles;
	ze_event_pool_handle_t pool;
	ze_command_list_handle_t list;
	ze_event_handle_t go, done;
	unsigned char *memory;

	if (read(fd, &handles, sizeof(handles)) != (ssize_t)sizeof(handles))
		return 2;
	ze_app_open(&app, 0, -1);
	ZE_CHECK(zeMemOpenIpcHandle(app.context, app.device, handles.memory, 0, (void **)&memory));
	ZE_CHECK(zeEventPoolOpenIpcHandle(app.context, handles.pool, &pool));
	go = ze_app_event(pool, 0);
	done = ze_app_event(pool, 1);
	ZE_CHECK(zeEventHostSynchronize(go, UINT64_MAX));
	CHECK(memory[0] == 17);
	list = ze_app_immediate(&app, 1, 0, false);
	ZE_CHECK(zeCommandListAppendMemoryFill(list, memory, "Z", 1, 300, done, 0, NULL));
	ZE_CHECK(zeEventHostSynchronize(done, UINT64_MAX));
	ZE_CHECK(zeEventDestroy(go));
	ZE_CHECK(zeEventDestroy(done));
	ZE_CHECK(zeEventPoolCloseIpcHandle(pool));
	ZE_CHECK(zeMemCloseIpcHandle(app.context, memory));
	return tap_failures > 0;
}

static void ipc(void)
{
	struct shared_handles handles;
	ze_event_pool_handle_t pool;
	ze_event_handle_t go, done;
	ze_kernel_timestamp_result_t result;
	unsigned char *memory;
	int fds[2], status;
	pid_t pid;

	CHECK(!pipe(fds));
	pid = fork(); /* before there is a driver: its threads would not be there after */
	if (!pid)
		_exit(ipc_child(fds[0]));
	ze_app_open(&app, 0, -1);
	(void)ze_app_device(&app, 100);
	memory = ze_app_device(&app, 300);
	pool = ze_app_pool(&app, 2, TIMED | ZE_EVENT_POOL_FLAG_IPC, false);
	go = ze_app_event(pool, 0);
	done = ze_app_event(pool, 1);
	memory[0] = 17;
	ZE_CHECK(zeMemGetIpcHandle(app.context, memory, &handles.memory));
	ZE_CHECK(zeEventPoolGetIpcHandle(pool, &handles.pool));
	CHECK(write(fds[1], &handles, sizeof(handles)) == (ssize_t)sizeof(handles));
	(void)usleep(3000);
	ZE_CHECK(zeEventHostSignal(go));
	ZE_CHECK(zeEventHostSynchronize(done, UINT64_MAX));
	CHECK(memory[0] == 'Z' && memory[299] == 'Z');
	ZE_CHECK(zeEventQueryKernelTimestamp(done, &result));
	CHECK(result.global.kernelEnd > result.global.kernelStart, "times cross too");
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%d", status);
}

static void functions_by_name(void)
{
	void *address;

	ze_app_open(&app, 0, -1);
	ZE_CHECK(zeDriverGetExtensionFunctionAddress(app.driver, "zexKernelGetBaseAddress",
						     &address));
	CHECK(address);
	ZE_CHECK(zeDriverGetExtensionFunctionAddress(app.driver, "zeCommandListHostSynchronize",
						     &address));
	IS(zeDriverGetExtensionFunctionAddress(app.driver, "zeNothing", &address),
	   ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

static void no_devices(void)
{
	ze_driver_handle_t driver;
	uint32_t count = 1;

	settings("SOFTGPU_DEVICES", "0", NULL);
	ZE_CHECK(zeInit(0));
	ZE_CHECK(zeDriverGet(&count, &driver));
	count = 0;
	ZE_CHECK(zeDeviceGet(driver, &count, NULL));
	CHECK(count == 0);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("modules", modules);
	tap_run("kernels compute what they should", kernels);
	tap_run("memory", memory);
	tap_run("regions and fills", regions);
	tap_run("images", images);
	tap_run("memory and events of another process", ipc);
	tap_run("functions by name", functions_by_name);
	tap_run("no devices", no_devices);
	return tap_done();
}
