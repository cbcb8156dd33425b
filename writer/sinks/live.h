/*
 * What --top shows: see live.c, and live_told.c, which makes pictures (struct xs_live_head) of it.
 */
#ifndef XS_SINK_LIVE_H
#define XS_SINK_LIVE_H

#include "live_picture.h"
#include "traced.h"

#define XS_LIVE_SPANS 1024u

/* Sums of the last seconds, each second's in a place of its own. */
struct xs_live_recent {
	uint64_t second; /* of the newest */
	struct xs_live_sum of[XS_LIVE_SECONDS];
	uint64_t also[XS_LIVE_SECONDS]; /* bytes, or ns */
};

struct xs_live_entry {
	uint32_t id; /* as for xs_text_of(); 0: free */
	uint8_t kind, source;
	struct xs_live_sum all;
	uint64_t also;
	struct xs_live_recent recent;
};

struct xs_live_unit {
	int32_t pid;
	uint32_t serial, name; /* of the process; string id */
	uint8_t device;
	bool over;	/* the process has ended */
	uint64_t until; /* ns of the trace: busy so far */
	struct xs_live_sum all;
	uint64_t busy;
	struct xs_live_recent recent; /* also: busy */
	/* when commands ran that are not in `busy` yet: they come in no order */
	uint32_t span_count;
	struct xs_live_span {
		uint64_t start, end;
	} span[XS_LIVE_SPANS];
};

#define XS_LIVE_ENTRIES 4096u /* names that are counted; a power of two */

struct xs_live {
	uint64_t begun, asked; /* CLOCK_MONOTONIC */
	uint64_t second;       /* of CLOCK_MONOTONIC, now */
	uint32_t served;
	uint32_t used, units;
	uint64_t cpu; /* of this process, when the last picture was made */
	struct xs_live_recent cpus;
	struct xs_live_entry entries[XS_LIVE_ENTRIES];
	struct xs_live_unit unit[XS_LIVE_DEVICES];
};

/* Of a process: the calls of its threads. */
struct xs_live_calls {
	struct xs_live_sum all;
	uint64_t waited;
	struct xs_live_recent recent; /* also: ns in calls that waited for devices */
	uint64_t seen;		      /* events, when the last picture was made */
	struct xs_live_recent events;
};

/* Counts in the second that it is now. */
void xs_live_add(struct xs_live_recent *recent, uint64_t second, uint64_t count, uint64_t ns,
		 uint64_t also);
/* What of it is not too old at `second`. */
struct xs_live_sum xs_live_recent(const struct xs_live_recent *recent, uint64_t second,
				  uint64_t *ret_also);

/* The unit's spans become time in which it was busy. */
void xs_live_settle(struct xs_live *live, struct xs_live_unit *unit);
/* ns of processors that this process has used. */
uint64_t xs_live_cpu(void);
/*
 * Makes a picture: a struct xs_live_head and what follows it, to be freed; NULL: no memory.
 * `behind`: bytes of records that wait.
 */
struct xs_live_head *xs_live_picture(struct xs_run *run, struct xs_process *processes,
				     uint64_t behind);

#endif
