/*
 * What is asked, as python/xstrace/path_core.py writes it: a head of counts, then one array after
 * the other. Nothing of it is believed.
 */
#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define MAGIC 0x3161506572727378ull /* "xsrrePa1" */
#define MOST  0x1fffffffu	    /* of anything: nodes and edges are counted in 32 bits */

struct head {
	uint64_t magic;
	uint64_t slices, tracks, names, arrows, groups, members, rules, scenarios, halves;
};

static int read_all(int fd, void *data, size_t size)
{
	char *at = data;

	while (size) {
		ssize_t n = read(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -EINVAL;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

/* An array of `count` elements, of which there may be none. */
static int read_array(int fd, void *ret, uint64_t count, size_t size)
{
	void **array = ret;

	*array = malloc(count ? count * size : 1);
	return *array ? read_all(fd, *array, count * size) : -ENOMEM;
}

static bool all_below(const uint32_t *numbers, uint64_t count, uint64_t limit)
{
	for (uint64_t i = 0; i < count; i++)
		if (numbers[i] >= limit)
			return false;
	return true;
}

static bool all_bytes_below(const uint8_t *numbers, uint64_t count, uint8_t limit)
{
	for (uint64_t i = 0; i < count; i++)
		if (numbers[i] >= limit)
			return false;
	return true;
}

/* Times are such that no difference of two, and no sum of a million, overflows. */
static bool are_times(const int64_t *begin, const int64_t *end, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (begin[i] < 0 || end[i] < begin[i] || end[i] > INT64_MAX / 4)
			return false;
	return true;
}

static bool is_good(const struct xr_input *input)
{
	for (uint64_t i = 0; i < input->rules; i++)
		if (!(input->factor[i] >= 0 && input->factor[i] <= 1000))
			return false;
	for (uint64_t i = 0; i < input->scenarios; i++)
		if (input->rules < 64 && input->scenario[i] >> input->rules)
			return false;
	return are_times(input->begin, input->end, input->slices) &&
	       are_times(input->from_time, input->from_time, input->arrows) &&
	       all_below(input->track, input->slices, input->tracks) &&
	       all_below(input->process, input->tracks, input->tracks) &&
	       all_below(input->name, input->slices, input->names) &&
	       all_bytes_below(input->kind, input->slices, XR_KINDS) &&
	       all_below(input->from, input->arrows, input->slices) &&
	       all_below(input->to, input->arrows, input->slices) &&
	       all_bytes_below(input->type, input->arrows, XR_ARROWS) &&
	       all_below(input->group, input->members, input->groups) &&
	       all_below(input->member, input->members, input->slices);
}

static int read_arrays(int fd, struct xr_input *input)
{
	const struct {
		void *array;
		uint64_t count;
		size_t size;
	} arrays[] = {
		{ &input->begin, input->slices, 8 },
		{ &input->end, input->slices, 8 },
		{ &input->track, input->slices, 4 },
		{ &input->name, input->slices, 4 },
		{ &input->kind, input->slices, 1 },
		{ &input->process, input->tracks, 4 },
		{ &input->flags, input->names, 1 },
		{ &input->from, input->arrows, 4 },
		{ &input->to, input->arrows, 4 },
		{ &input->from_time, input->arrows, 8 },
		{ &input->type, input->arrows, 1 },
		{ &input->group, input->members, 4 },
		{ &input->member, input->members, 4 },
		{ &input->role, input->members, 1 },
		{ &input->factor, input->rules, 8 },
		{ &input->scenario, input->scenarios, 8 },
		{ &input->match, input->rules * input->names, 2 },
	};
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(arrays) / sizeof(arrays[0]); i++)
		r = read_array(fd, arrays[i].array, arrays[i].count, arrays[i].size);
	return r;
}

int xr_read(int fd, struct xr_input *ret_input)
{
	struct xr_input *input = ret_input;
	struct head head;
	int r = read_all(fd, &head, sizeof(head));

	*input = (struct xr_input){ 0 };
	if (r)
		return r;
	if (head.magic != MAGIC || !head.names || head.slices > MOST || head.tracks > MOST ||
	    head.names > MOST || head.arrows > MOST || head.groups > MOST || head.members > MOST ||
	    head.rules > 64 || head.scenarios > 4096 || head.halves > 4096)
		return -EINVAL;
	*input = (struct xr_input){ .slices = head.slices,
				    .tracks = head.tracks,
				    .names = head.names,
				    .arrows = head.arrows,
				    .groups = head.groups,
				    .members = head.members,
				    .rules = head.rules,
				    .scenarios = head.scenarios,
				    .halves = head.halves };
	r = read_arrays(fd, input);
	return r ? r : is_good(input) ? 0 : -EINVAL;
}

void xr_input_free(struct xr_input *input)
{
	void *arrays[] = { input->begin,  input->end,	    input->track,  input->name,
			   input->kind,	  input->process,   input->flags,  input->from,
			   input->to,	  input->from_time, input->type,   input->group,
			   input->member, input->role,	    input->factor, input->scenario,
			   input->match };

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		free(arrays[i]);
	*input = (struct xr_input){ 0 };
}
