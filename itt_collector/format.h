/*
 * Text by a format of printf(), in the program's own thread: no memory is allocated, no locale is
 * asked, errno and the floating-point environment stay as they are, and neither stack nor time grow
 * with what the program passes.
 */
#ifndef ITT_FORMAT_H
#define ITT_FORMAT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text that grows up to `room` bytes; cut: there was more. */
struct itt_text {
	char *text;
	size_t room, length;
	bool cut;
};

void itt_put(struct itt_text *out, const char *text, size_t length);
/* So many times that character, in front of what is from `at` on. */
void itt_insert(struct itt_text *out, size_t at, size_t count, char c);

/* One conversion of a format. */
struct itt_conversion {
	bool left, plus, blank, alternative, zeros;
	uint32_t width;
	int32_t precision; /* negative: none */
	char kind;	   /* the letter that ends it */
};

/* The sign that the conversion wants before a number; 0: none. */
char itt_sign(const struct itt_conversion *how, bool negative);
/* What is from `start` on gets the conversion's width; zeros, if it has them, go behind `prefix`.
 */
void itt_widen(struct itt_text *out, const struct itt_conversion *how, size_t start, size_t prefix);

/* A number, by its bits: mantissa * 2^exponent. */
struct itt_float {
	enum { ITT_FINITE, ITT_INFINITE, ITT_NO_NUMBER } is;
	bool negative;
	uint64_t mantissa;
	int32_t exponent;
};

/* format_float.c: by a, e, f or g, exactly, rounded to even. */
void itt_put_float(struct itt_text *out, const struct itt_conversion *how,
		   const struct itt_float *value);

/*
 * The whole: as vsnprintf() in the C locale, in UTF-8, without the 0 behind the text. %n stores
 * nothing, %m is the number, and from an argument with a position (%1$d) on the format is shown as
 * it is. Returns the length; *ret_cut: it would be longer.
 */
size_t itt_format(char *text, size_t room, const char *format, va_list values, bool *ret_cut);

#endif
