#include "python_frames.h"

#include <errno.h>
#include <string.h>

#define INTERPRETERS 256u
#define DEEPEST	     65536u	 /* frames that are looked through for where C has called */
#define SHIMS	     64u	 /* frames in a row that are no function's */
#define OFFSET_MAX   (16u << 20) /* of a member in its struct */
#define LINES_MAX    (1u << 20)	 /* bytes of a table of lines that are read */

static bool get(const struct xs_python *python, uint64_t address, void *to, size_t bytes)
{
	return address && !python->read(python->data, address, to, bytes);
}

/* A pointer at `address + offset`; 0 also if it cannot be read. */
static uint64_t pointer(const struct xs_python *python, uint64_t address, uint32_t offset)
{
	uint64_t value;

	return address && get(python, address + offset, &value, sizeof(value)) ? value : 0;
}

/* ---- the interpreter ---- */

static bool layout_from_runtime(struct xs_python *python)
{
	uint64_t word[XS_PYTHON_DEBUG_WORDS];

	if (!get(python, python->runtime, word, sizeof(word)) ||
	    memcmp(word, "xdebugpy", sizeof(word[0])) ||
	    (word[XS_PYTHON_VERSION] >> 16 & 0xffff) != (3u << 8 | python->minor))
		return false;
	for (uint32_t i = XS_PYTHON_INTERPRETERS; i < XS_PYTHON_DEBUG_WORDS; i++)
		if (word[i] > OFFSET_MAX)
			return false;
	python->free_threaded = word[XS_PYTHON_FREE_THREADED];
#define OFFSET(of) ((uint32_t)word[XS_PYTHON_##of])
	python->layout = (struct xs_python_layout){
		.interpreters = OFFSET(INTERPRETERS),
		.next_interpreter = OFFSET(NEXT_INTERPRETER),
		.threads = OFFSET(THREADS),
		.next_thread = OFFSET(NEXT_THREAD),
		.pthread = OFFSET(PTHREAD),
		.native_id = OFFSET(NATIVE_ID),
		.frame = OFFSET(FRAME),
		.previous = OFFSET(PREVIOUS),
		.code = OFFSET(CODE),
		.instruction = OFFSET(INSTRUCTION),
		.owner = OFFSET(OWNER),
		.name = OFFSET(NAME),
		.qualname = OFFSET(QUALNAME),
		.file = OFFSET(FILE),
		.first_line = OFFSET(FIRST_LINE),
		.lines = OFFSET(LINES),
		.bytecode = OFFSET(BYTECODE),
		.ascii = OFFSET(ASCII),
		.other = OFFSET(ASCII) + 16,
	};
#undef OFFSET
	return true;
}

int xs_python_init(struct xs_python *python, xs_python_read *read, void *data, uint64_t runtime,
		   uint32_t minor)
{
	*python = (struct xs_python){
		.read = read, .data = data, .runtime = runtime, .minor = minor
	};
	if (minor < XS_PYTHON_OLDEST || minor > XS_PYTHON_NEWEST)
		return -ENOTSUP;
	if (minor > XS_PYTHON_TABLED)
		return layout_from_runtime(python) ? 0 : -ENOTSUP;
	python->layout = xs_python_layouts[minor - XS_PYTHON_OLDEST];
	return 0;
}

uint32_t xs_python_threads(const struct xs_python *python, struct xs_python_thread *threads,
			   uint32_t room)
{
	const struct xs_python_layout *at = &python->layout;
	uint64_t interpreter = pointer(python, python->runtime, at->interpreters);
	uint32_t count = 0;

	for (uint32_t i = 0; interpreter && i < INTERPRETERS; i++) {
		uint64_t state = pointer(python, interpreter, at->threads);

		for (; state && count < room; state = pointer(python, state, at->next_thread))
			threads[count++] = (struct xs_python_thread){
				.state = state,
				.pthread = pointer(python, state, at->pthread),
				.tid = at->native_id ? pointer(python, state, at->native_id) : 0,
			};
		interpreter = pointer(python, interpreter, at->next_interpreter);
	}
	return count;
}

/* ---- frames ---- */

static bool is_code(const struct xs_python *python, uint64_t code)
{
	return code &&
	       (!python->code_type || pointer(python, code, XS_PYTHON_TYPE) == python->code_type);
}

static uint32_t instruction_of(const struct xs_python *python, uint64_t frame, uint64_t code)
{
	const struct xs_python_layout *at = &python->layout;
	int32_t index = 0;
	uint64_t place;

	if (!at->bytecode) { /* -1: it has not begun; 3.10 counts instructions, which have 2 bytes
			      */
		if (!get(python, frame + at->instruction, &index, sizeof(index)) || index < 0)
			return 0;
		return python->minor == 10 ? (uint32_t)index * 2 : (uint32_t)index;
	}
	place = pointer(python, frame, at->instruction);
	code += at->bytecode;
	return place > code && place - code < UINT32_MAX ? (uint32_t)(place - code) : 0;
}

