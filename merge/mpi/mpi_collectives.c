#include "mpi_collectives.h"

#include <inttypes.h>
#include <stdlib.h>

#define MAX_OPEN    8192u /* collectives that wait for members; a power of two */
#define PROBES	    16u	  /* places that one can have */
#define MAX_MEMBERS (1u << 18)
#define MAX_PAIRS   2048u /* of a list of ranks */

/* What a rank said of itself in a communicator. */
struct told {
	int32_t place, side;
	int32_t rank;
};

struct comm {
	uint32_t seen; /* members that took part in collectives */
	int32_t members, others;
	char *name;
};

struct xm_collectives {
	const struct xm_mpi_sink *sink;
	/*
	 * by (communicator, seq, nth): if all places for a collective are taken, the one in the
	 * first place is closed
	 */
	struct open {
		struct xm_collective collective;
		uint32_t nth; /* start of a persistent one */
	} open[MAX_OPEN];
	struct xf_map comm_map;
	struct comm *comms;
	uint32_t comm_room, sweep, member_count;
	bool knows_sizes;
	struct xf_map member_map; /* comm and input: took part */
	struct xf_map told_map;	  /* the same: told */
	struct told *told;
	uint32_t told_room;
	/*
	 * comm and input → counter, where the slices have no seq; with seq: starts of a persistent
	 * one
	 */
	struct xf_map seq_map;
	uint64_t *seqs;
	uint32_t seq_room;
	uint64_t dropped;
};

struct xm_collectives *xm_collectives_create(const struct xm_mpi_sink *sink)
{
	struct xm_collectives *collectives = calloc(1, sizeof(*collectives));

	if (!collectives)
		return NULL;
	collectives->sink = sink;
	xf_map_init(&collectives->comm_map, 65536, 1u << 20);
	xf_map_init(&collectives->member_map, 1u << 20, 32u << 20);
	xf_map_init(&collectives->told_map, 1u << 20, 32u << 20);
	xf_map_init(&collectives->seq_map, 1u << 20, 32u << 20);
	return collectives;
}

static struct comm *comm_at(struct xm_collectives *collectives, uint64_t comm)
{
	uint32_t index = xf_map_add(&collectives->comm_map, &comm, sizeof(comm));

	if (index == XF_NONE || !xf_room_for(&collectives->comms, &collectives->comm_room, index,
					     sizeof(*collectives->comms)))
		return NULL;
	return &collectives->comms[index];
}

/* ---- who is who ---- */

static const struct told *told_of(const struct xm_collectives *collectives, uint64_t comm,
				  const struct xm_input *input)
{
	uint64_t key[2] = { comm, input->index };
	uint32_t index = xf_map_find(&collectives->told_map, key, sizeof(key));

	return index != XF_NONE && index < collectives->told_room ? &collectives->told[index]
								  : NULL;
}

static int32_t number_in(struct xf_text args, const char *name, int32_t otherwise)
{
	int64_t value;

	return xf_integer(xf_find(args, name), &value) && value >= 0 && value <= INT32_MAX
		       ? (int32_t)value
		       : otherwise;
}

void xm_collectives_told(struct xm_collectives *collectives, const struct xm_input *input,
			 int32_t rank, struct xf_text args)
{
	uint64_t key[2] = { xm_comm_of(xf_find(args, "comm")), input->index };
	struct xf_text name = xf_find(args, "name");
	struct comm *comm = key[0] ? comm_at(collectives, key[0]) : NULL;
	uint32_t index = comm ? xf_map_add(&collectives->told_map, key, sizeof(key)) : XF_NONE;
	char text[XM_COMM_LABEL];
	struct told *told;

	if (index == XF_NONE || !xf_room_for(&collectives->told, &collectives->told_room, index,
					     sizeof(*collectives->told)))
		return;
	told = &collectives->told[index];
	told->place = number_in(args, "rank", -1);
	told->side = number_in(args, "side", -1);
	told->rank = rank;
	comm->members = number_in(args, told->side == 1 ? "others" : "members", comm->members);
	comm->others = number_in(args, told->side == 1 ? "members" : "others", comm->others);
	if (xf_is_string(name)) {
		(void)xf_unescape(name, text, sizeof(text));
		free(comm->name);
		comm->name = strdup(text);
	}
}

static int by_number(const void *a, const void *b)
{
	int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;

	return left < right ? -1 : left > right;
}

/* The members' ranks in the world, as far as they are among the inputs and there is room. */
static void put_ranks(const struct xm_collectives *collectives, uint64_t comm, char *text,
		      size_t room)
{
	int32_t *ranks = calloc(collectives->told_map.count + 1, sizeof(*ranks));
	uint32_t count = 0;
	size_t at = 0, length;

	for (uint32_t i = 0; ranks && i < collectives->told_map.count && i < collectives->told_room;
	     i++) {
		uint64_t key[2];

		memcpy(key, xf_map_key(&collectives->told_map, i, &length), sizeof(key));
		if (key[0] == comm)
			ranks[count++] = collectives->told[i].rank;
	}
	text[0] = '\0';
	if (ranks)
		qsort(ranks, count, sizeof(*ranks), by_number);
	for (uint32_t i = 0, last; i < count; i = last + 1) {
		for (last = i; last + 1 < count && ranks[last + 1] <= ranks[last] + 1;)
			last++;
		if (at + 32 > room) {
			(void)snprintf(text + at, room - at, ", ...");
			break;
		}
		at += (size_t)snprintf(text + at, room - at, "%s%" PRId32, at ? ", " : "",
				       ranks[i]);
		if (ranks[last] > ranks[i])
			at += (size_t)snprintf(text + at, room - at, "-%" PRId32, ranks[last]);
	}
	free(ranks);
}

