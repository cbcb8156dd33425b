/*
 * Records that carry arguments, and records with ids.
 */
#include "itt.h"
#include "task_record.h"

#include <string.h>

static size_t size_of(uint32_t type)
{
	static const uint8_t sizes[] = {
		[XS_VALUE_U64] = 8,	[XS_VALUE_S64] = 8,    [XS_VALUE_U32] = 4,
		[XS_VALUE_S32] = 4,	[XS_VALUE_U16] = 2,    [XS_VALUE_S16] = 2,
		[XS_VALUE_FLOAT] = 4,	[XS_VALUE_DOUBLE] = 8, [XS_VALUE_TEXT] = 1,
		[XS_VALUE_POINTER] = 8,
	};

	return type < sizeof(sizes) ? sizes[type] : 0;
}

bool itt_args_begin_in(uintptr_t mark, struct itt_args *args, uint8_t kind, uint8_t flags,
		       uint32_t name, struct xs_id id)
{
	bool within = kind == XS_ARGS && itt_is_null(id);

	args->record = xs_record_begin_in(mark, XS_RECORD_MAX, kind, XS_SOURCE_ITT, flags, name,
					  within ? XS_ROLE_WITHIN : XS_ROLE_OTHER);
	args->length = 0;
	if (!args->record)
		return false;
	args->record->id = id;
	args->record->reserved = 0;
	return true;
}

void itt_args_end(struct itt_args *args, uint64_t tick)
{
	uint32_t size = (uint32_t)(sizeof(*args->record) + args->length + 15) & ~15u;

	args->record->event.tick = tick ? tick : xs_tick(xs_use_tsc);
	args->record->event.words = (uint8_t)(size / 8);
	args->record->length = args->length;
	xs_record_end(size);
}

/* The argument's head, if there is room for it and some of its values. */
static struct xs_arg *next(struct itt_args *args, size_t *ret_room)
{
	struct xs_arg *arg = (struct xs_arg *)((char *)(args->record + 1) + args->length);

	if (args->length + sizeof(*arg) + 8 > ITT_ARGS_MAX)
		return NULL;
	*ret_room = ITT_ARGS_MAX - args->length - sizeof(*arg);
	return arg;
}

void itt_arg(struct itt_args *args, uint32_t key, uint32_t type, const void *values, size_t count)
{
	size_t size = size_of(type), room;
	struct xs_arg *arg = next(args, &room);
	bool cut = false;

	if (!arg)
		return;
	if (!size || !values)
		count = 0;
	if (size && count > room / size) {
		count = room / size;
		cut = true;
	}
	*arg = (struct xs_arg){
		.key = key, .type = (uint8_t)type, .cut = cut, .count = (uint16_t)count
	};
	if (count)
		memcpy(arg + 1, values, count * size);
	args->length += (uint32_t)(sizeof(*arg) + ((count * size + 7) & ~(size_t)7));
}

char *itt_arg_open(struct itt_args *args, uint32_t key, size_t *ret_room)
{
	struct xs_arg *arg = next(args, ret_room);

	if (!arg)
		return NULL;
	*arg = (struct xs_arg){ .key = key, .type = XS_VALUE_TEXT };
	return (char *)(arg + 1);
}

void itt_arg_written(struct itt_args *args, size_t length, bool cut)
{
	struct xs_arg *arg = (struct xs_arg *)((char *)(args->record + 1) + args->length);

	arg->cut = cut;
	arg->count = (uint16_t)length;
	args->length += (uint32_t)(sizeof(*arg) + ((length + 7) & ~(size_t)7));
}

void itt_arg_text(struct itt_args *args, const char *key, const char *text)
{
	if (text)
		itt_arg(args, xs_name(key, 0), XS_VALUE_TEXT, text, strnlen(text, ITT_ARGS_MAX));
}

void itt_arg_number(struct itt_args *args, const char *key, uint64_t number)
{
	itt_arg(args, xs_name(key, 0), XS_VALUE_U64, &number, 1);
}

void itt_arg_address(struct itt_args *args, const char *key, const void *address)
{
	itt_arg(args, xs_name(key, 0), XS_VALUE_POINTER, &address, 1);
}

void itt_write(uint8_t kind, uint8_t flags, uint32_t name, struct xs_id id, uint64_t tick)
{
	struct xs_args_record *record =
		xs_record_begin(sizeof(*record), kind, XS_SOURCE_ITT, flags, name, XS_ROLE_OTHER);

	if (!record)
		return;
	record->event.tick = tick ? tick : xs_tick(xs_use_tsc);
	record->id = id;
	record->length = 0;
	record->reserved = 0;
	xs_record_end(sizeof(*record));
}

void itt_keyed(uint8_t kind, uint8_t flags, uint32_t name, struct xs_id id, struct xs_id parent,
	       uint64_t tick, enum xs_role role)
{
	bool end = kind == XS_CLOSE || kind == XS_RELATION;
	uint64_t now = end ? xs_tick(xs_use_tsc) : 0;
	bool bare = (kind == XS_OPEN || kind == XS_CLOSE) && itt_is_null(id) && itt_is_null(parent);
	uint32_t size = bare ? sizeof(struct xs_event) : sizeof(struct xs_task_record);
	struct xs_task_record *record =
		xs_record_begin(size, kind, XS_SOURCE_ITT, flags, name, role);

	if (!record)
		return;
	if (!bare) {
		record->id = id;
		record->parent = parent;
	}
	record->event.tick = tick ? tick : end ? now : xs_tick(xs_use_tsc);
	xs_record_end(size);
}
