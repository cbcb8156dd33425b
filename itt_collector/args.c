/*
 * Records that carry arguments, and records with ids.
 */
#include "itt.h"

#include <string.h>

static size_t size_of(uint32_t type)
{
	static const uint8_t sizes[] = {
		[XS_VALUE_U64] = 8,    [XS_VALUE_S64] = 8,   [XS_VALUE_U32] = 4,    [XS_VALUE_S32] = 4,
		[XS_VALUE_U16] = 2,    [XS_VALUE_S16] = 2,   [XS_VALUE_FLOAT] = 4,  [XS_VALUE_DOUBLE] = 8,
		[XS_VALUE_TEXT] = 1,   [XS_VALUE_POINTER] = 8,
	};

	return type < sizeof(sizes) ? sizes[type] : 0;
}

void itt_arg(struct itt_args *args, uint32_t key, uint32_t type, const void *values, size_t count)
{
	size_t size = size_of(type), room;
	struct xs_arg arg = { .key = key, .type = (uint8_t)type };

	if (args->length + sizeof(arg) + 8 > sizeof(args->data))
		return;
	room = sizeof(args->data) - args->length - sizeof(arg);
	if (!size || !values)
		count = 0;
	if (size && count > room / size) {
		count = room / size;
		arg.cut = 1;
	}
	arg.count = (uint16_t)count;
	memcpy(args->data + args->length, &arg, sizeof(arg));
	args->length += (uint32_t)sizeof(arg);
	if (count)
		memcpy(args->data + args->length, values, count * size);
	args->length += (uint32_t)((count * size + 7) & ~(size_t)7);
}

void itt_arg_text(struct itt_args *args, const char *key, const char *text)
{
	if (text)
		itt_arg(args, xs_name(key, 0), XS_VALUE_TEXT, text, strnlen(text, sizeof(args->data)));
}

void itt_arg_number(struct itt_args *args, const char *key, uint64_t number)
{
	itt_arg(args, xs_name(key, 0), XS_VALUE_U64, &number, 1);
}

void itt_arg_address(struct itt_args *args, const char *key, const void *address)
{
	itt_arg(args, xs_name(key, 0), XS_VALUE_POINTER, &address, 1);
}

void itt_write(uint8_t kind, uint8_t flags, uint32_t name, struct xs_id id, const struct itt_args *args, uint64_t tick)
{
	uint32_t length = args ? args->length : 0;
	uint32_t size = (uint32_t)(sizeof(struct xs_args_record) + length + 15) & ~15u;
	struct xs_args_record *record = xs_record_begin(size, kind, XS_SOURCE_ITT, flags, name, XS_ROLE_OTHER);

	if (!record)
		return;
	record->event.tick = tick ? tick : xs_tick(xs_use_tsc);
	record->id = id;
	record->length = length;
	record->reserved = 0;
	if (length)
		memcpy(record + 1, args->data, length);
	xs_record_end(size);
}

void itt_instant(uint8_t scope, const char *name, const struct itt_args *args)
{
	itt_write(XS_INSTANT, scope, xs_name(name, 0), (struct xs_id){ { 0, 0, 0 } }, args, 0);
}

void itt_keyed(uint8_t kind, uint8_t flags, uint32_t name, struct xs_id id, struct xs_id parent, uint64_t tick, enum xs_role role)
{
	bool end = kind == XS_CLOSE || kind == XS_RELATION;
	uint64_t now = end ? xs_tick(xs_use_tsc) : 0;
	bool bare = (kind == XS_OPEN || kind == XS_CLOSE) && itt_is_null(id) && itt_is_null(parent);
	uint32_t size = bare ? sizeof(struct xs_event) : sizeof(struct xs_task_record);
	struct xs_task_record *record = xs_record_begin(size, kind, XS_SOURCE_ITT, flags, name, role);

	if (!record)
		return;
	if (!bare) {
		record->id = id;
		record->parent = parent;
	}
	record->event.tick = tick ? tick : end ? now : xs_tick(xs_use_tsc);
	xs_record_end(size);
}
