/*
 * Numbers against printf(), strings against a validator of their own.
 */
#include <inttypes.h>

#include "json_times.h"
#include "json_check.h"
#include "tap.h"

#define ROOM 256

/* The text between out and end is `wanted`, and nothing was touched behind the promised bytes. */
static void same(const char *buffer, const char *end, const char *wanted, const char *what,
		 uint64_t value)
{
	size_t length = (size_t)(end - buffer);

	CHECK(length == strlen(wanted) && !memcmp(buffer, wanted, length),
	      "%s(%" PRIu64 ") = \"%.*s\", not \"%s\"", what, value, (int)length, buffer, wanted);
	for (size_t i = XS_JSON_MICROS_MAX; i < ROOM; i++)
		if (!CHECK(buffer[i] == '#', "%s(%" PRIu64 ") wrote at %zu", what, value, i))
			break;
}

static void one(uint64_t value)
{
	static struct xs_json_clock clock;
	struct xs_json_clock fresh = { 0 };
	char buffer[ROOM], wanted[64];

	memset(buffer, '#', sizeof(buffer));
	(void)snprintf(wanted, sizeof(wanted), "%" PRIu64, value);
	same(buffer, xs_json_uint(buffer, value), wanted, "uint", value);
	(void)snprintf(wanted, sizeof(wanted), "%" PRIu64 ".%03u", value / 1000,
		       (unsigned)(value % 1000));
	memset(buffer, '#', sizeof(buffer));
	same(buffer, xs_json_micros(buffer, value), wanted, "micros", value);
	memset(buffer, '#', sizeof(buffer));
	same(buffer, xs_json_time(buffer, value, &clock), wanted, "time", value);
	memset(buffer, '#', sizeof(buffer));
	same(buffer, xs_json_time(buffer, value, &fresh), wanted, "time, fresh", value);
}

static void numbers_at_edges(void)
{
	for (uint64_t value = 0; value < 200000; value++)
		one(value);
	for (uint64_t power = 10; power; power = power > UINT64_MAX / 10 ? 0 : power * 10)
		for (uint64_t times = 1; times < 10; times++)
			for (int d = -3; d <= 3; d++)
				one(power * times + (uint64_t)(int64_t)d);
	for (int bit = 0; bit < 64; bit++)
		for (int d = -3; d <= 3; d++)
			one((1ull << bit) + (uint64_t)(int64_t)d);
}

static void numbers_at_random(void)
{
	unsigned long long seed = 1;

	for (int i = 0; i < 300000; i++) {
		uint64_t value = (uint64_t)tap_random(&seed) << 33 ^
				 (uint64_t)tap_random(&seed) << 11 ^ tap_random(&seed);

		one(value >> tap_random(&seed) % 64);
	}
}

/* The two times of a slice, of which one is `value` and the other something else. */
static void two_times(uint64_t value, uint32_t other)
{
	uint32_t low = (uint32_t)(value % XS_JSON_TIME_LOW), duration = other;
	char buffer[ROOM], wanted[64];

	for (int i = 0; i < 2; i++) {
		(void)snprintf(wanted, sizeof(wanted), "%05u.%03u,\"dur\":%u.%03u", low / 1000,
			       low % 1000, duration / 1000, duration % 1000);
		memset(buffer, '#', sizeof(buffer));
		same(buffer, xs_json_times(buffer, low, duration), wanted, "times", value);
		low = other % XS_JSON_TIME_LOW;
		duration = (uint32_t)value;
	}
}

static void slices(void)
{
	unsigned long long seed = 2;

	for (uint32_t value = 0; value < 200000; value++)
		two_times(value, value * 7919);
	for (uint32_t power = 1; power < 1000000000; power *= 10)
		for (uint32_t times = 1; times < 43; times++)
			for (uint32_t d = 0; d < 7; d++)
				two_times((uint64_t)power * times + d - 3, power * (times - 1) - d);
	two_times(UINT32_MAX, UINT32_MAX);
	for (int i = 0; i < 1000000; i++) {
		uint32_t value = (uint32_t)tap_random(&seed) << 16 ^ (uint32_t)tap_random(&seed);

		two_times(value >> tap_random(&seed) % 32, value * 2654435761u);
	}
}

