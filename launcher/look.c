/*
 * Asks drain processes for pictures of their runs (live_picture.h) and reads them.
 *
 * A run's directory and files are this user's (common/shm.c looks); but every process of the user
 * may have written there, so sizes are checked and texts made plain.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "look.h"
#include "text.h"

#define PATIENCE_NS 1000000000u
#define PICTURE_MAX (4u << 20) /* bytes */

static void make_plain(char *text, size_t room)
{
	char plain[512];
	size_t n = strnlen(text, room - 1);
	char *end = xs_plain(plain, text, n);

	memcpy(text, plain, (size_t)(end - plain));
	text[end - plain] = '\0';
}

static bool is_whole(const struct xs_live_head *head, uint64_t size)
{
	return size >= sizeof(*head) && head->magic == XS_LIVE_MAGIC &&
	       head->version == XS_SHM_VERSION && head->process_count <= XS_LIVE_PROCESSES &&
	       head->device_count <= XS_LIVE_DEVICES &&
	       head->name_count <= XS_LIVE_KINDS * XS_LIVE_NAMES &&
	       size == sizeof(*head) + head->process_count * sizeof(struct xs_live_process) +
			       head->device_count * sizeof(struct xs_live_device) +
			       head->name_count * sizeof(struct xs_live_name);
}

static void make_texts_plain(struct xs_look *look)
{
	struct xs_live_process *process = (struct xs_live_process *)xs_look_processes(look);
	struct xs_live_device *device = (struct xs_live_device *)xs_look_devices(look);
	struct xs_live_name *name = (struct xs_live_name *)xs_look_names(look);

	for (uint32_t i = 0; i < look->picture->process_count; i++) {
		make_plain(process[i].name, sizeof(process[i].name));
		make_plain(process[i].in_call, sizeof(process[i].in_call));
	}
	for (uint32_t i = 0; i < look->picture->device_count; i++)
		make_plain(device[i].name, sizeof(device[i].name));
	for (uint32_t i = 0; i < look->picture->name_count; i++)
		make_plain(name[i].name, sizeof(name[i].name));
}

/* As it is now: what is there may be exchanged, not changed. */
static void read_picture(const struct xs_launch *run, struct xs_look *look)
{
	int directory = xs_shm_open_directory(run->dir);
	int fd = directory < 0 ? -1 : xs_shm_open(directory, XS_LIVE_FILE, XS_SHM_READ);
	struct xs_live_head *picture = NULL;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0 && st.st_size <= PICTURE_MAX)
		picture = malloc((size_t)st.st_size);
	if (picture && pread(fd, picture, (size_t)st.st_size, 0) == st.st_size &&
	    is_whole(picture, (uint64_t)st.st_size)) {
		look->picture = picture;
		make_texts_plain(look);
	} else {
		free(picture);
	}
	if (fd >= 0)
		(void)close(fd);
	if (directory >= 0)
		(void)close(directory);
}

/* The application's arguments, each of which ends with a NUL. */
static void put_command(const struct xs_control *control, struct xs_look *look)
{
	size_t length = control->command_length, n = sizeof(look->command) - 1;

	if (length > sizeof(control->command))
		length = sizeof(control->command);
	if (length < n)
		n = length;
	memcpy(look->command, control->command, n);
	while (n && !look->command[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		if (!look->command[i])
			look->command[i] = ' ';
	look->command[n] = '\0';
	make_plain(look->command, sizeof(look->command));
}

static void describe(const struct xs_launch *run, struct xs_look *look)
{
	const struct xs_control *control = run->control;

	memcpy(look->run_id, control->run_id, sizeof(look->run_id));
	make_plain(look->run_id, sizeof(look->run_id));
	memcpy(look->session, control->options.session, sizeof(look->session) - 1);
	make_plain(look->session, sizeof(look->session));
	look->rank = control->rank;
	look->pid = control->app_pid;
	put_command(control, look);
}

static void ask(const struct xs_launch *run, uint32_t *ret_number)
{
	/* pairs with the acquire of the drain process */
	*ret_number =
		atomic_fetch_add_explicit(&run->control->live_asked, 1, memory_order_release) + 1;
	xs_doorbell_ring(&run->mailbox->bell);
}

/* False: it does not answer in time, or has ended. */
static bool await(const struct xs_launch *run, uint32_t number, uint64_t deadline)
{
	_Atomic uint32_t *served = &run->control->live_served;

	for (;;) {
		uint32_t seen = atomic_load_explicit(served, memory_order_acquire);

		if ((int32_t)(seen - number) >= 0)
			return true;
		if (xs_clock_ns(CLOCK_MONOTONIC) > deadline ||
		    !xs_session_drain_lives(run->control))
			return false;
		xs_futex_wait(served, seen, 20000000);
	}
}

static void look_at(const struct xs_launch *runs, struct xs_looks *looks)
{
	uint32_t *number = calloc(looks->count, sizeof(*number));
	uint64_t deadline = xs_clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

	for (size_t i = 0; number && i < looks->count; i++)
		ask(&runs[i], &number[i]);
	for (size_t i = 0; number && i < looks->count; i++) {
		describe(&runs[i], &looks->of[i]);
		if (await(&runs[i], number[i], deadline))
			read_picture(&runs[i], &looks->of[i]);
	}
	free(number);
}

struct xs_looks xs_look(const char *session, const struct xs_launch *only)
{
	struct xs_looks looks = { NULL, 0 };
	struct xs_launch *found = NULL;

	if (only)
		looks.count = 1;
	else if (!strcmp(session, "*"))
		looks.count = xs_session_all(&found);
	else
		looks.count = xs_session_open(session, &found);
	looks.of = looks.count ? calloc(looks.count, sizeof(*looks.of)) : NULL;
	if (looks.of)
		look_at(only ? only : found, &looks);
	if (!only)
		xs_session_close(found, looks.count);
	if (!looks.of)
		looks.count = 0;
	return looks;
}

void xs_looks_free(struct xs_looks *looks)
{
	for (size_t i = 0; i < looks->count; i++)
		free(looks->of[i].picture);
	free(looks->of);
	looks->of = NULL;
	looks->count = 0;
}

const char *xs_look_state(const struct xs_look *look)
{
	if (!look->picture)
		return "no answer";
	if (look->picture->paused & XS_PAUSE_STOPPED)
		return "stopped";
	return look->picture->paused ? "paused" : "records";
}

const char *xs_look_kind(uint32_t kind)
{
	static const char *const kinds[XS_LIVE_KINDS] = { "task", "call", "kernel", "copy" };

	return kind < XS_LIVE_KINDS ? kinds[kind] : "other";
}
