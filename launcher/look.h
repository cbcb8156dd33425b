/*
 * Looking at runs while they go on: what --top and --export show.
 */
#ifndef XS_LOOK_H
#define XS_LOOK_H

#include <stdio.h>

#include "launcher.h"
#include "live_picture.h"

/* A run, and its newest picture. */
struct xs_look {
	char session[160]; /* with ":rank"; empty: it has no name */
	char run_id[24];
	int32_t rank, pid;	      /* -1: unknown; of the application */
	char command[128];	      /* one plain line */
	struct xs_live_head *picture; /* NULL: its drain process does not answer */
};

struct xs_looks {
	struct xs_look *of;
	size_t count;
};

/* ---- look.c ---- */

/*
 * Asks all running runs of that name ("*": all of this user; with `only`, that one run) for their
 * pictures, and waits for them, a second at most.
 */
struct xs_looks xs_look(const char *session, const struct xs_launch *only);
void xs_looks_free(struct xs_looks *looks);

/* The parts of a picture, whose counts are right. */
static inline const struct xs_live_process *xs_look_processes(const struct xs_look *look)
{
	return (const struct xs_live_process *)(look->picture + 1);
}

static inline const struct xs_live_device *xs_look_devices(const struct xs_look *look)
{
	return (const struct xs_live_device *)(xs_look_processes(look) +
					       look->picture->process_count);
}

static inline const struct xs_live_name *xs_look_names(const struct xs_look *look)
{
	return (const struct xs_live_name *)(xs_look_devices(look) + look->picture->device_count);
}

/* What a run is doing, in a word. */
const char *xs_look_state(const struct xs_look *look);
/* What --top, JSON and Prometheus call a kind: "task", "call", "kernel", "copy". */
const char *xs_look_kind(uint32_t kind);

/* ---- top_text.c ---- */

struct xs_page {
	char *text;
	size_t length, room;
	int width, height; /* height 0: as long as it is */
	int lines;
	bool color;
};

/* Puts a picture of all runs on an empty page. */
void xs_top_text(struct xs_page *page, const struct xs_looks *looks);

/* ---- top_json.c ---- */

void xs_top_json(FILE *out, const struct xs_looks *looks);

/* ---- export_text.c ---- */

/* Prometheus' text format; to be freed, NULL: no memory. */
char *xs_export_text(const struct xs_looks *looks, size_t *ret_length);

#endif
