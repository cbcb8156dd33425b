#include "doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "options.h"
#include "streams.h"
#include "text.h"
#include "version.h"

#define LINES 128u
#define TEXT  1024u

static struct line {
	enum dr_state state;
	const char *what, *todo, *section; /* what NULL: a section begins */
	char text[TEXT];
} lines[LINES];
static unsigned count;

void dr_say(enum dr_state state, const char *what, const char *todo, const char *format, ...)
{
	struct line *line = &lines[count];
	va_list args;

	if (count == LINES)
		return;
	count++;
	line->state = state;
	line->what = what;
	line->todo = todo;
	va_start(args, format);
	(void)vsnprintf(line->text, sizeof(line->text), format, args);
	va_end(args);
}

void dr_section(const char *title, const char *key)
{
	if (count == LINES)
		return;
	lines[count].section = key;
	(void)snprintf(lines[count++].text, TEXT, "%s", title);
}

static const char *word_of(enum dr_state state)
{
	static const char *const words[] = { "ok", "note", "missing", "bad" };

	return words[state];
}

static void print_text(void)
{
	char plain[3 * TEXT];

	for (unsigned i = 0; i < count; i++) {
		*xs_plain(plain, lines[i].text, strlen(lines[i].text)) = '\0';
		if (lines[i].what)
			printf("  %-8s%-18s%s%s%s\n", word_of(lines[i].state), lines[i].what, plain,
			       lines[i].todo ? "; to do: " : "",
			       lines[i].todo ? lines[i].todo : "");
		else
			printf("%s%s\n", i ? "\n" : "", plain);
	}
}

static void print_string(const char *text)
{
	static char out[6 * TEXT + 64];

	*xs_json_escape(out, text, strlen(text)) = '\0';
	printf("\"%s\"", out);
}

static void print_json(int status)
{
	bool open = false, first = true;

	printf("{\"tool\":\"xstrace\",\"version\":\"" XS_VERSION "\",\"status\":%d", status);
	for (unsigned i = 0; i < count; i++) {
		if (!lines[i].what) {
			printf("%s,\n\"%s\":[", open ? "]" : "", lines[i].section);
			open = first = true;
			continue;
		}
		printf("%s\n{\"name\":", first ? "" : ",");
		print_string(lines[i].what);
		printf(",\"state\":\"%s\",\"text\":", word_of(lines[i].state));
		print_string(lines[i].text);
		if (lines[i].todo) {
			printf(",\"todo\":");
			print_string(lines[i].todo);
		}
		putchar('}');
		first = false;
	}
	printf("%s}\n", open ? "]" : "");
}

int dr_print(bool json)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < count; i++)
		bad += lines[i].what && lines[i].state == DR_BAD;
	if (json) {
		print_json(bad > 0);
	} else {
		print_text();
		if (bad)
			printf("\n%u thing%s to be mended: see \"bad\" above.\n", bad,
			       bad == 1 ? " is" : "s are");
		else
			puts("\nxstrace works here.");
	}
	return xs_printed("xstrace") ? bad > 0 : XS_EXIT_SELF;
}