const char *xm_collectives_label(const struct xm_collectives *collectives, uint64_t id, char *text)
{
	uint32_t index = xf_map_find(&collectives->comm_map, &id, sizeof(id));
	const struct comm *comm = index != XF_NONE && index < collectives->comm_room
					  ? &collectives->comms[index]
					  : NULL;
	char ranks[XM_COMM_LABEL - 32];

	if (comm && comm->name && comm->name[0]) {
		(void)snprintf(text, XM_COMM_LABEL, "%s", comm->name);
		return text;
	}
	if (id <= XM_COMM_SELF || !comm || comm->members <= 0)
		return xm_comm_name(id, text);
	put_ranks(collectives, id, ranks, sizeof(ranks));
	if (comm->others > 0)
		(void)snprintf(text, XM_COMM_LABEL, "%" PRId32 " and %" PRId32 " of world (%s)",
			       comm->members, comm->others, ranks);
	else
		(void)snprintf(text, XM_COMM_LABEL, "%" PRId32 " of world (%s)", comm->members,
			       ranks);
	return text;
}

/* ---- which calls are one ---- */

static void set_places(const struct xm_collectives *collectives, struct xm_collective *collective)
{
	for (uint32_t i = 0; i < collective->count; i++) {
		struct xf_member *member = &collective->members[i];
		const struct told *told = told_of(collectives, collective->comm, member->end.input);

		member->place = told				    ? told->place
				: collective->comm == XM_COMM_WORLD ? member->end.rank
								    : -1;
		member->side = told ? told->side : -1;
		collective->is_inter |= member->side >= 0;
		if (member->root >= 0)
			collective->root = member->root;
	}
	/* between groups the root itself names none */
	for (uint32_t i = 0; i < collective->count; i++)
		if (collective->members[i].end.rank == collective->root)
			collective->members[i].root = collective->root;
}

static void close_one(struct xm_collectives *collectives, struct open *open)
{
	struct xm_collective *collective = &open->collective;

	if (!collective->room)
		return;
	if (collective->count > 1 && collectives->sink->collective) {
		set_places(collectives, collective);
		collectives->sink->collective(collectives->sink->user, collective);
	}
	collectives->member_count -= collective->count;
	for (uint32_t i = 0; i < collective->count; i++)
		free(collective->members[i].from);
	free(collective->members);
	memset(open, 0, sizeof(*open));
}

/* The next of a row that begins with 0; XF_NONE: no room. */
static uint64_t next_of(struct xm_collectives *collectives, const uint64_t key[3])
{
	uint32_t index = xf_map_add(&collectives->seq_map, key, 3 * sizeof(*key));

	if (index == XF_NONE || !xf_room_for(&collectives->seqs, &collectives->seq_room, index,
					     sizeof(*collectives->seqs)))
		return XF_NONE;
	return collectives->seqs[index]++;
}

/* "all", "0-3,7"; NULL: it is not said, or nobody. */
static struct xm_ranks *ranks_of(struct xf_text text)
{
	const char *p = text.p, *end = text.p + text.n;
	uint32_t count = text.n > 0;
	struct xm_ranks *ranks;

	for (size_t i = 0; i < text.n; i++)
		count += text.p[i] == ',';
	if (!count || count > MAX_PAIRS)
		return NULL;
	ranks = calloc(1, sizeof(*ranks) + count * sizeof(ranks->pair[0]));
	if (!ranks)
		return NULL;
	ranks->all = xf_is(text, "all");
	while (!ranks->all && p < end && ranks->count < count) {
		uint32_t number[2] = { 0, 0 };

		for (int k = 0; k < 2; k++) {
			for (; p < end && *p >= '0' && *p <= '9'; p++)
				number[k] = number[k] * 10 + (uint32_t)(*p - '0');
			if (k == 0 && (p == end || *p != '-')) {
				number[1] = number[0];
				break;
			}
			p += k == 0;
		}
		memcpy(ranks->pair[ranks->count++], number, sizeof(number));
		if (p < end && *p++ != ',')
			break;
	}
	return ranks;
}

static bool is_same(const struct open *open, const struct xm_call *call, uint64_t seq, uint32_t nth)
{
	const struct xm_collective *there = &open->collective;

	return there->room && there->comm == call->comm && there->seq == seq && open->nth == nth;
}