/* Every value that one round of the digit splitting can meet. */
static void eight_digits(void)
{
	for (uint32_t value = 0; value < 10000; value++) {
		char wanted[16], got[8];
		uint64_t digits = xs_json_digits8(value * 10000 + (9999 - value)) + XS_JSON_ASCII;

		(void)snprintf(wanted, sizeof(wanted), "%04u%04u", value, 9999 - value);
		memcpy(got, &digits, 8);
		CHECK(!memcmp(got, wanted, 8), "%s", wanted);
	}
}

static void escape_is_valid(const unsigned char *text, size_t length)
{
	char out[6 * 64 + 16];
	char *end;
	size_t at;

	memset(out, '#', sizeof(out));
	end = xs_json_escape(out, (const char *)text, length);
	if (!CHECK((size_t)(end - out) <= 6 * length, "%zu bytes became %zu", length,
		   (size_t)(end - out)))
		return;
	for (size_t i = 6 * length; i < sizeof(out); i++)
		if (!CHECK(out[i] == '#', "wrote behind 6 * length"))
			return;
	CHECK(json_check_string(out, (size_t)(end - out), &at),
	      "%02x %02x %02x %02x: at %zu of %.*s", text[0], length > 1 ? text[1] : 0,
	      length > 2 ? text[2] : 0, length > 3 ? text[3] : 0, at, (int)(end - out), out);
}

static void escape_all_short_texts(void)
{
	unsigned char text[4];

	for (unsigned a = 0; a < 256; a++) {
		text[0] = (unsigned char)a;
		escape_is_valid(text, 1);
		for (unsigned b = 0; b < 256; b++) {
			text[1] = (unsigned char)b;
			escape_is_valid(text, 2);
		}
	}
	/*
	 * three and four bytes: the lead bytes of long characters, and a few bytes that matter
	 * behind them
	 */
	static const unsigned char tail[] = { 0x00, 0x22, 0x41, 0x5c, 0x7f, 0x80, 0x8f,
					      0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xe0, 0xff };
	for (unsigned a = 0xc0; a < 256; a++)
		for (unsigned b = 0x70; b < 0xd0; b++)
			for (size_t c = 0; c < sizeof(tail); c++) {
				text[0] = (unsigned char)a, text[1] = (unsigned char)b,
				text[2] = tail[c];
				escape_is_valid(text, 3);
				for (size_t d = 0; d < sizeof(tail); d++) {
					text[3] = tail[d];
					escape_is_valid(text, 4);
				}
			}
}

/* What a reader makes of the inside of a JSON string (of the escapes that are ever written). */
static size_t decode(char *out, const char *text, size_t length)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	size_t n = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] != '\\') {
			out[n++] = text[i];
		} else if (text[++i] == 'u') {
			char digits[5] = { text[i + 1], text[i + 2], text[i + 3], text[i + 4],
					   '\0' };

			out[n++] = (char)strtoul(digits, NULL, 16);
			i += 4;
		} else {
			out[n++] = to[strchr(from, text[i]) - from];
		}
	}
	return n;
}

static void becomes(const char *text, size_t length, const char *wanted, size_t wanted_length)
{
	char out[256], decoded[256];
	char *end = xs_json_escape(out, text, length);
	size_t n = decode(decoded, out, (size_t)(end - out));

	CHECK(n == wanted_length && !memcmp(decoded, wanted, n), "%.*s", (int)(end - out), out);
}

#define BECOMES(text, wanted) becomes(text, sizeof(text) - 1, wanted, sizeof(wanted) - 1)
#define STAYS(text)	      BECOMES(text, text)
#define BAD		      "\xef\xbf\xbd"

static void escape_by_example(void)
{
	STAYS("");
	STAYS("a\"b\\c/");
	STAYS("\\");
	STAYS("\\\"");
	STAYS("\n\t\r\b\f\0\x1f\x7f");
	STAYS("\xc3\xa4\xe2\x98\x83\xf0\x9f\x98\x80");
	BECOMES("\xc0\x80", BAD BAD);		      /* overlong NUL */
	BECOMES("\xc1\xbf", BAD BAD);		      /* overlong 7f */
	BECOMES("\xe0\x9f\xbf", BAD BAD BAD);	      /* overlong 7ff */
	STAYS("\xe0\xa0\x80");			      /* 800 */
	BECOMES("\xf0\x8f\xbf\xbf", BAD BAD BAD BAD); /* overlong ffff */
	STAYS("\xf0\x90\x80\x80");
	STAYS("\xed\x9f\xbf");		      /* d7ff */
	BECOMES("\xed\xa0\x80", BAD BAD BAD); /* d800, a surrogate */
	BECOMES("\xed\xbf\xbf", BAD BAD BAD); /* dfff */
	STAYS("\xee\x80\x80");		      /* e000 */
	STAYS("\xf4\x8f\xbf\xbf");
	BECOMES("\xf4\x90\x80\x80", BAD BAD BAD BAD); /* 110000 */
	BECOMES("\xf8\x88\x80\x80\x80", BAD BAD BAD BAD BAD);
	BECOMES("\xe2\x98", BAD BAD); /* cut */
	BECOMES("\xe2\x98\x22", BAD BAD "\"");
	BECOMES("\x80z", BAD "z");
}

