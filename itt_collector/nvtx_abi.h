/*
 * The facts of NVTX's binary interface that a collector needs. They are stated here, so that its
 * ranges are shown wherever xstrace is built. Source: NVIDIA's NVTX 3 (nvtx3/nvToolsExt.h,
 * nvtx3/nvtxDetail/nvtxTypes.h), whose interface of injection is that of version 2, too.
 */
#ifndef XS_NVTX_ABI_H
#define XS_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* What a program says of a mark or range. */
struct nvtx_attributes {
	uint16_t version, size;
	uint32_t category; /* 0: none */
	int32_t color_type;
	uint32_t color;
	int32_t payload_type; /* enum nvtx_payload */
	int32_t reserved;
	union {
		uint64_t u64;
		int64_t s64;
		double d;
		uint32_t u32;
		int32_t s32;
		float f;
	} payload;
	int32_t message_type; /* enum nvtx_message */
	int32_t padding;
	union {
		const char *text;
		const wchar_t *wide;
		void *registered;
	} message;
};
_Static_assert(sizeof(struct nvtx_attributes) == 48, "as programs were compiled");

enum nvtx_payload {
	NVTX_U64 = 1,
	NVTX_S64,
	NVTX_DOUBLE,
	NVTX_U32,
	NVTX_S32,
	NVTX_FLOAT,
	NVTX_PAYLOADS,
};

enum nvtx_message { NVTX_TEXT = 1, NVTX_WIDE, NVTX_REGISTERED };

/* What a push or pop returns where nobody keeps count. */
#define NVTX_NO_PUSH_POP_TRACKING (-2)

/* Tables of the program's functions, and the places in them. */
enum nvtx_module { NVTX_CORE = 1, NVTX_CUDA = 2, NVTX_CUDART = 4, NVTX_CORE2 = 5 };

enum nvtx_core {
	NVTX_MARK_EX = 1,
	NVTX_MARK_A,
	NVTX_MARK_W,
	NVTX_START_EX,
	NVTX_START_A,
	NVTX_START_W,
	NVTX_END,
	NVTX_PUSH_EX,
	NVTX_PUSH_A,
	NVTX_PUSH_W,
	NVTX_POP,
	NVTX_CATEGORY_A,
	NVTX_CATEGORY_W,
	NVTX_THREAD_A,
	NVTX_THREAD_W,
	NVTX_CORE_SIZE,
};

enum nvtx_core2 {
	NVTX_DOMAIN_MARK = 1,
	NVTX_DOMAIN_START,
	NVTX_DOMAIN_END,
	NVTX_DOMAIN_PUSH,
	NVTX_DOMAIN_POP,
	NVTX_RESOURCE_CREATE,
	NVTX_RESOURCE_DESTROY,
	NVTX_DOMAIN_CATEGORY_A,
	NVTX_DOMAIN_CATEGORY_W,
	NVTX_REGISTER_A,
	NVTX_REGISTER_W,
	NVTX_DOMAIN_CREATE_A,
	NVTX_DOMAIN_CREATE_W,
	NVTX_DOMAIN_DESTROY,
	NVTX_INITIALIZE,
	NVTX_CORE2_SIZE,
};

/* Names of CUDA's objects: by the driver's handles, and by the runtime's. */
enum nvtx_cuda {
	NVTX_CU_DEVICE_A = 1,
	NVTX_CU_DEVICE_W,
	NVTX_CU_CONTEXT_A,
	NVTX_CU_CONTEXT_W,
	NVTX_CU_STREAM_A,
	NVTX_CU_STREAM_W,
	NVTX_CUDA_SIZE,
};

enum nvtx_cudart {
	NVTX_CUDA_DEVICE_A = 1,
	NVTX_CUDA_DEVICE_W,
	NVTX_CUDA_STREAM_A,
	NVTX_CUDA_STREAM_W,
	NVTX_CUDART_SIZE,
};

/* ---- version 3's extensions: a program hands over the slots of one at a time ---- */

#define NVTX_EXTENSION_OF_COUNTERS 4u
/* a slot is 0 while it is free, and 1 if it is to be left out */

struct nvtx_extension {
	uint16_t version, size, number, compatible;
	size_t segment_count;
	struct nvtx_segment {
		size_t number, count;
		intptr_t *slots;
	} *segments;
	void *get_export;
	const void *more;
};

enum nvtx_counters {
	NVTX_COUNTER_REGISTER,
	NVTX_COUNTER_INT64,
	NVTX_COUNTER_FLOAT64,
	NVTX_COUNTER_SAMPLE,
	NVTX_COUNTER_NO_VALUE,
	NVTX_COUNTERS_SIZE,
};

struct nvtx_counter {
	size_t size;
	uint64_t schema; /* enum nvtx_number, or a layout of the program's */
	const char *name, *description;
	uint64_t scope;
	const void *semantics;
	uint64_t id; /* that the program has chosen; 0: the tool is to */
};
#define NVTX_COUNTER_OF_TOOL (1ull << 32) /* the first id that a tool may give */

/* Why a sample has no value. */
#define NVTX_COUNTER_IS_ZERO 0u

/* What a value is, among NVTX's types of payload. */
enum nvtx_number {
	NVTX_NUMBER_CHAR = 1,
	NVTX_NUMBER_UCHAR,
	NVTX_NUMBER_SHORT,
	NVTX_NUMBER_USHORT,
	NVTX_NUMBER_INT,
	NVTX_NUMBER_UINT,
	NVTX_NUMBER_LONG,
	NVTX_NUMBER_ULONG,
	NVTX_NUMBER_LONGLONG,
	NVTX_NUMBER_ULONGLONG,
	NVTX_NUMBER_INT8,
	NVTX_NUMBER_UINT8,
	NVTX_NUMBER_INT16,
	NVTX_NUMBER_UINT16,
	NVTX_NUMBER_INT32,
	NVTX_NUMBER_UINT32,
	NVTX_NUMBER_INT64,
	NVTX_NUMBER_UINT64,
	NVTX_NUMBER_FLOAT,
	NVTX_NUMBER_DOUBLE,
	NVTX_NUMBER_SIZE = 22,
	NVTX_NUMBER_FLOAT32 = 43,
	NVTX_NUMBER_FLOAT64,
	NVTX_NUMBERS,
};

/* A place holds a pointer to the program's pointer to the function. */
typedef void (**nvtx_place)(void);

struct nvtx_callbacks {
	size_t size;
	int (*get_table)(int module, nvtx_place **ret_table, unsigned *ret_size);
};
#define NVTX_TABLE_OF_CALLBACKS 1u
typedef const void *nvtx_get_table(uint32_t id);

#endif
