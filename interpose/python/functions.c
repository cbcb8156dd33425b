/*
 * What is known of each function: what it is called, whether the options want it, and how often it
 * was called for how long.
 *
 * By the address of its code object, with what tells it from one that lay there before
 * (xs_python_check()).
 */
#include "python_stacks.h"
#include "task_record.h"

#include <string.h>

#define ENTRIES 65536u /* a power of two */
#define TRIED	16u

/*
 * Telling a call takes some 100 ns. A function that takes less than ten times that, many times, is
 * counted from then on: what is told one by one slows the program by a tenth at most.
 */
#define MANY	  4096u
#define SHORT_NS  1000u
#define TELL_EACH 1024u /* calls that are counted */

XS_TABLE(functions_table, ENTRIES * sizeof(struct py_function));

static uint64_t word(const void *at, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)at + offset, sizeof(value));
	return value;
}

static uint64_t check_of(const struct py_object *code)
{
	const struct xs_python_layout *at = &py_here.layout;
	const void *name = (const void *)word(code, at->name);

	return xs_python_check(word(name, XS_PYTHON_TEXT_HASH), word(code, at->file),
			       (uint32_t)word(code, at->first_line),
			       at->qualname ? word(code, at->qualname) : 0);
}

/* ---- which ones are wanted ---- */

/*
 * Is the module `a.b` this file? A part of its path is a/b, as a directory or as a/b.py. Other text
 * is the name of the file as a whole ("<stdin>").
 */
static bool is_of(const char *file, const char *module, size_t length)
{
	for (const char *at = file; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		size_t i = 0;

		while (i < length && (at[i] == module[i] || (module[i] == '.' && at[i] == '/')))
			i++;
		if (i == length && (at[i] == '/' || !strcmp(at + i, ".py") || !at[i]))
			return true;
	}
	return false;
}

/*
 * The function that runs: is it of the program itself? A program may set its module's name to
 * whatever it likes; the name of code is text.
 */
static bool is_of_main(const struct py_object *code)
{
	const void *text = (const void *)word(code, py_here.layout.name);
	struct py_object *globals = py_api.PyEval_GetGlobals(); /* not ours to keep, nor the name */
	struct py_object *name = globals ? py_api.PyDict_GetItemString(globals, "__name__") : NULL;

	return name && word(name, XS_PYTHON_TYPE) == word(text, XS_PYTHON_TYPE) &&
	       !py_api.PyUnicode_CompareWithASCIIString(name, "__main__");
}

/* The last module in the list that matches decides; "-" before it: it is not wanted. */
static bool is_wanted(const struct py_object *code, const char *file, const char *list)
{
	bool wanted = strncmp(file, "<frozen ", 8) != 0, only = false, found = false, last = false;

	if (!strcmp(list, "all"))
		return wanted;
	for (const char *end; *list; list = *end ? end + 1 : end) {
		bool no = *list == '-';

		end = strchr(list, ',');
		if (!end)
			end = list + strlen(list);
		if (no)
			list++;
		only |= !no;
		if (end - list == 8 && !strncmp(list, "__main__", 8)
			    ? is_of_main(code)
			    : end > list && is_of(file, list, (size_t)(end - list))) {
			found = true;
			last = !no;
		}
	}
	return found ? last : wanted && !only;
}

static __attribute__((noinline, cold)) void know(struct py_function *function,
						 const struct py_object *code, uint64_t check)
{
	const struct xs_options *options = xs_collector_options();
	struct xs_python_text text, file;
	char number[12];
	uint32_t digits = 0, line = xs_python_first_line(&py_here, function->code), scope;
	struct xs_part parts[] = { { "Python::", 8 }, { text.text, 0 }, { " (", 2 },
				   { file.text, 0 },  { ":", 1 },	{ number, 0 },
				   { ")", 1 } };

	function->check = check;
	function->counted = false;
	function->calls = function->ticks = function->untold = function->untold_ticks = 0;
	function->name = 0;
	xs_python_file(&py_here, function->code, &file);
	if (py_cost_is_measured)
		py_cost_function = function;
	else if (!options || !is_wanted(code, file.text, options->python_stacks))
		return;
	xs_python_function(&py_here, function->code, &text);
	parts[1].length = text.length;
	parts[3].length = file.length;
	for (uint32_t rest = line; rest || !digits; rest /= 10)
		number[sizeof(number) - ++digits] = (char)('0' + rest % 10);
	parts[5].text = number + sizeof(number) - digits;
	parts[5].length = digits;
	scope = xs_name("Python", 0);
	function->name = xs_name_parts(parts, sizeof(parts) / sizeof(parts[0]), scope);
}

