/*
 * Records of tasks, spans, marks and counters, as ITT's are (itt_collector/args.c): the drain
 * process shows both alike.
 */
#include <string.h>

#include "sycl.h"
#include "task_record.h"

#define ARGS_MAX  (XS_RECORD_MAX - sizeof(struct xs_args_record))
#define TEXT_KEPT 256u

bool sycl_args_begin_in(uintptr_t mark, struct sycl_args *args, uint8_t kind, uint32_t name)
{
	args->record = xs_record_begin_in(mark, XS_RECORD_MAX, kind, XS_SOURCE_UR, 0, name,
					  kind == XS_ARGS ? XS_ROLE_WITHIN : XS_ROLE_OTHER);
	args->length = 0;
	if (!args->record)
		return false;
	args->record->id = (struct xs_id){ { 0, 0, 0 } };
	args->record->reserved = 0;
	return true;
}

void sycl_args_end(struct sycl_args *args)
{
	uint32_t size = (uint32_t)(sizeof(*args->record) + args->length + 15) & ~15u;

	/* what the next two records will take */
	xs_own_ahead(args->record);
	xs_own_ahead((char *)args->record + 64);
	args->record->event.tick = xs_tick(xs_use_tsc);
	args->record->event.words = (uint8_t)(size / 8);
	args->record->length = args->length;
	xs_record_end(size);
}

/* Texts are short: a string instruction, which compilers take for this, would need longer to start.
 */
static void copy(char *to, const char *from, uint32_t bytes)
{
	for (; bytes >= 8; bytes -= 8, to += 8, from += 8)
		memcpy(to, from, 8);
	for (; bytes; bytes--) {
		*to++ = *from++;
		__asm__ volatile("" : : : "memory");
	}
}

static void put(struct sycl_args *args, uint32_t key, uint8_t type, const void *data,
		uint32_t count, uint32_t bytes, bool cut)
{
	struct xs_arg *arg = (struct xs_arg *)((char *)(args->record + 1) + args->length);

	if (__builtin_expect(args->length + sizeof(*arg) + bytes + 8 > ARGS_MAX, 0))
		return;
	*arg = (struct xs_arg){ .key = key, .type = type, .cut = cut, .count = (uint16_t)count };
	copy((char *)(arg + 1), data, bytes);
	args->length += (uint32_t)sizeof(*arg) + ((bytes + 7) & ~7u);
}

void sycl_arg_number(struct sycl_args *args, uint32_t key, uint64_t number)
{
	put(args, key, XS_VALUE_U64, &number, 1, sizeof(number), false);
}

static void put_text(struct sycl_args *args, uint32_t key, const char *text, uint32_t length)
{
	uint32_t kept = length < TEXT_KEPT ? length : TEXT_KEPT;

	put(args, key, XS_VALUE_TEXT, text, kept, kept, length > TEXT_KEPT);
}

void sycl_arg_text(struct sycl_args *args, uint32_t key, const char *text)
{
	if (text)
		put_text(args, key, text, (uint32_t)strnlen(text, TEXT_KEPT + 1));
}

void sycl_arg_name(struct sycl_args *args, uint32_t key, uint32_t name)
{
	struct xs_part text = xs_text_of_name(name);

	if (text.length)
		put_text(args, key, text.text, text.length);
}

void sycl_begin(uint32_t name)
{
	struct xs_event *event;

	if (xs_mark(XS_BEGIN, XS_SOURCE_UR, name))
		return;
	event = xs_record_begin(sizeof(*event), XS_BEGIN, XS_SOURCE_UR, 0, name, XS_ROLE_BEGIN);
	if (event) {
		event->tick = xs_tick(xs_use_tsc);
		xs_record_end(sizeof(*event));
	}
}

void sycl_end(void)
{
	uint32_t domain = sycl_domain();
	struct xs_event *event;

	if (xs_mark(XS_END, XS_SOURCE_UR, domain))
		return;
	event = xs_record_begin(sizeof(*event), XS_END, XS_SOURCE_UR, 0, domain, XS_ROLE_END);
	if (event) {
		event->tick = xs_tick(xs_use_tsc);
		xs_record_end(sizeof(*event));
	}
}

void sycl_counter(uint32_t name, uint64_t value)
{
	struct xs_counter_record *record = xs_record_begin(sizeof(*record), XS_COUNTER,
							   XS_SOURCE_UR, XS_VALUE_U64, name,
							   XS_ROLE_OTHER);

	if (!record)
		return;
	record->value.u = value;
	record->reserved = 0;
	record->event.tick = xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*record));
}

void sycl_keyed(uint8_t kind, uint8_t flags, uint32_t name, struct xs_id id, struct xs_id parent,
		uint64_t tick)
{
	struct xs_task_record *record =
		xs_record_begin(sizeof(*record), kind, XS_SOURCE_UR, flags, name,
				kind == XS_TASK ? XS_ROLE_BEGIN : XS_ROLE_OTHER);

	if (!record)
		return;
	xs_own_ahead(record);
	record->id = id;
	record->parent = parent;
	record->event.tick = tick ? tick : xs_tick(xs_use_tsc);
	xs_record_end(sizeof(*record));
}
