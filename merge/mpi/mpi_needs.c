#include "mpi_needs.h"

#define FEW 32u /* members of whom all pairs are looked at */

static bool is_given(const struct xm_ranks *ranks, int32_t place)
{
	if (!ranks || place < 0)
		return ranks && ranks->all;
	for (uint32_t i = 0; i < ranks->count; i++)
		if ((uint32_t)place >= ranks->pair[i][0] && (uint32_t)place <= ranks->pair[i][1])
			return true;
	return ranks->all;
}

/* Between groups all data come from the other group; each member's group must be known. */
static bool may_give(const struct xm_collective *c, const struct xf_member *to,
		     const struct xf_member *from)
{
	return !c->is_inter || (to->side >= 0 && from->side >= 0 && to->side != from->side);
}

bool xm_gets(const struct xm_collective *c, const struct xf_member *to,
	     const struct xf_member *from)
{
	if (to == from || to->end.is_cut)
		return false;
	switch (c->function->flow) {
	case XM_BARRIER:
		/* there libraries let one group go before the other has come */
		return !c->is_inter;
	case XM_ALL:
		return to->end.bytes > 0 && may_give(c, to, from);
	case XM_EACH:
		return from->end.bytes > 0 && may_give(c, to, from);
	case XM_FROM_ROOT: /* between groups, other ranks of the root's group name no root */
		return from->end.rank == c->root && to->root == c->root && to->end.bytes > 0;
	case XM_TO_ROOT:
		return to->end.rank == c->root && from->root == c->root && from->end.bytes > 0;
	case XM_LOWER:
		return !c->is_inter && to->end.bytes > 0 && from->place >= 0 &&
		       from->place < to->place;
	case XM_LISTED:
		return may_give(c, to, from) && is_given(to->from, from->place);
	default:
		return false;
	}
}

bool xm_is_later(const struct xf_member *a, const struct xf_member *b)
{
	return !b || a->end.start > b->end.start ||
	       (a->end.start == b->end.start && a->end.rank < b->end.rank);
}

/* Of one side: the two that came last of those who give to all others there are. */
struct latest {
	const struct xf_member *first, *second;
};

static void look_at(struct latest *latest, const struct xf_member *member)
{
	if (xm_is_later(member, latest->first)) {
		latest->second = latest->first;
		latest->first = member;
	} else if (xm_is_later(member, latest->second)) {
		latest->second = member;
	}
}

/* Has it nothing to do with who gets it what a member gives? */
static bool gives_alike(enum xm_flow flow)
{
	return flow == XM_BARRIER || flow == XM_ALL || flow == XM_EACH;
}

void xm_each_wait(const struct xm_collective *c, void *user,
		  void (*one)(void *user, const struct xm_collective *collective,
			      const struct xf_member *to, const struct xf_member *last))
{
	struct latest of[2] = { { NULL, NULL }, { NULL, NULL } };
	bool alike = gives_alike(c->function->flow);

	for (uint32_t i = 0; alike && i < c->count; i++)
		if (c->function->flow != XM_EACH || c->members[i].end.bytes > 0)
			look_at(&of[c->is_inter && c->members[i].side == 1], &c->members[i]);
	for (uint32_t k = 0; k < c->count; k++) {
		const struct xf_member *to = &c->members[k], *last = NULL;

		if (alike) {
			const struct latest *latest = &of[c->is_inter && to->side == 0];

			last = latest->first == to ? latest->second : latest->first;
			if (last && !xm_gets(c, to, last))
				last = NULL;
		} else if (c->function->flow != XM_TO_ROOT || to->end.rank == c->root) {
			for (uint32_t i = 0; i < c->count; i++)
				if (xm_gets(c, to, &c->members[i]) &&
				    xm_is_later(&c->members[i], last))
					last = &c->members[i];
		}
		if (last)
			one(user, c, to, last);
	}
}

/* A member that has to do with all others, as far as one has. */
static uint32_t hub(const struct xm_collective *c)
{
	enum xm_flow flow = c->function->flow;

	for (uint32_t i = 0; i < c->count; i++)
		if (flow == XM_FROM_ROOT || flow == XM_TO_ROOT
			    ? c->members[i].end.rank == c->root
			    : flow != XM_EACH || c->members[i].end.bytes > 0)
			return i;
	return 0;
}

void xm_each_pair(const struct xm_collective *c, void *user,
		  void (*one)(void *user, const struct xm_collective *collective,
			      const struct xf_member *to, const struct xf_member *from))
{
	uint32_t middle = hub(c);

	for (uint32_t k = 0; k < c->count; k++) {
		const struct xf_member *to = &c->members[k];
		/* few partners of many are all that there is to know */
		bool all = c->count <= FEW ||
			   (c->function->flow == XM_LISTED && to->from && !to->from->all) ||
			   k == middle;

		for (uint32_t i = 0; all && i < c->count; i++)
			if (xm_gets(c, to, &c->members[i]))
				one(user, c, to, &c->members[i]);
		if (all)
			continue;
		if (xm_gets(c, to, &c->members[middle]))
			one(user, c, to, &c->members[middle]);
		if (k > 0 && k - 1 != middle && xm_gets(c, to, to - 1))
			one(user, c, to, to - 1);
		if (k + 1 < c->count && k + 1 != middle && xm_gets(c, to, to + 1))
			one(user, c, to, to + 1);
	}
}