struct py_function *py_function(const struct py_object *code)
{
	struct py_function *functions = xs_table(&functions_table);
	uint64_t check, key = (uintptr_t)code;
	uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 48);

	if (__builtin_expect(!functions || !code, 0))
		return NULL;
	check = check_of(code);
	for (uint32_t i = 0; i < TRIED; i++, at = (at + 1) % ENTRIES) {
		struct py_function *function = &functions[at];

		if (__builtin_expect(function->code == key && function->check == check, 1))
			return function;
		if (function->code && function->code != key)
			continue;
		function->code = key;
		know(function, code, check);
		return function;
	}
	return NULL;
}

/* ---- counting ---- */

static __attribute__((noinline, cold)) void begin_counting(struct py_function *function)
{
	struct xs_part name = xs_text_of_name(function->name);
	const struct xs_part parts[] = { { "Python: counted from here on: ", 30 }, name };
	struct xs_args_record *record;
	uint32_t id = xs_name_parts(parts, 2, 0);

	function->counted = true;
	record = xs_record_begin(sizeof(*record), XS_INSTANT, XS_SOURCE_NONE, XS_SCOPE_THREAD, id,
				 XS_ROLE_OTHER);
	if (!record)
		return;
	record->event.tick = xs_tick(xs_use_tsc);
	record->id = (struct xs_id){ { 0 } };
	record->length = 0;
	record->reserved = 0;
	xs_record_end(sizeof(*record));
}

static uint32_t this_process(void)
{
	return atomic_load_explicit(&xs_gate->key, memory_order_relaxed);
}

/* In a child of fork: what is untold here its parent will tell. */
static __attribute__((noinline, cold)) void count_anew(struct py_function *function)
{
	(void)xs_collector_options(); /* it joins the run now: its key stays the same from here on
				       */
	function->process = this_process();
	function->untold = function->untold_ticks = 0;
}

static __attribute__((noinline)) void tell_counted(struct py_function *function)
{
	struct xs_called_record *record = xs_record_begin(sizeof(*record), XS_CALLED,
							  XS_SOURCE_NONE, 0, function->name,
							  XS_ROLE_OTHER);

	if (!record)
		return;
	record->event.tick = xs_tick(xs_use_tsc);
	record->calls = function->untold;
	record->duration = function->untold_ticks;
	xs_record_end(sizeof(*record));
	function->untold = function->untold_ticks = 0;
}

static void tell_all(void)
{
	struct py_function *functions = xs_table(&functions_table);

	for (uint32_t i = 0; functions && i < ENTRIES; i++)
		if (functions[i].untold && functions[i].process == this_process())
			tell_counted(&functions[i]);
}

/* By how much of both has passed since the run began. */
static double ns_of(uint64_t ticks)
{
	uint64_t passed;
	double ns;

	if (xs_is_off())
		return 0;
	passed = xs_tick(xs_use_tsc) - xs_life_began_tick();
	ns = (double)(xs_clock_ns(CLOCK_MONOTONIC) - xs_life_began_ns());
	return passed ? (double)ticks * ns / (double)passed : 0;
}

void py_function_ended(struct py_function *function, uint64_t ticks, bool counted)
{
	static struct xs_hook at_end = { .function = tell_all }, at_stop = { .function = tell_all };

	function->calls++;
	function->ticks += ticks;
	if (!py_cost_is_measured)
		xs_count_function(!counted);
	if (counted) {
		if (__builtin_expect(function->process != this_process(), 0))
			count_anew(function);
		function->untold++;
		function->untold_ticks += ticks;
		if (function->untold == TELL_EACH)
			tell_counted(function);
	} else if (__builtin_expect(function->calls % MANY == 0, 0) && !function->counted &&
		   ns_of(function->ticks) / (double)function->calls < SHORT_NS) {
		xs_at_end(&at_end);
		xs_at_stop(&at_stop);
		begin_counting(function);
	}
}
