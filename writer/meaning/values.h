/*
 * How arguments and results of calls are written out.
 */
#ifndef XS_VALUES_H
#define XS_VALUES_H

#include "functions.h"
#include "record.h"
#include "sink.h"

/* Text, or the inside of a JSON object, while it is put together; what does not fit is left out. */
struct xs_line {
	char *at, *stop; /* behind `stop` is room for XS_LINE_SLACK bytes */
	bool json, some; /* some: members of the JSON object that is being written */
	const struct xs_handles *handles; /* NULL: nothing has a name */
};

/* Names of handles, the newest ones: where two meet the older one goes. */
#define XS_HANDLES 1024u
struct xs_handles {
	struct {
		uint64_t handle;
		char name[120];
	} known[XS_HANDLES];
};
void xs_handles_learn(struct xs_handles *handles, const struct xs_function *function,
		      const struct xs_values_record *values);
#define XS_LINE_SLACK 8192u

void xs_line_put(struct xs_line *line, const char *text);
/* The arguments as they were given; outs: the record's values, NULL: none (yet). */
void xs_show_arguments(struct xs_line *line, const struct xs_function *function,
		       const uint64_t *words, uint32_t count,
		       const struct xs_values_record *values);
/*
 * What the call returned and stored; late: also what was read, which xs_show_arguments() did not
 * know.
 */
void xs_show_values(struct xs_line *line, const struct xs_api *api,
		    const struct xs_function *function, const struct xs_values_record *values,
		    bool late);
void xs_show_result(struct xs_line *line, const struct xs_api *api,
		    const struct xs_function *function, int64_t result, bool failed);

/* Longer ones are cut. */
#define XS_SHOWN_LINE 65536u
/*
 * As a JSON object: what the call was given, or what came back. At most XS_SHOWN_LINE / 2 +
 * XS_LINE_SLACK + 2 bytes; returns the end.
 */
char *xs_show_given(char *out, const struct xs_function *function, const struct xs_given *given);
char *xs_show_returned(char *out, const struct xs_api *api, const struct xs_function *function,
		       const struct xs_given *given);
/*
 * The result as text, in `text` of XS_RESULT_MAX bytes: a constant's name and a number are far from
 * filling it. NULL: it returns none.
 */
#define XS_RESULT_MAX 256u
const char *xs_show_returned_result(const struct xs_api *api, const struct xs_function *function,
				    int64_t result, char *text);

#endif
