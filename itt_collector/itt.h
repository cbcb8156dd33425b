/*
 * The parts of the ITT collector: what a program's static ittnotify calls once INTEL_LIBITTNOTIFY64
 * names this library.
 *
 * A process may hold several copies of the static part, in plug-ins that come and go: nothing of
 * theirs is kept. Domains, handles and the like are ours and live as long as the process; those
 * that a static part made before it found us get their ids on first use. docs/ITT.md says what each
 * entry point becomes.
 */
#ifndef XS_ITT_H
#define XS_ITT_H

#include "collector.h"
#include "itt_abi.h"
#include "task_record.h"

#define EXPORT __attribute__((visibility("default")))
/*
 * entry points are called through tables and by name only: no other file has a use for their
 * prototypes
 */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* ---- names.c: objects by name, and interned names ---- */

struct itt_entry {
	uint32_t hash, length;
	const char *name; /* behind the payload */
};

/*
 * Name -> object, for the life of the process. Lookup takes no lock and nothing is removed; a lost
 * race of two inserts costs one object. Past three quarters of the slots, or without memory, every
 * name gets the one spare object.
 */
struct itt_table {
	struct xs_table *slots; /* _Atomic(struct itt_entry *) each */
	uint32_t size;		/* power of two */
	uint32_t payload;
	void (*init)(void *payload, const char *name);
	_Atomic uint32_t count;
	_Atomic(struct itt_entry *) spare;
};
#define ITT_TABLE_OF(linkage, name, entries, type, function)                                       \
	XS_TABLE(name##_slots, (entries) * sizeof(_Atomic(struct itt_entry *)));                   \
	linkage struct itt_table name = {                                                          \
		.slots = &name##_slots, .size = entries, .payload = sizeof(type), .init = function \
	}
#define ITT_TABLE(name, entries, type, function) ITT_TABLE_OF(static, name, entries, type, function)
extern struct itt_table itt_handles; /* string handles */

/* The object of a name (NULL: "(no name)"); NULL only when there is no memory at all. */
void *itt_object(struct itt_table *table, const char *name);
/* The same, of a text of `length` bytes at most. */
void *itt_object_of(struct itt_table *table, const char *text, size_t length);
/* The same, of "domain::name", and of "first separator second". */
void *itt_object_in(struct itt_table *table, const char *domain, const char *name);
void *itt_object_joined(struct itt_table *table, const char *first, const char *separator,
			const char *second);

/*
 * What a task is called: the id of "domain::handle", for one domain. Immutable once it can be seen,
 * but for the counter.
 */
struct itt_name {
	uint32_t domain, id;
	const __itt_string_handle *handle;
	struct itt_name *next;	/* of the handle's list */
	_Atomic uint64_t value; /* of counter_inc_v3 and its like */
};

/* Interned name of the domain. A domain that the options do not want is disabled here. */
uint32_t itt_domain_id(__itt_domain *domain);
/* Of its frames: the domain's name, with the domain as scope. */
uint32_t itt_frame_name(__itt_domain *domain);

/* What hangs on a domain that has an id; an id that was read with acquire has it behind it. */
struct itt_domain_info {
	uint32_t full_name; /* of tasks for whose names there was no room */
	uint32_t frame_name;
};

static inline const struct itt_domain_info *itt_domain_info(const __itt_domain *domain)
{
	return domain->extra2;
}
/* "domain::handle"; never NULL. */
struct itt_name *itt_name_in(__itt_domain *domain, __itt_string_handle *handle);
/* The handle's text alone, for keys of metadata. */
uint32_t itt_text(__itt_string_handle *handle);
/* "domain::name", for names that come as text. */
uint32_t itt_intern_in(const char *domain, const char *name, uint32_t scope);
/* Words, one after the other. */
uint32_t itt_join(const char *first, const char *second, const char *third, uint32_t scope);

static inline const char *itt_domain_text(const __itt_domain *domain)
{
	return domain->nameA ? domain->nameA : "(no name)";
}

static inline const char *itt_handle_text(const __itt_string_handle *handle)
{
	return handle && handle->strA ? handle->strA : "(no name)";
}

static inline bool itt_enabled(const __itt_domain *domain)
{
	return domain && domain->flags;
}

/* Does anybody want what belongs to no domain, or to one of this name? */
bool itt_wanted(const char *domain);

/* Is what belongs to no domain recorded? */
static inline bool itt_recording(void)
{
	return xs_recording() && itt_wanted(NULL);
}

/* ---- functions.c ---- */

/* The handle of a task's name that is a function; NULL: function is. */
__itt_string_handle *itt_function_handle(void *function);

/* ---- values.c ---- */

/*
 * A float at any address. By its bits if it is no number: the conversion would raise an exception
 * for one that signals, which may end the program.
 */
double itt_widened(const void *value);

/* ---- args.c: records with arguments ---- */

#define ITT_ARGS_MAX (XS_RECORD_MAX - sizeof(struct xs_args_record))

/* Arguments are put where they stay, into the ring. */
struct itt_args {
	struct xs_args_record *record;
	uint32_t length; /* bytes so far */
};

/*
 * An XS_ARGS or XS_INSTANT record begins; itt_args_end() ends it. False: it is not recorded, and
 * not to be ended. In one function: no other record is written in between. Names (of keys, too) are
 * had before.
 */
#define itt_args_begin(...) itt_args_begin_in(XS_FRAME_MARK(), __VA_ARGS__)
bool itt_args_begin_in(uintptr_t mark, struct itt_args *args, uint8_t kind, uint8_t flags,
		       uint32_t name, struct xs_id id);
/* tick 0: now. */
void itt_args_end(struct itt_args *args, uint64_t tick);
/*
 * Adds one argument; what does not fit is cut. type: enum xs_value_type; count in values, for text
 * in bytes.
 */
void itt_arg(struct itt_args *args, uint32_t key, uint32_t type, const void *values, size_t count);
void itt_arg_text(struct itt_args *args, const char *key, const char *text);
void itt_arg_number(struct itt_args *args, const char *key, uint64_t number);
void itt_arg_address(struct itt_args *args, const char *key, const void *address);
/*
 * Text to be written by the caller: where, *ret_room bytes of it; then itt_arg_written(). NULL:
 * there is no room.
 */
char *itt_arg_open(struct itt_args *args, uint32_t key, size_t *ret_room);
void itt_arg_written(struct itt_args *args, size_t length, bool cut);

/* The same without arguments. */
void itt_write(uint8_t kind, uint8_t flags, uint32_t name, struct xs_id id, uint64_t tick);

static inline struct xs_id itt_id(__itt_id id)
{
	return (struct xs_id){ { id.d1, id.d2, id.d3 } };
}

static inline bool itt_is_null(struct xs_id id)
{
	return !(id.word[0] | id.word[1] | id.word[2]);
}

/*
 * A record of struct xs_task_record, or of as much of it as is needed; tick 0: now, as late
 * (begins) or early (ends) as possible.
 */
void itt_keyed(uint8_t kind, uint8_t flags, uint32_t name, struct xs_id id, struct xs_id parent,
	       uint64_t tick, enum xs_role role);

/* ---- clocks.c ---- */

/*
 * The tick of a time of the application's clock, for the next record of this thread, before which
 * it writes what the time is by that clock; the tick of now when that cannot be. domain NULL: now.
 */
uint64_t itt_tick_of(const __itt_clock_domain *domain, unsigned long long time);

#endif