/* Is this one C's, and no function's? */
static bool is_shim(const struct xs_python *python, uint64_t frame)
{
	uint8_t owner = 0;

	return python->minor >= 12 && get(python, frame + python->layout.owner, &owner, 1) &&
	       owner >= XS_PYTHON_OWNED_BY_C;
}

static bool is_entry(const struct xs_python *python, uint64_t frame, uint64_t previous)
{
	uint8_t flag = 0;

	if (python->minor < 11)
		return true;
	if (python->layout.is_entry)
		return get(python, frame + python->layout.is_entry, &flag, 1) && flag;
	return !previous || is_shim(python, previous);
}

void xs_python_begin(const struct xs_python *python, uint64_t state, struct xs_python_walk *walk)
{
	const struct xs_python_layout *at = &python->layout;

	walk->cframe = at->cframe ? pointer(python, state, at->cframe) : 0;
	walk->frame = pointer(python, at->cframe ? walk->cframe : state, at->frame);
}

bool xs_python_next(const struct xs_python *python, struct xs_python_walk *walk,
		    struct xs_python_frame *ret)
{
	const struct xs_python_layout *at = &python->layout;

	for (uint32_t shims = 0; walk->frame && shims < SHIMS; shims++) {
		uint64_t frame = walk->frame, code = pointer(python, frame, at->code);

		walk->frame = pointer(python, frame, at->previous);
		if (is_shim(python, frame) || !is_code(python, code))
			continue;
		*ret = (struct xs_python_frame){
			.code = code,
			.instruction = instruction_of(python, frame, code),
			.is_entry = is_entry(python, frame, walk->frame),
		};
		if (ret->is_entry && walk->cframe)
			walk->cframe = pointer(python, walk->cframe, at->frame + 8);
		return true;
	}
	walk->frame = 0;
	return false;
}

uint64_t xs_python_native(const struct xs_python *python, const struct xs_python_walk *walk)
{
	uint64_t frame = walk->frame;

	if (python->minor < 11 || walk->cframe)
		return walk->cframe;
	/* it lies below the first one that C has called */
	for (uint32_t i = 0; frame && i < DEEPEST; i++) {
		if (is_shim(python, frame) && frame != walk->frame)
			return frame;
		frame = pointer(python, frame, python->layout.previous);
	}
	return 0;
}

uint32_t xs_python_frames(const struct xs_python *python, uint64_t state,
			  struct xs_python_frame *frames, uint32_t room, bool *ret_more)
{
	struct xs_python_walk walk;
	struct xs_python_frame beyond;
	uint32_t count = 0;

	xs_python_begin(python, state, &walk);
	while (count < room && xs_python_next(python, &walk, &frames[count]))
		count++;
	*ret_more = count == room && xs_python_next(python, &walk, &beyond);
	return count;
}

/* ---- texts ---- */

