/*
 * Where threads are: --stacks, --watchdog, --stacks-on-crash. See where.c.
 */
#ifndef XS_WHERE_H
#define XS_WHERE_H

#include "loop.h"
#include "sink.h"

/* Why it is to be told. */
enum xs_where_reason { XS_WHERE_SESSION = 1, XS_WHERE_WATCHDOG = 2, XS_WHERE_CRASH = 4 };

/* What is told: lines, for a file and for stderr. */
struct xs_lines {
	char *text;
	size_t length, room;
};

void xs_lines_add(struct xs_lines *lines, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- where_told.c ---- */

/*
 * What xstrace-stacks has printed of a process (with a NUL behind it), as lines and into its trace.
 * `told` is changed; `how` the program ended, as from waitpid().
 */
void xs_where_tell(struct xs_process *process, char *told, int how, uint64_t tick,
		   struct xs_lines *lines);

/* ---- where_kept.c: for the flight recorder's dumps ---- */

void xs_where_keep(struct xs_process *process, const struct xs_mark *mark, uint64_t tick);
/* In a dump, behind its history. */
void xs_where_dump(struct xs_process *process);
void xs_where_forget(struct xs_process *process);

/* ---- where.c ---- */

struct xs_where;

/* NULL: no memory, or nobody may ask. */
struct xs_where *xs_where_open(const struct xs_run *run);
void xs_where_close(struct xs_where *where);
/* Has somebody asked who is not served yet? */
bool xs_where_due(const struct xs_loop *loop);
/* True while it is being found out: to be called again soon. */
bool xs_where_serve(struct xs_loop *loop);

#endif
