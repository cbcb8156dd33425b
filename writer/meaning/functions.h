/*
 * What is known of an API's functions, arguments and types: tables that are generated from its
 * headers (interpose/arguments.py).
 */
#ifndef XS_FUNCTIONS_H
#define XS_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xs_show {
	XS_SHOW_HEX, /* handles and pointers too */
	XS_SHOW_UINT,
	XS_SHOW_INT,
	XS_SHOW_REAL,
	XS_SHOW_ENUM,
	XS_SHOW_FLAGS,
	XS_SHOW_TEXT,
	XS_SHOW_BYTES,
	XS_SHOW_STRUCT,
};

struct xs_constant {
	int64_t value;
	const char *name;
};

struct xs_field;

struct xs_type {
	enum xs_show show;
	uint32_t size;
	const struct xs_constant *constants;
	uint32_t constant_count;
	const struct xs_field *fields;
	uint32_t field_count;
};

struct xs_field {
	const char *name;
	uint32_t offset, count;
	const struct xs_type *type;
};

struct xs_argument {
	const char *name;
	const char *value_name;	       /* of what it points to */
	const struct xs_type *type;    /* NULL: passed as a struct, not recorded */
	const struct xs_type *pointee; /* NULL: not recorded */
	uint8_t out;		       /* it is written by the call */
	uint8_t array;
	uint8_t named; /* its handle may have a name */
	/*
	 * place of the word that says what the number that it points to was before the call; 0:
	 * none does
	 */
	uint8_t before;
};

enum xs_returns {
	XS_RETURNS_NOTHING,
	XS_RETURNS_RESULT,
	XS_RETURNS_POINTER,
	XS_RETURNS_POINTER_AND_RESULT
};

struct xs_function {
	const struct xs_argument *arguments;
	uint32_t count;
	uint32_t words; /* in its XS_CALL_IN */
	enum xs_returns returns;
	uint8_t values; /* an XS_CALL_OUT follows its XS_CALL */
	uint8_t names;	/* number, from 1, of the argument whose text names a handle; 0: none */
	uint8_t handle; /* of the argument that gives the handle; 0: the result */
};

struct xs_api {
	const struct xs_function *functions;
	uint32_t count;
	const struct xs_type *result;
	bool hexadecimal; /* how results and counts are written */
	/* what functions from number later_from on return; NULL: the same */
	const struct xs_type *later_result;
	uint32_t later_from;
};

#endif
