/*
 * What an input says of itself: the members of its top level, and what its first pass meets.
 */
#include <stdlib.h>

#include "halves.h"
#include "turn.h"

#define LONGEST_NAME 1024
#define IN_CALLS     65536	/* bytes kept of one input's threads */
#define DEVICES	     (1u << 20) /* bytes of what is said of devices */
#define OVERHEAD     4096u	/* bytes of what is said of tracing's cost */

int64_t xm_tid_of_text(struct xm_input *input, const struct xm_process *process,
		       const struct xf_event *event)
{
	uint32_t index = (uint32_t)(process - input->processes);
	char key[sizeof(index) + XM_TID_TEXT];
	struct xf_text tid = event->tid;
	int64_t number;

	if (xf_integer(tid, &number) && number >= 0 && number < (int64_t)1 << 32 &&
	    (uint32_t)number - XM_OWN_TID >= XM_OWN_TIDS)
		return number;
	if (!tid.n || tid.n > sizeof(key) - sizeof(index))
		return XM_NO_TIME;
	memcpy(key, &index, sizeof(index));
	memcpy(key + sizeof(index), tid.p, tid.n);
	index = xf_map_add(&input->tids, key, sizeof(index) + tid.n);
	return index == XF_NONE ? XM_NO_TIME : XM_OWN_TID + (int64_t)index;
}

/* The threads that were inside a call at the end, as they stand there. */
static void take_threads(struct xm_input *input, struct xf_text threads)
{
	struct xf_text thread;
	const char *p = xf_first(threads);
	size_t length = 0;

	if (threads.n < 2 || threads.p[0] != '[')
		return;
	while (xf_element(&p, threads.p + threads.n, &thread)) {
		if (!xf_find(thread, "in_call").p || length + thread.n + 2 > IN_CALLS)
			continue;
		if (!input->in_calls)
			input->in_calls = malloc(IN_CALLS);
		if (!input->in_calls)
			return;
		input->in_calls[length] = length ? ',' : '[';
		length++;
		memcpy(input->in_calls + length, thread.p, thread.n);
		length += thread.n;
		input->in_calls[length] = '\0';
	}
	for (char *c = input->in_calls; c && *c; c++) /* strings hold no raw newline */
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	if (input->in_calls)
		strcpy(input->in_calls + length, "]");
}

