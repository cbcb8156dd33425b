/*
 * The pieces that the Chrome JSON of all kinds of events has in common.
 */
#include "activity_types.h"
#include "kineto.h"
#include "names.h"

/* A name that is not kept ready. */
bool xs_chrome_wants_task(const struct xs_process *process, uint32_t id)
{
	const struct xs_chrome *chrome = xs_chrome_of(process);
	size_t length;
	const char *text;

	if (chrome->types == UINT64_MAX)
		return true;
	text = xs_text_of(process->run, id, &length);
	return xs_chrome_wants(chrome, xs_kineto_is_operation(&text, &length)
					       ? XS_TYPE_CPU_OP
					       : XS_TYPE_USER_ANNOTATION);
}

char *xs_chrome_put_long_name(char *o, struct xs_process *process, uint32_t id)
{
	size_t length;
	const char *text = xs_text_of(process->run, id, &length);

	o = xs_put(xs_put(o, xs_chrome_category(process, &text, &length)), ",\"name\":\"");
	/*
	 * bounded by XS_OUTPUT_SLACK: a name is at most XS_STRING_MAX bytes, six times that would
	 * not fit
	 */
	o = xs_json_escape(o, text, length < 8192 ? length : 8192);
	return xs_put(o, "\"},\n");
}

char *xs_chrome_put_metadata(char *out, const char *name, uint64_t pid, uint64_t tid)
{
	out = xs_put(xs_put(xs_put(out, "{\"ph\":\"M\",\"name\":\""), name), "\",\"pid\":");
	out = xs_put(xs_json_uint(out, pid), ",\"tid\":");
	return xs_put(xs_json_uint(out, tid), ",\"args\":{");
}

char *xs_chrome_put_rank(char *o, const struct xs_process *process)
{
	int32_t rank = xs_process_rank(process);

	return rank < 0 ? o : xs_put(xs_put_count(o, "RANK ", (uint64_t)rank), " ");
}

char *xs_chrome_put_bare_name(char *o, struct xs_process *process, uint32_t id)
{
	const struct xs_json_name name = xs_json_name_of(process, id);
	size_t length, skip = name.skip;
	const char *text;
	char *end;

	if (__builtin_expect(name.length, 1)) {
		memcpy(o, name.text + skip, XS_NAME_SLACK - skip);
		return o + name.length - skip;
	}
	text = xs_text_of(process->run, id, &length);
	skip = strlen(xs_chrome_category(process, &text, &length));
	end = xs_chrome_put_name(o, process, id);
	memmove(o, o + skip, (size_t)(end - o) - skip);
	return end - skip;
}

uint32_t xs_chrome_own_number(struct xs_process *process)
{
	struct xs_kept_numbers *kept = xs_chrome_numbers(process);
	uint32_t number = xs_chrome_of(process)->next_own++;

	if (kept)
		kept->own = number + 1;
	return number;
}

uint32_t xs_chrome_lane(struct xs_process *process, struct xs_lanes *lanes, const char *title,
			uint64_t start, uint64_t end, enum xs_fit fit)
{
	struct xs_lane *lane = xs_lanes_take(lanes, start, end, fit);
	struct xs_chrome *chrome = xs_chrome_of(process);
	size_t length = strlen(title);
	char *o;

	if (!lane)
		process->omitted[XS_OMIT_SLICES]++;
	if (!lane || lane->tid)
		return lane ? lane->tid : 0;
	lane->tid = XS_OWN_TID + xs_chrome_own_number(process);
	o = xs_chrome_put_metadata(xs_output_put(&chrome->out), "thread_name",
				   (uint64_t)process->pid, lane->tid);
	o = xs_json_escape(xs_put(o, "\"name\":\""), title, length < 1024 ? length : 1024);
	if (lanes->count > 1)
		o = xs_put_count(o, " lane ", lanes->count);
	xs_chrome_finish(chrome, xs_put(o, "\"}},\n"));
	return lane->tid;
}

char *xs_chrome_begin_far(char *o, struct xs_begun *begun, const char *text, uint32_t length,
			  uint64_t start, uint64_t duration)
{
	char *begin = o;

	memcpy(o, text, XS_CHUNK);
	o += length;
	if (start >= XS_JSON_TIME_LOW) { /* else the number of its digits changes */
		o = xs_json_uint(o, start / XS_JSON_TIME_LOW);
		begun->from = start - start % XS_JSON_TIME_LOW;
		begun->length = (uint32_t)(o - begin);
		memcpy(begun->text, begin, sizeof(begun->text));
		o = xs_json_micros_low(o, (uint32_t)(start % XS_JSON_TIME_LOW));
	} else {
		o = xs_json_micros(o, start);
	}
	return xs_json_micros(xs_put(o, ",\"dur\":"), duration);
}

struct xs_own *xs_chrome_own(struct xs_chrome *chrome, uint64_t pid, uint64_t tid)
{
	struct xs_own *own = &chrome->own[(tid + 7 * pid) % XS_OWN];
	char *o;

	/* length: Kineto's first device has a track 0 of a process 0 */
	if (__builtin_expect(own->tid == tid && own->pid == pid && own->length, 1))
		return own;
	o = xs_put(xs_put_count(xs_put_count(own->text, "{\"ph\":\"X\",\"tid\":", tid),
				",\"pid\":", pid),
		   ",\"ts\":");
	own->length = (uint32_t)(o - own->text);
	o = xs_put(xs_put_count(xs_put_count(own->arrow,
					     "{\"ph\":\"f\",\"bp\":\"e\",\"tid\":", tid),
				",\"pid\":", pid),
		   ",\"ts\":");
	own->arrow_length = (uint32_t)(o - own->arrow);
	own->tid = tid;
	own->pid = pid;
	own->begun.from = 0;
	return own;
}

char *xs_chrome_put_facts(char *o, const struct xs_fact *facts, uint32_t count, bool lists)
{
	count = count < XS_FACTS_MAX ? count : XS_FACTS_MAX;
	for (uint32_t i = 0; i < count;) {
		uint32_t first = i++;
		bool list;

		while (i < count && !facts[i].key)
			i++;
		list = lists || i - first > 1;
		o = xs_put(xs_put(xs_put(o, ",\""), facts[first].key), list ? "\":[" : "\":");
		for (uint32_t k = first; k < i; k++)
			o = xs_json_uint(k > first ? xs_put(o, ",") : o, facts[k].value);
		o = xs_put(o, list ? "]" : "");
	}
	return o;
}
