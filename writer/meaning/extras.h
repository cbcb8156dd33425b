/*
 * What tasks have that are not plain: ids, arguments, times by clocks of the application.
 */
#ifndef XS_EXTRAS_H
#define XS_EXTRAS_H

#include <stdbool.h>
#include <string.h>

#include "cpu_events.h"
#include "task_record.h"
#include "track.h"

/* A time by a clock of the application's: struct xs_own_time_record. */
struct xs_own_time {
	uint64_t tick, ns; /* tick 0: none */
	uint32_t clock;
	uint8_t placed; /* by what; 0: not at all */
};

/* What processors have counted: up to a time, or in a time. */
struct xs_counted {
	uint32_t known;		   /* a bit for each event that was counted (cpu_events.h) */
	uint64_t enabled, running; /* ns that the hardware was to count, and did */
	uint64_t value[XS_CPU_EVENTS];
};

/* Instructions per cycle; false: one of both was not counted, or nothing was. */
static inline bool xs_counted_ipc(const struct xs_counted *counted, double *ret)
{
	const uint32_t both = XS_CPU_BIT(XS_CPU_CYCLES) | XS_CPU_BIT(XS_CPU_INSTRUCTIONS);

	if ((counted->known & both) != both || !counted->value[XS_CPU_CYCLES])
		return false;
	*ret = (double)counted->value[XS_CPU_INSTRUCTIONS] / (double)counted->value[XS_CPU_CYCLES];
	return true;
}

/* What few tasks have. */
struct xs_extra {
	struct xs_extra *next; /* unused ones */
	struct xs_id id;
	/* of this very slice, for arrows: the application's ids may come again; 0: none */
	uint64_t self;
	/* struct xs_arg …, in the order in which they were given: xs_args_next() */
	unsigned char *args;
	uint32_t length, room;
	bool cut; /* there were more arguments than are kept */
	/* it began before something that is shown already: not on the thread's own track */
	bool displaced;
	bool cancelled; /* a wait */
	bool moved;	/* a frame: the nearest place that can be, not what the program said */
	bool unplaced;	/* where it lies is arbitrary, not how long it is */
	struct xs_own_time began;
	struct xs_counted counted; /* up to its begin; once it has ended: by it */
};

static inline bool xs_id_is_null(const struct xs_id *id)
{
	return !(id->word[0] | id->word[1] | id->word[2]);
}

/* The id of one span, which nobody else has; self: as in struct xs_extra. */
static inline struct xs_id xs_id_of_self(uint64_t self)
{
	return (struct xs_id){ { UINT64_MAX, self, UINT64_MAX } };
}

static inline bool xs_id_is_self(const struct xs_id *id)
{
	return id->word[0] == UINT64_MAX && id->word[2] == UINT64_MAX;
}

/* The size of one value of an argument, in bytes; 0: no such type. */
static inline size_t xs_value_size(uint8_t type)
{
	static const uint8_t sizes[] = {
		[XS_VALUE_U64] = 8,	[XS_VALUE_S64] = 8,  [XS_VALUE_DOUBLE] = 8,
		[XS_VALUE_POINTER] = 8, [XS_VALUE_U32] = 4,  [XS_VALUE_S32] = 4,
		[XS_VALUE_FLOAT] = 4,	[XS_VALUE_U16] = 2,  [XS_VALUE_S16] = 2,
		[XS_VALUE_TEXT] = 1,	[XS_VALUE_JSON] = 1,
	};

	return type < sizeof(sizes) ? sizes[type] : 0;
}

/*
 * The argument at *at, which is moved behind it, and its values. False: there is none, or what is
 * there cannot be one (of a hostile process, or a newer collector).
 */
static inline bool xs_args_next(const unsigned char *args, uint32_t length, uint32_t *at,
				struct xs_arg *ret, const unsigned char **ret_values)
{
	size_t size, bytes;

	if (*at + sizeof(*ret) > length)
		return false;
	memcpy(ret, args + *at, sizeof(*ret));
	size = xs_value_size(ret->type);
	bytes = ret->count * size;
	if (!size || bytes > length - *at - sizeof(*ret))
		return false;
	*ret_values = args + *at + sizeof(*ret);
	*at += (uint32_t)(sizeof(*ret) + ((bytes + 7) & ~(size_t)7));
	return true;
}

/* The task's; made if it has none yet. NULL: no memory. */
struct xs_extra *xs_extra_of(struct xs_process *process, struct xs_open *task);
void xs_extra_drop(struct xs_process *process, struct xs_open *task);
/* The id of this very slice. False: no memory. */
bool xs_extra_self(struct xs_process *process, struct xs_open *task, struct xs_id *ret);
/* More arguments for the task: `length` bytes behind the record. */
void xs_extra_add_args(struct xs_process *process, struct xs_open *task,
		       const struct xs_args_record *record, uint32_t length);
/* Those of `from` go behind those of the task. */
void xs_extra_move_args(struct xs_process *process, struct xs_open *task, struct xs_open *from);
/* The task's own id. */
void xs_extra_set_id(struct xs_process *process, struct xs_open *task, const struct xs_id *id);
/* The process has ended, and no task has any. */
void xs_extras_free(struct xs_process *process);

#endif
