/*
 * Where events are: processes and their tracks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace.h"

#define LONGEST_NAME 65536u
#define LONGEST_TID  240u

static uint32_t process_of(struct xt_trace *trace, struct xf_text pid)
{
	uint32_t known = trace->pids.count, index = XF_NONE;

	if (pid.n && pid.n <= LONGEST_TID)
		index = xf_map_add(&trace->pids, pid.p, pid.n);
	if (index == XF_NONE ||
	    !xf_room_for(&trace->processes, &trace->process_room, index, sizeof(*trace->processes)))
		return XF_NONE;
	if (index == known)
		trace->processes[index].rank = -1;
	return index;
}

/* A track by what tells it from the others of its process: its first byte says what that is. */
static uint32_t track_by(struct xt_trace *trace, struct xf_text pid, char what, const char *text,
			 size_t length)
{
	uint32_t process = process_of(trace, pid), known = trace->tids.count, index;
	char key[LONGEST_TID + 8];

	if (process == XF_NONE)
		return XF_NONE;
	length = length < LONGEST_TID ? length : LONGEST_TID;
	memcpy(key, &process, 4);
	key[4] = what;
	if (length)
		memcpy(key + 5, text, length);
	index = xf_map_add(&trace->tids, key, 5 + length);
	if (index == XF_NONE ||
	    !xf_room_for(&trace->tracks, &trace->track_room, index, sizeof(*trace->tracks)))
		return XF_NONE;
	if (index == known) {
		trace->tracks[index].process = process;
		trace->tracks[index].is_process = what == 'p';
		trace->tracks[index].is_queue = what == 't' && length && text[0] != '"' &&
						memchr(text, '.', length); /* cliloader's */
	}
	return index;
}

uint32_t xt_track_of(struct xt_trace *trace, const struct xf_event *event)
{
	uint32_t index;

	if (event->is_own && trace->knows_last && event->own_pid == trace->last_pid &&
	    event->own_tid == trace->last_tid)
		return trace->last_track;
	index = track_by(trace, event->pid, event->tid.n ? 't' : 'p', event->tid.p, event->tid.n);
	if (event->is_own && index != XF_NONE) {
		trace->knows_last = true;
		trace->last_pid = event->own_pid;
		trace->last_tid = event->own_tid;
		trace->last_track = index;
	}
	return index;
}

uint32_t xt_track_named(struct xt_trace *trace, struct xf_text pid, const char *name, size_t length)
{
	return track_by(trace, pid, 'n', name, length);
}

static void keep(char **field, struct xf_text string)
{
	char *copy;

	if (!xf_is_string(string) || string.n > LONGEST_NAME)
		return;
	copy = xf_keep(string);
	if (!copy)
		return;
	free(*field);
	*field = copy;
}

/* "RANK 3 HOST<node7> app", "RANK 3 DEVICE<node7>[name]": as unitrace calls its processes. */
static void look_at_name(struct xt_trace *trace, struct xt_process *process, struct xf_text string)
{
	char name[LONGEST_NAME], *host, *end;
	unsigned rank;

	(void)xf_unescape(string, name, sizeof(name));
	if (sscanf(name, "RANK %u ", &rank) == 1)
		process->rank = rank;
	host = strstr(name, "DEVICE<");
	process->is_device |= host != NULL;
	if (!host)
		host = strstr(name, "HOST<");
	end = host ? strchr(host, '>') : NULL;
	if (!end)
		return;
	*end = '\0';
	host = strchr(host, '<') + 1;
	free(process->host);
	process->host = strdup(host);
	if (!trace->tool[0])
		strcpy(trace->tool, "unitrace");
}

static void look_at_labels(struct xt_process *process, struct xf_text string)
{
	/* Kineto's */
	process->is_device |= string.n > 5 && (!memcmp(string.p + 1, "GPU ", 4) ||
					       !memcmp(string.p + 1, "XPU ", 4));
}

void xt_take_name(struct xt_trace *trace, const struct xf_event *event)
{
	struct xf_text name = xf_find(event->args, "name");
	uint32_t index;

	if (xf_is(event->name, "\"thread_name\"")) {
		index = xt_track_of(trace, event);
		if (index != XF_NONE)
			keep(&trace->tracks[index].name, name);
		return;
	}
	index = process_of(trace, event->pid);
	if (index == XF_NONE)
		return;
	if (xf_is(event->name, "\"process_name\"")) {
		keep(&trace->processes[index].name, name);
		if (xf_is_string(name))
			look_at_name(trace, &trace->processes[index], name);
	} else if (xf_is(event->name, "\"process_labels\"")) {
		name = xf_find(event->args, "labels");
		keep(&trace->processes[index].labels, name);
		if (xf_is_string(name))
			look_at_labels(&trace->processes[index], name);
	}
}