/*
 * Perfetto's importer takes a quotation mark behind a backslash for part of the string, even if
 * that backslash ends an escape, and decodes the short escapes only.
 */
static void escape_for_perfetto(void)
{
	static const char *const texts[] = { "\\", "a\\", "\\\\", "\"\\", "\\\"" };
	char out[64];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *end = xs_json_escape(out, texts[i], strlen(texts[i]));

		CHECK(end[-1] != '\\', "%s becomes %.*s", texts[i], (int)(end - out), out);
	}
	CHECK(xs_json_escape(out, "\b\t\n\f\r", 5) == out + 10 &&
		      !memcmp(out, "\\b\\t\\n\\f\\r", 10),
	      "%.30s", out);
}

/* JSON that a program has made: the same for all readers, and valid still. */
static void copies_json(void)
{
	static const char *const texts[][2] = {
		{ "[\"a\\\\\",1]", "[\"a\\u005c\",1]" },
		{ "{\"\\\\\\\\\":\"\\\\\\\"\"}", "{\"\\\\\\u005c\":\"\\\\\\\"\"}" },
		{ "\"\\ud800\"", "\"\\ufffd\"" },
		{ "\"\\uD83D\\uDE00\\udc00\"", "\"\\uD83D\\uDE00\\ufffd\"" },
		{ "\"\\ud83d\\u0041\\\\ud800\"", "\"\\ufffd\\u0041\\\\ud800\"" },
	};
	char out[64];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *from = texts[i][0], *wanted = texts[i][1];
		char *end = xs_json_copy(out, from, strlen(from));
		size_t n = (size_t)(end - out);

		CHECK(n == strlen(wanted) && !memcmp(out, wanted, n), "%s becomes %.*s", from,
		      (int)n, out);
		CHECK(xs_json_valid(from, strlen(from)) && xs_json_valid(out, n), "%s", from);
	}
}

static void long_numbers(void)
{
	char number[4400];

	memset(number, '7', sizeof(number));
	CHECK(xs_json_valid(number, 4300) && !xs_json_valid(number, 4301), "an integer");
	number[4301] = '.';
	CHECK(xs_json_valid(number, 4400), "a fraction");
}

/* The validator is the judge: it must find faults. */
static void validator_finds_faults(void)
{
	static const char *const good[] = {
		"{}", " [1,-0.5e+3,\"a\\u00e4\\ud83d\\ude00\",null,true,false,{\"\":[]}]\n", "0"
	};
	static const char *const bad[] = { "",
					   "{",
					   "[1,]",
					   "{\"a\"}",
					   "{\"a\":1,}",
					   "01",
					   "1.",
					   "+1",
					   "nul",
					   "\"\t\"",
					   "\"\\x\"",
					   "\"\\ud800\"",
					   "\"\\udc00\"",
					   "\"\x80\"",
					   "\"\xc0\x80\"",
					   "\"\xed\xa0\x80\"",
					   "[] []",
					   "{a:1}",
					   "\"",
					   "\"\\" };
	size_t at;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(json_check(good[i], strlen(good[i]), &at), "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!json_check(bad[i], strlen(bad[i]), &at), "%s", bad[i]);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("the times of slices", slices);
	tap_run("eight digits at once", eight_digits);
	tap_run("numbers at their edges", numbers_at_edges);
	tap_run("numbers at random", numbers_at_random);
	tap_run("the validator finds faults", validator_finds_faults);
	tap_run("escape: all texts of one and two bytes, long characters", escape_all_short_texts);
	tap_run("escape: by example", escape_by_example);
	tap_run("escape: what Perfetto's parser can read", escape_for_perfetto);
	tap_run("JSON of programs: what all readers can read", copies_json);
	tap_run("JSON of programs: long numbers", long_numbers);
	return tap_done();
}
