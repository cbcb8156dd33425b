#include "mpi_channels.h"

#include <stdlib.h>

#define MAX_WAITING 400000u /* sends or receives without their other end: 96 bytes each */

#define MAX_STEPS 4096u /* over those that wait in front of one */

struct waiting {
	struct xm_end end;
	const struct xm_function *function;
	uint64_t k;
	uint32_t next;
};

/* One side is ahead of the other; its ends wait in their order. */
struct channel {
	uint64_t sent, received;
	uint32_t first, last; /* of waiting; XF_NONE: none */
};

void xm_channels_init(struct xm_channels *channels, const struct xm_mpi_sink *sink)
{
	memset(channels, 0, sizeof(*channels));
	channels->sink = sink;
	channels->free = XF_NONE;
	xf_map_init(&channels->map, 1u << 20, 64u << 20);
}

void xm_channels_free(struct xm_channels *channels)
{
	xf_map_free(&channels->map);
	free(channels->all);
	free(channels->waiting);
}

static struct channel *channel_of(struct xm_channels *channels, const struct xm_channel_key *key)
{
	uint32_t known = channels->map.count, index = xf_map_add(&channels->map, key, sizeof(*key));

	if (index == XF_NONE ||
	    !xf_room_for(&channels->all, &channels->room, index, sizeof(*channels->all)))
		return NULL;
	if (index == known)
		channels->all[index].first = channels->all[index].last = XF_NONE;
	return &channels->all[index];
}

static void wait_for_other(struct xm_channels *channels, struct channel *channel,
			   const struct xm_function *function, const struct xm_end *end, uint64_t k)
{
	uint32_t index = channels->free;
	struct waiting *waiting;

	if (index != XF_NONE) {
		channels->free = channels->waiting[index].next;
	} else {
		index = channels->waiting_count;
		if (index >= MAX_WAITING ||
		    !xf_room_for(&channels->waiting, &channels->waiting_room, index,
				 sizeof(*channels->waiting))) {
			channels->dropped++;
			return;
		}
		channels->waiting_count++;
	}
	waiting = &channels->waiting[index];
	*waiting = (struct waiting){ *end, function, k, XF_NONE };
	/* receives of one channel can complete out of their order */
	if (channel->last != XF_NONE && channels->waiting[channel->last].k > k) {
		uint32_t *link = &channel->first;

		while (channels->waiting[*link].k < k)
			link = &channels->waiting[*link].next;
		waiting->next = *link;
		*link = index;
		return;
	}
	if (channel->last == XF_NONE)
		channel->first = index;
	else
		channels->waiting[channel->last].next = index;
	channel->last = index;
}

/* The one that waits as number k; NULL: it is not there. */
static struct waiting *take_waiting(struct xm_channels *channels, struct channel *channel,
				    uint64_t k, uint32_t *ret_index)
{
	uint32_t index = channel->first, before = XF_NONE;

	for (unsigned n = 0; index != XF_NONE && channels->waiting[index].k < k && n < MAX_STEPS;
	     n++) {
		before = index;
		index = channels->waiting[index].next;
	}
	if (index == XF_NONE || channels->waiting[index].k != k)
		return NULL;
	if (before == XF_NONE)
		channel->first = channels->waiting[index].next;
	else
		channels->waiting[before].next = channels->waiting[index].next;
	if (channel->last == index)
		channel->last = before;
	*ret_index = index;
	return &channels->waiting[index];
}

/*
 * One end of the k-th message of a channel. What waits there as k is the other end: each side has
 * one of each number. Nothing can wait if the other side's count is not beyond k.
 */
void xm_channels_end(struct xm_channels *channels, const struct xm_channel_key *key, bool is_send,
		     uint64_t k, const struct xm_function *function, const struct xm_end *end)
{
	struct channel *channel = channel_of(channels, key);
	struct waiting *other = NULL;
	uint32_t index;

	if (!channel) {
		channels->dropped++;
		return;
	}
	if (k < (is_send ? channel->received : channel->sent))
		other = take_waiting(channels, channel, k, &index);
	if (!other) {
		wait_for_other(channels, channel, function, end, k);
		return;
	}
	if (channels->sink->message)
		channels->sink->message(channels->sink->user, key->comm,
					is_send ? function : other->function,
					is_send ? other->function : function,
					is_send ? end : &other->end, is_send ? &other->end : end);
	other->next = channels->free;
	channels->free = index;
}

uint64_t xm_channels_next(struct xm_channels *channels, const struct xm_channel_key *key,
			  bool is_send)
{
	struct channel *channel = channel_of(channels, key);

	if (!channel) {
		channels->dropped++;
		return XM_NO_NUMBER;
	}
	return is_send ? channel->sent++ : channel->received++;
}

uint64_t xm_channels_received(struct xm_channels *channels, const struct xm_channel_key *key)
{
	struct channel *channel = channel_of(channels, key);

	return channel ? channel->received : 0;
}

void xm_channels_take_back(struct xm_channels *channels, const struct xm_channel_key *key,
			   uint64_t k)
{
	struct channel *channel = channel_of(channels, key);

	if (channel)
		channel->received = k;
}

void xm_channels_next_end(struct xm_channels *channels, const struct xm_channel_key *key,
			  bool is_send, const struct xm_function *function,
			  const struct xm_end *end)
{
	uint64_t k = xm_channels_next(channels, key, is_send);

	if (k != XM_NO_NUMBER)
		xm_channels_end(channels, key, is_send, k, function, end);
}

uint64_t xm_channels_alone(const struct xm_channels *channels)
{
	uint64_t alone = channels->waiting_count;

	for (uint32_t index = channels->free; index != XF_NONE;
	     index = channels->waiting[index].next)
		alone--;
	return alone;
}
