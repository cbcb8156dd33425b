/*
 * Functions, arguments and types as the generator writes them, of every kind there is: the fuzzers'
 * records are about these.
 */
#include "functions.h"

struct pair {
	uint32_t kind, numbers[3];
	char name[8];
	double real;
};

static const struct xs_constant kinds[] = { { 0, "KIND_NONE" },
					    { 1, "KIND_ONE" },
					    { -1, "KIND_BAD" } };
static const struct xs_constant bits[] = {
	{ 1, "BIT_0" }, { 2, "BIT_1" }, { 0x80000000, "BIT_31" }, { 7, "BITS_LOW" }
};
static const struct xs_type hex = { XS_SHOW_HEX, 8, NULL, 0, NULL, 0 },
			    number = { XS_SHOW_UINT, 4, NULL, 0, NULL, 0 };
static const struct xs_type small = { XS_SHOW_INT, 1, NULL, 0, NULL, 0 },
			    real = { XS_SHOW_REAL, 8, NULL, 0, NULL, 0 };
static const struct xs_type single = { XS_SHOW_REAL, 4, NULL, 0, NULL, 0 },
			    text = { XS_SHOW_TEXT, 1, NULL, 0, NULL, 0 };
static const struct xs_type bytes = { XS_SHOW_BYTES, 1, NULL, 0, NULL, 0 },
			    uuid = { XS_SHOW_BYTES, 16, NULL, 0, NULL, 0 };
static const struct xs_type kind = { XS_SHOW_ENUM, 4, kinds, 3, NULL, 0 },
			    flags = { XS_SHOW_FLAGS, 8, bits, 4, NULL, 0 };
static const struct xs_field fields[] = {
	{ "kind", offsetof(struct pair, kind), 1, &kind },
	{ "numbers", offsetof(struct pair, numbers), 3, &number },
	{ "name", offsetof(struct pair, name), 8, &text },
	{ "real", offsetof(struct pair, real), 1, &real },
};
static const struct xs_type pair = { XS_SHOW_STRUCT, sizeof(struct pair), NULL, 0, fields, 4 };

static const struct xs_argument given[] = {
	{ "handle", "handle", &hex, NULL, 0, 0, 1, 0 },
	{ "name", "name", &hex, &text, 0, 0, 0, 0 },
	{ "kind", "kind", &kind, NULL, 0, 0, 0, 0 },
	{ "pPair", "Pair", &hex, &pair, 0, 0, 0, 0 },
	{ "list", "list", &hex, &hex, 0, 1, 0, 0 },
	{ "x", "x", &real, NULL, 0, 0, 0, 0 },
	{ "byValue", "byValue", NULL, NULL, 0, 0, 0, 0 },
};
static const struct xs_argument stored[] = {
	{ "flags", "flags", &flags, NULL, 0, 0, 0, 0 },
	{ "pCount", "Count", &hex, &number, 1, 0, 0, 7 },
	{ "pPairs", "Pairs", &hex, &pair, 1, 1, 0, 0 },
	{ "value", "value", &hex, &bytes, 1, 1, 0, 0 },
	{ "id", "id", &hex, &uuid, 1, 0, 0, 0 },
	{ "singles", "singles", &hex, &single, 0, 1, 0, 0 },
	{ "small", "small", &small, &small, 1, 1, 0, 0 },
};
static const struct xs_function functions[] = {
	{ given, 7, 7, XS_RETURNS_POINTER_AND_RESULT, 1, 2, 0 },
	{ stored, 7, 8, XS_RETURNS_RESULT, 1, 0, 0 },
	{ given, 7, 7, XS_RETURNS_POINTER, 1, 4, 1 },
	{ NULL, 0, 0, XS_RETURNS_NOTHING, 0, 0, 0 },
};

extern const struct xs_api xs_opencl_arguments, xs_level_zero_arguments, xs_cuda_arguments;
const struct xs_api xs_opencl_arguments = { functions, 4, &kind, false, NULL, 0 };
const struct xs_api xs_level_zero_arguments = { functions, 4, &kind, true, NULL, 0 };
const struct xs_api xs_cuda_arguments = { functions, 4, &kind, true, &kind, 2 };

extern const char *const xs_opencl_names[], *const xs_level_zero_names[], *const xs_cuda_names[];
extern const uint32_t xs_opencl_count, xs_level_zero_count, xs_cuda_count;
const char *const xs_opencl_names[4] = { "clOne", "clTwo", "clThree", "clFour" };
const char *const xs_level_zero_names[4] = { "zeOne", "zeTwo", "zeThree", "zeFour" };
const char *const xs_cuda_names[4] = { "(unknown kernel)", "memcpy", "memcpy HtoD", "memcpy DtoH" };
const uint32_t xs_opencl_count = 4, xs_level_zero_count = 4, xs_cuda_count = 4;
