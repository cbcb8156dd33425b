/*
 * The sinks that are open for a process: opening, and the ends.
 */
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "sink.h"
#include "sinks.h"
#include "sinks_open.h"

#define DECLARED(number, name) extern const struct xs_sink xs_##name##_sink;
XS_SINKS(DECLARED)
#define ROW(number, name) [number] = &xs_##name##_sink,
static const struct xs_sink *const sinks[XS_SINK_COUNT] = { XS_SINKS(ROW) };

static void tell_all(struct xs_track *track, const struct xs_task *tasks, uint32_t count)
{
	XS_TELL_SINKS(track->process, tasks, track, tasks, count);
}

/* Those that are open, in the order of the table; plain tasks go straight to who alone wants them.
 */
static void list_open(struct xs_process *process)
{
	process->open_count = 0;
	process->plain_tasks = NULL;
	for (uint32_t i = 0; i < XS_SINK_COUNT; i++) {
		if (!process->sink[i])
			continue;
		process->open_sinks[process->open_count++] = sinks[i];
		if (sinks[i]->tasks &&
		    (!sinks[i]->wants_tasks || sinks[i]->wants_tasks(process->run)))
			process->plain_tasks = process->plain_tasks ? tell_all : sinks[i]->tasks;
	}
}

bool xs_sinks_open(struct xs_process *process, bool at_first_event)
{
	bool all = true;

	for (uint32_t i = 0; i < XS_SINK_COUNT; i++) {
		const struct xs_sink *sink = sinks[i];

		if (sink->at_first_event != at_first_event || process->sink[i] ||
		    !sink->wanted(process->run))
			continue;
		if (!sink->open(process)) {
			all = false;
			continue;
		}
		for (uint32_t k = 0; sink->enter && k < process->track_count; k++)
			sink->enter(process->tracks[k]);
	}
	list_open(process);
	return all;
}

void xs_sinks_add(struct xs_process *process, uint32_t number)
{
	if (!process->sink[number] && sinks[number]->open(process))
		list_open(process);
}

void xs_sinks_remove(struct xs_process *process, uint32_t number)
{
	if (!process->sink[number])
		return;
	sinks[number]->drop(process);
	process->sink[number] = NULL;
	list_open(process);
}

bool xs_sinks_await_event(const struct xs_run *run)
{
	for (uint32_t i = 0; i < XS_SINK_COUNT; i++)
		if (sinks[i]->at_first_event && sinks[i]->wanted(run))
			return true;
	return false;
}

bool xs_sinks_add_track(struct xs_track *track)
{
	for (uint32_t i = 0; i < XS_SINK_COUNT; i++) {
		if (!sinks[i]->track_size || !sinks[i]->wanted(track->process->run))
			continue;
		track->sink[i] = calloc(1, sinks[i]->track_size);
		if (!track->sink[i])
			return false;
	}
	XS_TELL_SINKS(track->process, enter, track);
	return true;
}

void xs_sinks_drop_track(struct xs_track *track)
{
	for (uint32_t i = 0; i < XS_SINK_COUNT; i++) {
		if (track->sink[i] && sinks[i]->drop_track)
			sinks[i]->drop_track(track);
		free(track->sink[i]);
	}
}

void xs_sinks_flush(struct xs_process *process)
{
	XS_TELL_SINKS(process, flush, process);
	xs_reports_flush(process);
}

static void forget(struct xs_process *process)
{
	memset(process->sink, 0, sizeof(process->sink));
	list_open(process);
}

bool xs_sinks_close(struct xs_process *process, enum xs_end end, int status)
{
	bool shown = false;

	for (uint32_t i = 0; i < process->open_count; i++)
		shown |= process->open_sinks[i]->close(process, end, status);
	forget(process);
	return shown | xs_reports_close(process);
}

void xs_sinks_drop(struct xs_process *process)
{
	XS_TELL_SINKS(process, drop, process);
	forget(process);
}