/* Ranks are read some hundred events at a time, so that many wait here at once. */
static struct open *place_of(struct xm_collectives *collectives, const struct xm_call *call,
			     uint64_t seq, uint32_t nth)
{
	uint64_t hash = ((call->comm * 0x9e3779b97f4a7c15ull ^ seq) * 0xd6e8feb86659fd93ull ^ nth) *
			0x9fb21c651e98df25ull;
	struct open *first = NULL, *open = NULL;

	for (uint32_t n = 0; collectives->member_count >= MAX_MEMBERS && n < MAX_OPEN;
	     n++, collectives->sweep++)
		close_one(collectives, &collectives->open[collectives->sweep % MAX_OPEN]);
	for (uint32_t i = 0; i < PROBES; i++) {
		open = &collectives->open[((hash >> 40) + i) & (MAX_OPEN - 1)];
		if (is_same(open, call, seq, nth))
			break;
		if (!first && !open->collective.room)
			first = open;
		open = NULL;
	}
	/* another job's of the same name, or a wrong program */
	if (open && open->collective.function != call->function)
		close_one(collectives, open);
	if (open || first)
		return open ? open : first;
	open = &collectives->open[(hash >> 40) & (MAX_OPEN - 1)];
	close_one(collectives, open);
	return open;
}

void xm_collectives_join(struct xm_collectives *collectives, const struct xm_call *call,
			 const struct xm_end *end)
{
	uint64_t member[2] = { call->comm, end->input->index },
		 count[3] = { call->comm, end->input->index,
			      call->has_seq ? call->seq : UINT64_MAX };
	uint64_t seq = call->has_seq ? call->seq : next_of(collectives, count);
	uint32_t nth = call->function->role == XM_COLLECTIVE_INIT
			       ? (uint32_t)next_of(collectives, count)
			       : 0;
	uint32_t known = collectives->member_map.count;
	struct comm *comm;
	struct open *open;
	struct xm_collective *collective;

	if (call->comm == XM_COMM_SELF || !call->comm || call->has_failed)
		return;
	comm = comm_at(collectives, call->comm);
	if (!comm)
		return;
	if (xf_map_add(&collectives->member_map, member, sizeof(member)) == known)
		comm->seen++;
	open = place_of(collectives, call, seq, nth);
	collective = &open->collective;
	if (collective->count == collective->room) {
		uint32_t room = collective->room ? 2 * collective->room : 4;
		struct xf_member *grown = realloc(collective->members, room * sizeof(*grown));

		if (!grown) {
			collectives->dropped++;
			return;
		}
		collective->members = grown;
		collective->room = room;
	}
	if (!collective->count) {
		collective->comm = call->comm;
		collective->seq = seq;
		collective->function = call->function;
		collective->root = -1;
		open->nth = nth;
	}
	collective->members[collective->count] = (struct xf_member){ .end = *end,
								     .root = (int32_t)call->root,
								     .from = ranks_of(call->from) };
	collective->members[collective->count++].end.bytes = call->bytes;
	collectives->member_count++;
	if (collectives->knows_sizes && collective->count == comm->seen)
		close_one(collectives, open);
}

void xm_collectives_learn(struct xm_collectives *collectives, const struct xm_collectives *before)
{
	size_t length;

	for (uint32_t i = 0; i < before->comm_map.count && i < before->comm_room; i++) {
		const struct comm *known = &before->comms[i];
		struct comm *comm;
		uint64_t id;

		memcpy(&id, xf_map_key(&before->comm_map, i, &length), sizeof(id));
		comm = comm_at(collectives, id);
		if (!comm)
			continue;
		*comm = *known;
		comm->name = known->name ? strdup(known->name) : NULL;
	}
	for (uint32_t i = 0; i < before->member_map.count; i++) {
		const void *key = xf_map_key(&before->member_map, i, &length);

		(void)xf_map_add(&collectives->member_map, key, length);
	}
	for (uint32_t i = 0; i < before->told_map.count && i < before->told_room; i++) {
		const void *key = xf_map_key(&before->told_map, i, &length);
		uint32_t index = xf_map_add(&collectives->told_map, key, length);

		if (index != XF_NONE && xf_room_for(&collectives->told, &collectives->told_room,
						    index, sizeof(*collectives->told)))
			collectives->told[index] = before->told[i];
	}
	collectives->knows_sizes = true;
}

uint64_t xm_collectives_finish(struct xm_collectives *collectives)
{
	for (uint32_t i = 0; i < MAX_OPEN; i++)
		close_one(collectives, &collectives->open[i]);
	return collectives->dropped;
}

void xm_collectives_free(struct xm_collectives *collectives)
{
	if (!collectives)
		return;
	for (uint32_t i = 0; i < MAX_OPEN; i++) {
		struct xm_collective *collective = &collectives->open[i].collective;

		for (uint32_t k = 0; k < collective->count; k++)
			free(collective->members[k].from);
		free(collective->members);
	}
	for (uint32_t i = 0; i < collectives->comm_room; i++)
		free(collectives->comms[i].name);
	xf_map_free(&collectives->comm_map);
	xf_map_free(&collectives->member_map);
	xf_map_free(&collectives->told_map);
	xf_map_free(&collectives->seq_map);
	free(collectives->comms);
	free(collectives->told);
	free(collectives->seqs);
	free(collectives);
}
