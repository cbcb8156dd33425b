/*
 * Inside the Perfetto format: tracks as sequences of packets, and what has been told in them.
 */
#ifndef XS_PERFETTO_PACKETS_H
#define XS_PERFETTO_PACKETS_H

#include "annotate.h"
#include "map.h"
#include "output.h"
#include "perfetto.h"
#include "perfetto_fields.h"

#define XS_PF_NO_TID   (-1) /* of the process's own track; less: of counters */
#define XS_PF_NAME_MAX 8192u
#define XS_PF_NAMES    1024u /* of tasks whose numbers are at hand, a power of two */
#define XS_PF_KEYS_MAX 255u

enum xs_pf_kind { XS_PF_NAME, XS_PF_CATEGORY, XS_PF_KEY, XS_PF_KINDS };

/* A track. */
struct xs_pf_sequence {
	uint64_t uuid, now; /* now: ns; the time of its last packet */
	uint64_t *told[XS_PF_KINDS];
	uint32_t words[XS_PF_KINDS]; /* of 64 texts each */
	uint32_t number;
	bool counter;
};

/* Where packets are put. */
struct xs_pf_place {
	char *at;
	const char *end;
};

struct xs_perfetto {
	struct xf_proto packet, fields;
	struct xf_map texts[XS_PF_KINDS], index; /* index: the sequences, by pid, tid and level */
	struct xs_pf_sequence *sequences;
	uint32_t sequence_room, first; /* first: the number of the first one */
	uint64_t base;		       /* ns since 1970 */
	uint64_t seed;		       /* of the tracks' numbers */
	struct {
		uint32_t id, number; /* number + 1; 0: it has none */
	} names[XS_PF_NAMES];
	struct xf_annotator annotator;
	uint32_t keys[XS_PF_KEYS_MAX], key_count; /* of the event that is being made */
	/* a name, as JSON has it and without that; packets, before they take the place of JSON */
	char escaped[6 * XS_PF_NAME_MAX + 3], made[XS_OUTPUT_SLACK];
};

/* What an event says beside its time. */
struct xs_pf_said {
	uint32_t name, category;  /* numbers; XF_NONE: none */
	struct xf_text long_name; /* one that has no number; p NULL: none */
	uint32_t type;		  /* 0: an arrow's end */
	char phase;
	bool enclosing;
	uint64_t flow;
};

/*
 * The number + 1 of the track's sequence, which is told if it is new; 0: there are too many. level:
 * how many tasks its tasks lie in; what is no plain task has level 0.
 */
uint32_t xs_pf_sequence_of(struct xs_perfetto *p, struct xs_pf_place *place, uint64_t pid,
			   int64_t tid, uint32_t level);
/* A text's number, or the text itself where there are too many. */
uint32_t xs_pf_number(struct xs_perfetto *p, enum xs_pf_kind kind, struct xf_text string,
		      struct xf_text *ret_text);

/*
 * A name, labels or place of a process, or (tid 0 and more) of a thread. field: PROCESS_… or
 * THREAD_…; 0: nothing but that it is there. number: of a place.
 */
void xs_pf_put_process(struct xs_perfetto *p, struct xs_pf_place *place, uint64_t pid,
		       uint32_t field, struct xf_text text, uint64_t number);
void xs_pf_put_thread(struct xs_perfetto *p, struct xs_pf_place *place, uint64_t pid, int64_t tid,
		      uint32_t field, struct xf_text text, uint64_t number);
void xs_pf_put_counter_track(struct xs_perfetto *p, struct xs_pf_place *place, uint64_t pid,
			     int64_t tid, const char *name, size_t length);
void xs_pf_put_counter(struct xs_perfetto *p, struct xs_pf_place *place,
		       struct xs_pf_sequence *sequence, uint64_t time, struct xf_text value);

/* An event with the arguments in p->fields and the keys of p->keys. */
void xs_pf_put_event(struct xs_perfetto *p, struct xs_pf_place *place,
		     struct xs_pf_sequence *sequence, uint64_t time, const struct xs_pf_said *said);
/* A begin of a name that is told, in the shortest form. Room for 128 bytes. */
char *xs_pf_put_short(char *o, struct xs_pf_sequence *sequence, uint64_t time, uint32_t type,
		      uint32_t name);
void xs_pf_put_end(struct xs_pf_place *place, struct xs_pf_sequence *sequence, uint64_t time);

#endif