static uint32_t put_character(char *out, uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* A text that could be read, if not empty. */
static bool get_text(const struct xs_python *python, uint64_t text, struct xs_python_text *ret)
{
	const uint32_t most = XS_PYTHON_TEXT_MAX - 1;
	uint64_t from, length = pointer(python, text, XS_PYTHON_TEXT_LENGTH);
	uint32_t state, kind;
	uint8_t chunk[64]; /* a multiple of each kind */

	ret->length = 0;
	if (!text || !length || !get(python, text + XS_PYTHON_TEXT_STATE, &state, sizeof(state)))
		return false;
	kind = XS_PYTHON_TEXT_KIND(state);
	if (!XS_PYTHON_TEXT_COMPACT(state) || (kind != 1 && kind != 2 && kind != 4))
		return false;
	from = text + (XS_PYTHON_TEXT_ASCII(state) ? python->layout.ascii : python->layout.other);
	if (length > most)
		length = most;
	for (uint64_t done = 0; done < length * kind;) {
		uint64_t part = length * kind - done;

		if (part > sizeof(chunk))
			part = sizeof(chunk);
		if (!get(python, from + done, chunk, part))
			return false;
		for (uint32_t i = 0; i < part; i += kind) {
			uint32_t c = 0;
			char out[4];
			uint32_t size;

			memcpy(&c, chunk + i, kind);
			size = put_character(out, c);
			if (ret->length + size > most)
				return true;
			memcpy(ret->text + ret->length, out, size);
			ret->length += size;
		}
		done += part;
	}
	return true;
}

static void text_or(const struct xs_python *python, uint64_t text, struct xs_python_text *ret)
{
	if (!get_text(python, text, ret)) {
		ret->text[0] = '?';
		ret->length = 1;
	}
	ret->text[ret->length] = '\0';
}

void xs_python_function(const struct xs_python *python, uint64_t code, struct xs_python_text *ret)
{
	uint32_t name = python->layout.qualname ? python->layout.qualname : python->layout.name;

	text_or(python, pointer(python, code, name), ret);
}

void xs_python_file(const struct xs_python *python, uint64_t code, struct xs_python_text *ret)
{
	text_or(python, pointer(python, code, python->layout.file), ret);
}

/* ---- lines ---- */

/* A table of lines, byte by byte. */
struct table {
	const struct xs_python *python;
	uint64_t next, end;   /* addresses */
	uint32_t used, there; /* in the chunk */
	uint8_t chunk[64];
};

static int next_byte(struct table *table)
{
	if (table->used == table->there) {
		uint64_t part = table->end - table->next;

		if (part > sizeof(table->chunk))
			part = sizeof(table->chunk);
		if (!part || !get(table->python, table->next, table->chunk, part))
			return -1;
		table->next += part;
		table->there = (uint32_t)part;
		table->used = 0;
	}
	return table->chunk[table->used++];
}

/* 3.8, 3.9: pairs of steps, of bytecode and of lines; the instruction is of the line before. */
static int64_t line_by_steps(struct table *table, uint32_t instruction, int64_t line)
{
	int64_t at = 0;
	int code, lines;

	while ((code = next_byte(table)) >= 0 && (lines = next_byte(table)) >= 0) {
		at += code;
		if (at > instruction)
			break;
		line += (int8_t)lines;
	}
	return line;
}

/* 3.10: likewise, but each pair is of the instructions that its step passes. */
static int64_t line_by_ranges(struct table *table, uint32_t instruction, int64_t line)
{
	int64_t end = 0;
	int code, lines;

	while ((code = next_byte(table)) >= 0 && (lines = next_byte(table)) >= 0) {
		bool none = (int8_t)lines == -128;

		end += code;
		line += none ? 0 : (int8_t)lines;
		if (end > instruction)
			return none ? 0 : line;
	}
	return 0;
}

/* 6 bits a byte, the lowest first; the seventh: more come. */
static uint64_t next_number(struct table *table)
{
	uint64_t value = 0;
	int byte;

	for (uint32_t shift = 0; (byte = next_byte(table)) >= 0; shift += 6) {
		if (shift < 60)
			value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

/* 3.11 and later: entries of a first byte, how many code units they are for, and the lines. */
static int64_t line_by_locations(struct table *table, uint32_t instruction, int64_t line)
{
	int64_t end = 0;
	int first = next_byte(table);

	while (first >= 0) {
		uint32_t form = (uint32_t)first >> 3 & 15;

		if (!(first & 128))
			return 0;
		end += 2 * ((first & 7) + 1);
		if (form == 13 || form == 14) {
			uint64_t number = next_number(table);
			int64_t step = (int64_t)(number >> 1);

			line += number & 1 ? -step : step;
		} else if (form >= 10 && form <= 12) {
			line += form - 10;
		}
		if (end > instruction)
			return form == 15 ? 0 : line;
		do /* to the next first byte: columns are of no interest */
			first = next_byte(table);
		while (first >= 0 && !(first & 128));
	}
	return 0;
}

uint32_t xs_python_first_line(const struct xs_python *python, uint64_t code)
{
	int32_t line = 0;

	return code && get(python, code + python->layout.first_line, &line, sizeof(line)) &&
			       line > 0
		       ? (uint32_t)line
		       : 0;
}

uint32_t xs_python_line(const struct xs_python *python, const struct xs_python_frame *frame)
{
	uint64_t lines = pointer(python, frame->code, python->layout.lines),
		 size = pointer(python, lines, XS_PYTHON_BYTES_SIZE);
	struct table table = { .python = python, .next = lines + XS_PYTHON_BYTES };
	int64_t line = xs_python_first_line(python, frame->code);

	if (!lines)
		return 0;
	table.end = table.next + (size < LINES_MAX ? size : LINES_MAX);
	if (python->minor < 10)
		line = line_by_steps(&table, frame->instruction, line);
	else if (python->minor == 10)
		line = line_by_ranges(&table, frame->instruction, line);
	else
		line = line_by_locations(&table, frame->instruction, line);
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

uint64_t xs_python_check_of(const struct xs_python *python, uint64_t code)
{
	const struct xs_python_layout *at = &python->layout;
	uint64_t name = pointer(python, code, at->name);

	if (!name)
		return 0;
	return xs_python_check(pointer(python, name, XS_PYTHON_TEXT_HASH),
			       pointer(python, code, at->file), xs_python_first_line(python, code),
			       at->qualname ? pointer(python, code, at->qualname) : 0);
}
