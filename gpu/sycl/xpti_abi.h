/*
 * The facts of XPTI's binary interface that a subscriber needs. No Debian package carries the
 * headers, and they are C++. Source: xpti/xpti_data_types.h and xpti/xpti_trace_framework.h of
 * PyPI's intel-sycl-rt 2026.2, and libstdc++'s std::unordered_map. tests/clients/xpti_abi.cpp
 * compares.
 */
#ifndef XS_XPTI_ABI_H
#define XS_XPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* What a trace point says of its place in the program. */
struct xpti_payload {
	const char *name, *stack, *file;
	uint32_t line, column;
	const void *code;
	uint64_t internal, flags;
};

/* A node of libstdc++'s unordered_map<uint32_t, int32_t>: small keys have no hash beside them. */
struct xpti_entry {
	const struct xpti_entry *next;
	uint32_t key;  /* id of a string */
	int32_t value; /* id of an object */
};

struct xpti_metadata {
	const void *buckets;
	size_t bucket_count;
	const struct xpti_entry *first;
	size_t count;
	uint64_t policy[2];
	const void *single;
};

struct xpti_event {
	uint64_t id, data, instance;
	uint16_t type, activity;
	uint32_t unused;
	uint64_t source, target;
	const struct xpti_payload *payload;
	struct xpti_metadata metadata;
	void *user;
};
_Static_assert(offsetof(struct xpti_event, user) == 112, "as the framework was compiled");

struct xpti_object {
	size_t size;
	const char *data;
	uint8_t type;
};

/* What comes with a call of a function of the Unified Runtime. */
struct xpti_function {
	uint32_t id;
	const char *name;
	void *const *args; /* the address of each */
	const int32_t *result;
	void *user;
};

/* What comes with memory of a buffer. */
struct xpti_memory {
	uintptr_t handle, pointer;
	size_t size, guard;
};

struct xpti_buffer {
	uintptr_t user, host;
	const char *element_type;
	uint32_t element_size, dimensions;
	size_t range[3];
};

/* std::optional<uint32_t> */
struct xpti_maybe {
	uint32_t value;
	uint8_t there; /* 0: not */
};

struct xpti_image {
	uintptr_t user, host;
	uint32_t dimensions;
	size_t range[3];
	uint32_t format;
	struct xpti_maybe addressing, normalized, filtering; /* of a sampled one */
};

struct xpti_image_accessor {
	uintptr_t image, accessor;
	struct xpti_maybe target, mode;
};

struct xpti_accessor {
	uintptr_t buffer, accessor;
	uint32_t target, mode;
};

#define XPTI_BEGIN(number) ((number) << 1)
#define XPTI_END(number)   ((number) << 1 | 1)
/* Kinds of trace points: the number of each, for XPTI_BEGIN and XPTI_END. */
enum xpti_point {
	XPTI_GRAPH = 1,
	XPTI_NODE = 2,
	XPTI_EDGE = 3,
	XPTI_TASK = 5,
	XPTI_BARRIER = 6,
	XPTI_WAIT = 11,
	XPTI_FUNCTION = 12,
	XPTI_FUNCTION_WITH_ARGS = 14,
	XPTI_ALLOC = 16,
	XPTI_RELEASE = 17,
	XPTI_MEMORY_OBJECT = 18,
	XPTI_ACCESSOR = 20,
	XPTI_QUEUE = 21,
	XPTI_DIAGNOSTICS = 63,
};

typedef void xpti_callback(uint16_t type, const struct xpti_event *parent,
			   const struct xpti_event *event, uint64_t instance, const void *data);

/* The framework's functions, by name. */
typedef uint8_t xpti_register_stream(const char *name);
typedef int32_t xpti_register_callback(uint8_t stream, uint16_t type, xpti_callback *callback);
typedef uint32_t xpti_register_string(const char *text, char **ret_text);
typedef struct xpti_object xpti_lookup_object(int32_t id);

#endif
