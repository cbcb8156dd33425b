/* Where a file of packets can be cut: read back from what was written, as the disk took it. */
#include "perfetto.h"
#include "perfetto_fields.h"

/* Bytes that are read, and the end of all. */
struct rest {
	const unsigned char *at, *end;
};

static bool take(struct rest *rest, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; rest->at < rest->end && shift < 64; shift += 7) {
		*ret |= (uint64_t)(*rest->at & 127) << shift;
		if (!(*rest->at++ & 128))
			return true;
	}
	return false;
}

/* The next field: its number, and its value or bytes. False: there is no whole one. */
static bool next(struct rest *rest, uint64_t *ret_field, uint64_t *ret_value,
		 struct rest *ret_bytes)
{
	uint64_t key, length;

	if (!take(rest, &key))
		return false;
	*ret_field = key >> 3;
	switch (key & 7) {
	case 0:
		return take(rest, ret_value);
	case 1: /* doubles */
		length = 8;
		break;
	case 2:
		if (!take(rest, &length))
			return false;
		break;
	default:
		return false;
	}
	if (length > (uint64_t)(rest->end - rest->at))
		return false;
	*ret_bytes = (struct rest){ rest->at, rest->at + length };
	rest->at += length;
	return true;
}

static bool is_begin(struct rest packet)
{
	struct rest bytes, event = { 0 };
	uint64_t field, value;

	while (next(&packet, &field, &value, &bytes))
		if (field == PACKET_TRACK_EVENT)
			event = bytes;
	while (next(&event, &field, &value, &bytes))
		if (field == EVENT_TYPE)
			return value == TYPE_BEGIN;
	return false;
}

size_t xs_perfetto_whole(const char *data, size_t length)
{
	const unsigned char *begin = (const unsigned char *)data;
	struct rest rest = { begin, begin + length }, packet;
	uint64_t field, value;
	size_t found = 0;

	while (next(&rest, &field, &value, &packet))
		if (field != TRACE_PACKET || !is_begin(packet))
			found = (size_t)(rest.at - begin);
	return found;
}
