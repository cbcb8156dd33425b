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

/* A place holds a pointer to the program's pointer to the function. */
typedef void (**nvtx_place)(void);

struct nvtx_callbacks {
	size_t size;
	int (*get_table)(int module, nvtx_place **ret_table, unsigned *ret_size);
};
#define NVTX_TABLE_OF_CALLBACKS 1u
typedef const void *nvtx_get_table(uint32_t id);

#endif
