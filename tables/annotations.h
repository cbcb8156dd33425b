/*
 * Debug annotations of Perfetto's events as members of JSON's objects.
 */
#ifndef XT_ANNOTATIONS_H
#define XT_ANNOTATIONS_H

#include "proto.h"
#include "scan.h"
#include "wire.h"

/* Strings of JSON, by number; {NULL, 0}: none was told. */
struct xt_texts {
	struct xf_text *list;
	uint32_t room;
};

/* A text as a string of JSON. What no room is found for is known from `failed`. */
void xt_json_string(struct xf_proto *out, const char *text, size_t n);
/* "key":value of an annotation; keys: what numbers of keys mean. NULL, or what is wrong. */
const char *xt_json_annotation(struct xf_proto *out, struct xt_message annotation,
			       const struct xt_texts *keys, unsigned depth);

#endif
