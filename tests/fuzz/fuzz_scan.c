/*
 * Any bytes as a trace for xstrace-merge: the reader comes to an end, and all that it gives is JSON
 * to the letter.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "json_check.h"
#include "reader.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(struct xf_text value)
{
	size_t at;

	if (value.n && !json_check(value.p, value.n, &at))
		abort();
}

static void check_member(void *user, struct xf_text key, struct xf_text value)
{
	(void)user, (void)key;
	check(value);
	(void)xf_find(value, "host");
}

/*
 * What was read of a slice in xstrace's own layout by the short way is what the long way finds in
 * the same text.
 */
static void check_own(const struct xf_event *event)
{
	char *rest = malloc(event->own_rest.n);
	int64_t numbers[4];

	if (!xf_integer(event->pid, &numbers[0]) || !xf_integer(event->tid, &numbers[1]) ||
	    !xf_nanoseconds(event->ts, &numbers[2]) || !xf_nanoseconds(event->dur, &numbers[3]))
		abort();
	if (numbers[0] != event->own_pid || numbers[1] != event->own_tid ||
	    numbers[2] != event->own_ts || numbers[3] != event->own_dur)
		abort();
	memcpy(rest, event->own_rest.p, event->own_rest.n);
	rest[0] = '{'; /* for the comma */
	check((struct xf_text){ rest, event->own_rest.n });
	free(rest);
}

static void check_event(const struct xf_event *event)
{
	const struct xf_text values[] = { event->ph,   event->ts,   event->id,	 event->bp,
					  event->pid,  event->tid,  event->dur,	 event->cat,
					  event->name, event->args, event->scope };
	struct xf_text key, value;
	const char *p = xf_first(event->args);
	char text[300];
	int64_t number;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		check(values[i]);
		(void)xf_integer(values[i], &number);
		(void)xf_nanoseconds(values[i], &number);
		if (xf_is_string(values[i]) &&
		    xf_unescape(values[i], text, sizeof(text)) >= sizeof(text))
			abort();
	}
	if (event->is_own)
		check_own(event);
	for (uint32_t i = 0; i < event->other_count; i++) {
		struct xf_text member = event->others[i];
		char *object = malloc(member.n + 2);

		object[0] = '{';
		memcpy(object + 1, member.p, member.n);
		object[member.n + 1] = '}';
		check((struct xf_text){ object, member.n + 2 });
		free(object);
	}
	if (event->args.n && event->args.p[0] == '{')
		while (xf_member(&p, event->args.p + event->args.n, &key, &value))
			check(value);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	/* the first byte: how much is seen at once */
	struct xm_reader reader = { .member = check_member };
	static struct xm_file file = { .fd = -1, .window_log = XM_WINDOW_LOG };
	struct xf_event event;
	const char *why;

	if (!size)
		return 0;
	if (file.fd < 0)
		file.fd = memfd_create("trace", MFD_CLOEXEC);
	file.size = (off_t)size - 1;
	if (file.fd < 0 || pwrite(file.fd, data + 1, size - 1, 0) != file.size)
		abort();
	if (!xm_reader_open(&reader, &file, 16 + data[0], &why))
		while (xm_reader_next(&reader, &event))
			check_event(&event);
	xm_reader_close(&reader);
	return 0;
}