/* An array or object of JSON, on one line: strings hold no raw newline. */
static void take_json(char **ret, struct xf_text json, char begin, size_t most)
{
	if (*ret || json.n < 2 || json.n > most || json.p[0] != begin)
		return;
	*ret = xf_keep(json);
	for (char *c = *ret; c && *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
}

void xm_take_member(void *user, struct xf_text key, struct xf_text value)
{
	struct xm_input *input = user;
	int64_t number;

	if (xf_is(key, "baseTimeNanoseconds")) {
		if (xf_integer(value, &number) && number >= 0 && number < XM_LATEST)
			*(input->met ? &input->late_base : &input->base) = number;
		else if (!xf_is(value, "null"))
			input->has_odd_base = true;
	} else if (xf_is(key, "metadata")) {
		xf_take_text(value, "tool", input->tool, sizeof(input->tool));
		xf_take_text(value, "host", input->host, sizeof(input->host));
		xf_take_text(value, "run", input->run, sizeof(input->run));
		xf_take_integer(value, "rank", &input->rank);
		xf_take_integer(value, "world_size", &input->world_size);
		xf_take_integer(value, "pid", &input->pid);
		xf_take_integer(value, "ppid", &input->ppid);
	} else if (xf_is(key, "otherData")) {
		xf_take_text(value, "end", input->end, sizeof(input->end));
		xf_take_integer(value, "status", &input->status);
		xf_take_integer(value, "lost", &input->lost_read);
		xf_take_integer(value, "untimed_commands", &input->untimed);
		xf_take_integer(value, "open_commands", &input->open_commands);
		xf_take_integer(value, "open_requests", &input->open_requests);
		xf_take_integer(value, "clock_error_ns", &input->clock_error);
		input->recovered |= xf_is(xf_find(value, "recovered"), "true");
		take_json(&input->overhead, xf_find(value, "overhead"), '{', OVERHEAD);
		take_threads(input, xf_find(value, "threads"));
	} else if (xf_is(key, "distributedInfo")) {
		xf_take_integer(value, "rank", &input->rank);
		xf_take_integer(value, "world_size", &input->world_size);
	} else if (xf_is(key, "deviceProperties")) {
		take_json(&input->devices, value, '[', DEVICES);
	} else if (xf_is(key, "schemaVersion") && !input->tool[0]) {
		strcpy(input->tool, "Kineto");
	} else if (xf_is(key, "hostname") || xf_is(key, "host_name")) {
		if (xf_is_string(value))
			(void)xf_unescape(value, input->host, sizeof(input->host));
	}
}

/* "RANK 3 HOST<node7>", as unitrace calls its processes. */
static void take_process_name(struct xm_input *input, const char *name)
{
	const char *host = strstr(name, "HOST<"), *end;
	unsigned rank;

	if (input->rank < 0 && sscanf(name, "RANK %u ", &rank) == 1)
		input->rank = rank;
	if (!host || input->host[0] || !(end = strchr(host, '>')) ||
	    (size_t)(end - host - 5) >= sizeof(input->host))
		return;
	memcpy(input->host, host + 5, (size_t)(end - host - 5));
	if (!input->tool[0])
		strcpy(input->tool, "unitrace");
}

static void keep(char **field, struct xf_text string)
{
	if (!xf_is_string(string) || string.n > LONGEST_NAME)
		return;
	free(*field);
	*field = xf_keep(string);
}

void xm_first_look(struct xm_input *input, const struct xf_event *event, struct xm_process *process,
		   int64_t start, int64_t end)
{
	int64_t id, tid = xm_tid(input, process, event);
	char text[LONGEST_NAME];

	switch (event->ph.p[1]) {
	case 'M':
		if (xf_is(event->name, "\"process_name\"")) {
			keep(&process->name, xf_find(event->args, "name"));
			(void)xf_unescape(xf_find(event->args, "name"), text, sizeof(text));
			take_process_name(input, text);
			process->is_device |= strstr(text, "DEVICE<") != NULL;
		} else if (xf_is(event->name, "\"process_labels\"")) {
			keep(&process->labels, xf_find(event->args, "labels"));
		}
		return;
	case 'X':
		if (process->first_start == XM_NO_TIME || start < process->first_start ||
		    (start == process->first_start && end > process->first_end)) {
			process->first_start = start;
			process->first_end = end;
			process->first_tid = tid;
		}
		break;
	case 's':
	case 't':
	case 'f':
		xm_half_met(&input->halves, event);
		if (!xf_integer(event->id, &id) || id < 0) {
			input->has_odd_ids = true;
		} else {
			input->id_low = input->has_ids && input->id_low < id ? input->id_low : id;
			input->id_high = input->has_ids && input->id_high > id ? input->id_high
									       : id;
			input->has_ids = true;
		}
		break;
	}
	if (start != XM_NO_TIME) {
		input->first = start < input->first ? start : input->first;
		input->last = end > input->last ? end : input->last;
	}
}

bool xm_take_late_base(struct xm_input *input)
{
	int64_t more = input->late_base - input->base;

	if (!input->late_base || input->first > input->last || input->last >= XM_LATEST - more)
		return false;
	input->base = input->late_base;
	input->late_base = 0;
	input->first += more;
	input->last += more;
	for (uint32_t i = 0; i < input->pids.count; i++) {
		if (input->processes[i].first_start == XM_NO_TIME)
			continue;
		input->processes[i].first_start += more;
		input->processes[i].first_end += more;
	}
	return true;
}
