/*
 * What a trace says of itself: the members of its top level.
 */
#include <stdlib.h>

#include "trace.h"

#define MOST_SAID (16u << 20) /* bytes that are kept */

/* "metadata.host": "\"node7\"" */
static void keep(struct xt_trace *trace, struct xf_text of, struct xf_text key,
		 struct xf_text value)
{
	struct xt_said *said;

	if (trace->said_bytes + of.n + key.n + value.n > MOST_SAID)
		return;
	said = calloc(1, sizeof(*said));
	if (!said)
		return;
	trace->said_bytes += of.n + key.n + value.n + sizeof(*said);
	said->key = malloc(of.n + key.n + 2);
	said->value = xf_keep(value);
	if (!said->key || !said->value) {
		free(said->key);
		free(said->value);
		free(said);
		return;
	}
	if (of.n) {
		memcpy(said->key, of.p, of.n);
		said->key[of.n++] = '.';
	}
	memcpy(said->key + of.n, key.p, key.n);
	said->key[of.n + key.n] = '\0';
	*trace->said_end = said;
	trace->said_end = &said->next;
}

static void keep_all(struct xt_trace *trace, struct xf_text key, struct xf_text value)
{
	const struct xf_text none = { 0 };
	struct xf_text member, inner;
	const char *p = xf_first(value);

	if (value.p[0] != '{') {
		keep(trace, none, key, value);
		return;
	}
	while (xf_member(&p, value.p + value.n, &member, &inner))
		keep(trace, key, member, inner);
}

static void take_metadata(struct xt_trace *trace, struct xf_text value)
{
	xf_take_text(value, "tool", trace->tool, sizeof(trace->tool));
	xf_take_text(value, "version", trace->version, sizeof(trace->version));
	xf_take_text(value, "host", trace->host, sizeof(trace->host));
	xf_take_text(value, "run", trace->run, sizeof(trace->run));
	xf_take_integer(value, "rank", &trace->rank);
	xf_take_integer(value, "world_size", &trace->world_size);
	xf_take_integer(value, "pid", &trace->pid);
	trace->is_own = !strncmp(trace->tool, "xstrace", 7);
}

void xt_take_member(void *user, struct xf_text key, struct xf_text value)
{
	struct xt_trace *trace = user;
	int64_t number;

	if (xf_is(key, "baseTimeNanoseconds")) {
		if (xf_is(value, "null"))
			number = 0; /* as if nothing were said */
		else if (!xf_integer(value, &number) || number >= XT_FAR)
			number = -1;
		trace->has_odd_base = number < 0;
		trace->base = number < 0 ? 0 : number;
	} else if (xf_is(key, "metadata")) {
		take_metadata(trace, value);
	} else if (xf_is(key, "otherData")) {
		trace->has_end = true;
		xf_take_text(value, "end", trace->ended, sizeof(trace->ended));
		xf_take_integer(value, "status", &trace->status);
		xf_take_integer(value, "lost", &trace->lost);
		trace->recovered |= xf_is(xf_find(value, "recovered"), "true");
	} else if (xf_is(key, "distributedInfo")) {
		xf_take_integer(value, "rank", &trace->rank);
		xf_take_integer(value, "world_size", &trace->world_size);
	} else if (xf_is(key, "schemaVersion") || xf_is(key, "deviceProperties")) {
		trace->is_kineto = true;
		if (!trace->tool[0])
			strcpy(trace->tool, "Kineto");
	} else if (xf_is(key, "hostname") || xf_is(key, "host_name")) {
		if (xf_is_string(value))
			(void)xf_unescape(value, trace->host, sizeof(trace->host));
	}
	keep_all(trace, key, value);
}
