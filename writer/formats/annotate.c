#include "annotate.h"

#include "map.h"
#include "perfetto_fields.h"

static void put_key(struct xf_annotator *a, struct xf_text key)
{
	struct xf_text quoted = { key.p - 1, key.n + 2 };
	size_t n = xf_unescape(quoted, a->text, sizeof(a->text));
	uint32_t number = a->key(a->user, a->text, n);

	if (number == XF_NONE)
		xf_proto_bytes(a->out, ANNOTATION_NAME, a->text, n);
	else
		xf_proto_uint(a->out, ANNOTATION_NAME_IID, number + 1);
}

static void put_value(struct xf_annotator *a, struct xf_text value)
{
	const char *at = value.p + 1, *end = value.p + value.n;
	struct xf_text key, member;
	uint64_t number;
	int64_t integer;

	switch (value.p[0]) {
	case '{':
		while (xf_member(&at, end, &key, &member))
			xf_annotate(a, ANNOTATION_DICT, key, member);
		break;
	case '[':
		while (xf_element(&at, end, &member))
			xf_annotate(a, ANNOTATION_ARRAY, (struct xf_text){ 0 }, member);
		break;
	case '"':
		xf_proto_bytes(a->out, ANNOTATION_STRING, a->text,
			       xf_unescape(value, a->text, sizeof(a->text)));
		break;
	case 't':
	case 'f':
		xf_proto_uint(a->out, ANNOTATION_BOOL, value.p[0] == 't');
		break;
	case 'n':
		xf_proto_bytes(a->out, ANNOTATION_STRING, "null", 4);
		break;
	default:
		if (xf_integer(value, &integer))
			xf_proto_uint(a->out, ANNOTATION_INT, (uint64_t)integer);
		else if (xf_unsigned(value, &number))
			xf_proto_uint(a->out, ANNOTATION_UINT, number);
		else
			xf_proto_double(a->out, ANNOTATION_DOUBLE, strtod(value.p, NULL));
	}
}

void xf_annotate(struct xf_annotator *a, uint32_t field, struct xf_text key, struct xf_text value)
{
	size_t begin = xf_proto_begin(a->out, field);

	if (key.p)
		put_key(a, key);
	put_value(a, value);
	xf_proto_end(a->out, begin);
}

void xf_annotate_all(struct xf_annotator *a, struct xf_text object)
{
	const char *at = xf_first(object);
	struct xf_text key, value;

	if (object.n < 2 || object.p[0] != '{')
		return;
	while (xf_member(&at, object.p + object.n, &key, &value))
		xf_annotate(a, EVENT_ANNOTATIONS, key, value);
}

void xf_put_counter_value(struct xf_proto *out, struct xf_text value)
{
	int64_t integer;

	if (xf_integer(value, &integer))
		xf_proto_uint(out, EVENT_VALUE, (uint64_t)integer);
	else
		xf_proto_double(out, EVENT_DOUBLE_VALUE, strtod(value.p, NULL));
}
