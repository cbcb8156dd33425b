#include "annotate.h"

#include "map.h"
#include "perfetto_fields.h"

static void put_key(struct xm_annotator *a, struct xm_text key)
{
	struct xm_text quoted = { key.p - 1, key.n + 2 };
	size_t n = xm_unescape(quoted, a->text, sizeof(a->text));
	uint32_t number = a->key(a->user, a->text, n);

	if (number == XM_NONE)
		xm_proto_bytes(a->out, ANNOTATION_NAME, a->text, n);
	else
		xm_proto_uint(a->out, ANNOTATION_NAME_IID, number + 1);
}

static void put_value(struct xm_annotator *a, struct xm_text value)
{
	const char *at = value.p + 1, *end = value.p + value.n;
	struct xm_text key, member;
	int64_t number;

	switch (value.p[0]) {
	case '{':
		while (xm_member(&at, end, &key, &member))
			xm_annotate(a, ANNOTATION_DICT, key, member);
		break;
	case '[':
		while (xm_element(&at, end, &member))
			xm_annotate(a, ANNOTATION_ARRAY, (struct xm_text){ 0 }, member);
		break;
	case '"':
		xm_proto_bytes(a->out, ANNOTATION_STRING, a->text,
			       xm_unescape(value, a->text, sizeof(a->text)));
		break;
	case 't':
	case 'f':
		xm_proto_uint(a->out, ANNOTATION_BOOL, value.p[0] == 't');
		break;
	case 'n':
		xm_proto_bytes(a->out, ANNOTATION_STRING, "null", 4);
		break;
	default:
		if (xm_integer(value, &number))
			xm_proto_uint(a->out, ANNOTATION_INT, (uint64_t)number);
		else
			xm_proto_double(a->out, ANNOTATION_DOUBLE, strtod(value.p, NULL));
	}
}

void xm_annotate(struct xm_annotator *a, uint32_t field, struct xm_text key, struct xm_text value)
{
	size_t begin = xm_proto_begin(a->out, field);

	if (key.p)
		put_key(a, key);
	put_value(a, value);
	xm_proto_end(a->out, begin);
}

void xm_annotate_all(struct xm_annotator *a, struct xm_text object)
{
	const char *at = xm_first(object);
	struct xm_text key, value;

	if (object.n < 2 || object.p[0] != '{')
		return;
	while (xm_member(&at, object.p + object.n, &key, &value))
		xm_annotate(a, EVENT_ANNOTATIONS, key, value);
}
