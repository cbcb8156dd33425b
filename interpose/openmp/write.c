/*
 * From OpenMP's events to records: those of tasks that ITT has, too, so all that is made of tasks
 * is made of these.
 */
#include "openmp.h"
#include "task_record.h"

/* "OpenMP": what tells our ids from those that programs give to their own tasks. */
#define ID_WORD 0x504d6e65704full

static struct xs_id id_of(uint64_t task, enum omp_half half)
{
	return (struct xs_id){ { ID_WORD, task, (uint64_t)half } };
}

static __attribute__((noinline, cold)) void write_long(uint8_t kind, uint32_t name, uint64_t tick)
{
	enum xs_role role = kind == XS_BEGIN ? XS_ROLE_BEGIN : XS_ROLE_END;
	struct xs_event *event =
		xs_record_begin(sizeof(*event), kind, XS_SOURCE_NONE, 0, name, role);

	if (!event)
		return;
	event->tick = tick;
	xs_record_end(sizeof(*event));
}

void omp_begin(uint32_t name, uint64_t tick)
{
	if (__builtin_expect(!xs_is_open() || !xs_mark_at(XS_BEGIN, XS_SOURCE_NONE, name, tick), 0))
		write_long(XS_BEGIN, name, tick);
}

void omp_end(uint64_t tick)
{
	uint32_t domain = omp_domain();

	if (__builtin_expect(!xs_is_open() || !xs_mark_at(XS_END, XS_SOURCE_NONE, domain, tick), 0))
		write_long(XS_END, domain, tick);
}

void omp_number(const char *key, uint64_t value, uint64_t tick)
{
	enum { ARGS = sizeof(struct xs_arg) + 8, SIZE = sizeof(struct xs_args_record) + ARGS };
	uint32_t key_id = xs_name(key, 0);
	struct xs_args_record *record =
		xs_record_begin(SIZE, XS_ARGS, XS_SOURCE_NONE, 0, omp_domain(), XS_ROLE_WITHIN);
	struct xs_arg *arg;

	if (!record)
		return;
	record->event.tick = tick;
	record->id = (struct xs_id){ { 0 } };
	record->length = ARGS;
	record->reserved = 0;
	arg = (struct xs_arg *)(record + 1);
	*arg = (struct xs_arg){ .key = key_id, .count = 1, .type = XS_VALUE_U64 };
	__builtin_memcpy(arg + 1, &value, sizeof(value));
	xs_record_end(SIZE);
}

void omp_mark_created(uint32_t name, uint64_t task, uint64_t tick)
{
	struct xs_args_record *record = xs_record_begin(sizeof(*record), XS_INSTANT, XS_SOURCE_NONE,
							XS_SCOPE_THREAD, name, XS_ROLE_OTHER);

	if (!record)
		return;
	record->event.tick = tick;
	record->id = id_of(task, OMP_CREATED);
	record->length = 0;
	record->reserved = 0;
	xs_record_end(sizeof(*record));
}

static void write_pair(uint8_t kind, uint8_t flags, uint32_t name, struct xs_id id,
		       struct xs_id parent, uint64_t tick, enum xs_role role)
{
	struct xs_task_record *record =
		xs_record_begin(sizeof(*record), kind, XS_SOURCE_NONE, flags, name, role);

	if (!record)
		return;
	record->event.tick = tick;
	record->id = id;
	record->parent = parent;
	xs_record_end(sizeof(*record));
}

void omp_begin_task(uint32_t name, uint64_t task, uint64_t tick)
{
	write_pair(XS_TASK, 0, name, id_of(task, OMP_EXECUTED), id_of(task, OMP_CREATED), tick,
		   XS_ROLE_BEGIN);
}

void omp_relate(uint64_t from, uint64_t to)
{
	write_pair(XS_RELATION, XS_RELATION_PREDECESSOR_TO, omp_domain(), id_of(from, OMP_EXECUTED),
		   id_of(to, OMP_EXECUTED), xs_tick(xs_use_tsc), XS_ROLE_OTHER);
}
