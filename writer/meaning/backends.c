#include "activity_types.h"
#include "backends.h"
#include "costs.h"
#include "cuda_activity.h"
#include "functions.h"

/* Made from the API's header (interpose/); their addresses are NULL where the API is not built. */
#define TABLES(api)                                                        \
	extern const char *const xs_##api##_names[] __attribute__((weak)); \
	extern const uint32_t xs_##api##_count __attribute__((weak));      \
	extern const struct xs_api xs_##api##_arguments __attribute__((weak))
TABLES(opencl);
TABLES(level_zero);
TABLES(cuda);
TABLES(mpi);
TABLES(sycl);

/* unitrace's letters, which do not tell system memory from unknown memory */
#define MEMORY "MHDSM"

static const struct xs_backend backends[XS_SOURCE_COUNT] = {
	[XS_SOURCE_NONE] = { .label = "?", .memory = MEMORY, .layout = { 11, 19, 11, 11, 2, "Queued" } },
	[XS_SOURCE_LEVEL_ZERO] = {
		.label = "L0",
		.names = xs_level_zero_names,
		.name_count = &xs_level_zero_count,
		.arguments = &xs_level_zero_arguments,
		.memory = MEMORY,
		.layout = { 12, 20, 13, 12, 6, "Append" },
		.call_type = XS_TYPE_XPU_RUNTIME,
		.groups = true,
		.demangled = true,
		.quoted = true,
		.numbered = true,
		.detailed = true,
		.engines = true,
	},
	[XS_SOURCE_OPENCL] = {
		.label = "CL",
		.by_type = { "CL", "CL CPU", "CL GPU", "CL ACCELERATOR" },
		.names = xs_opencl_names,
		.name_count = &xs_opencl_count,
		.arguments = &xs_opencl_arguments,
		.memory = MEMORY,
		.layout = { 11, 19, 11, 11, 2, "Queued" },
		.call_type = XS_TYPE_XPU_RUNTIME,
		.arrows = 1,
	},
	[XS_SOURCE_CUDA] = {
		.label = "CUDA",
		.names = xs_cuda_names,
		.name_count = &xs_cuda_count,
		.arguments = &xs_cuda_arguments,
		.memory = MEMORY,
		.layout = { 12, 20, 13, 12, 6, "Queued" },
		.call_type = XS_TYPE_CUDA_RUNTIME,
		.arrows = 2,
		.groups = true,
		.numbered = true,
		.streams = true,
		.named = xs_cuda_named,
	},
	[XS_SOURCE_MPI] = {
		.label = "MPI",
		.cost = XS_COST_MPI,
		.names = xs_mpi_names,
		.name_count = &xs_mpi_count,
		.memory = MEMORY,
		.layout = { 11, 19, 11, 11, 2, "Queued" },
	},
	[XS_SOURCE_UR] = {
		.label = "UR",
		.names = xs_sycl_names,
		.name_count = &xs_sycl_count,
		.arguments = &xs_sycl_arguments,
		.interned = true,
		.asked = true,
		.memory = MEMORY,
		.layout = { 11, 19, 11, 11, 2, "Queued" },
		.call_type = XS_TYPE_XPU_RUNTIME,
	},
};

const struct xs_backend *xs_backend_of(uint8_t source)
{
	return source < XS_SOURCE_COUNT && backends[source].label ? &backends[source]
								  : &backends[XS_SOURCE_NONE];
}

const struct xs_function *xs_function_of(uint8_t source, uint32_t function,
					 const struct xs_api **ret_api)
{
	const struct xs_api *api = xs_backend_of(source)->arguments;

	if (ret_api)
		*ret_api = api;
	return api && function < api->count ? &api->functions[function] : NULL;
}

size_t xs_group_of(uint8_t source, uint8_t type)
{
	if (source >= XS_SOURCE_COUNT)
		source = XS_SOURCE_NONE;
	return source * 4u + (backends[source].by_type[0] && type < 4 ? type : 0);
}

const struct xs_backend *xs_group_backend(size_t group)
{
	return xs_backend_of((uint8_t)(group / 4));
}

const char *xs_group_title(size_t group)
{
	const struct xs_backend *backend = xs_group_backend(group);

	return backend->by_type[0] ? backend->by_type[group % 4] : backend->label;
}
