#include "kernel_filter.h"

#include <string.h>

#include "options.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Behind a quote: up to the next one, or the end of the line. Returns where the text goes on. */
static const char *take_quoted(const char *text, char **out)
{
	while (*text && *text != '\n') {
		if (*text == '"')
			return text + 1;
		if (text[0] == '\\' && text[1] == '"')
			text++;
		*(*out)++ = *text++;
	}
	return text;
}

void xs_names_split(char *text)
{
	const char *in = text;
	char *out = text;

	while (*(in += strspn(in, ", \t\r\n"))) {
		char *piece = out;

		if (*in == '"')
			in = take_quoted(in + 1 + strspn(in + 1, " \t"), &out);
		else
			while (*in && *in != ',' && *in != '\n')
				*out++ = *in++;
		in += *in == ',' || *in == '\n'; /* before the NUL goes there */
		while (out > piece && is_blank(out[-1]))
			out--;
		if (out > piece)
			*out++ = '\0';
	}
	*out = '\0';
}

static bool is_cpp(const char *name)
{
	return name[0] == '_' && name[1] == 'Z';
}

/*
 * Of a C++ name only a piece that begins as it does looks at what the driver has: any other would
 * find its letters by chance.
 */
static bool holds_any(const char *name, const char *plain, const char *pieces)
{
	for (; *pieces; pieces += strlen(pieces) + 1) {
		const char *shown = is_cpp(name) && !is_cpp(pieces) ? plain : name;

		if (shown && strstr(shown, pieces))
			return true;
	}
	return false;
}

bool xs_kernel_wanted(const struct xs_options *options, const char *name, const char *plain)
{
	const char *include = options->include_kernels, *exclude = options->exclude_kernels;

	if (!options->has_names)
		return true;
	if (holds_any(name, plain, exclude))
		return false;
	if (!include[0] || holds_any(name, plain, include))
		return true;
	return !plain && is_cpp(name);
}

bool xs_function_wanted(const struct xs_options *options, const char *name)
{
	return !holds_any(name, name, options->exclude_calls);
}
