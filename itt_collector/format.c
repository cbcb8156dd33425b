/*
 * Texts, integers and pointers by a format of printf().
 */
#include "format.h"

#include <errno.h>
#include <string.h>
#include <wchar.h>

#define MOST 1000000u /* of a width or precision: more than any room */

void itt_put(struct itt_text *out, const char *text, size_t length)
{
	size_t room = out->room - out->length;

	if (length > room) {
		length = room;
		out->cut = true;
	}
	memcpy(out->text + out->length, text, length);
	out->length += length;
}

void itt_insert(struct itt_text *out, size_t at, size_t count, char c)
{
	size_t room = out->room - at, behind = out->length - at;

	if (count > room) {
		count = room;
		out->cut = true;
	}
	if (behind > room - count) {
		behind = room - count;
		out->cut = true;
	}
	memmove(out->text + at + count, out->text + at, behind);
	memset(out->text + at, c, count);
	out->length = at + count + behind;
}

char itt_sign(const struct itt_conversion *how, bool negative)
{
	return negative ? '-' : how->plus ? '+' : how->blank ? ' ' : '\0';
}

void itt_widen(struct itt_text *out, const struct itt_conversion *how, size_t start, size_t prefix)
{
	size_t length = out->length - start, missing;

	if (how->width <= length)
		return;
	missing = how->width - length;
	if (how->left)
		itt_insert(out, out->length, missing, ' ');
	else if (how->zeros)
		itt_insert(out, start + prefix, missing, '0');
	else
		itt_insert(out, start, missing, ' ');
}

/* ---- what stands behind a % ---- */

/* How wide an argument is. */
enum length { AS_INT, AS_CHAR, AS_SHORT, AS_LONG, AS_LONG_LONG, AS_SIZE, AS_LONG_DOUBLE };

struct arguments {
	va_list list;
};

static uint32_t number(const char **at)
{
	uint32_t value = 0;

	for (; **at >= '0' && **at <= '9'; ++*at)
		value = value < MOST ? value * 10 + (uint32_t)(**at - '0') : MOST;
	return value < MOST ? value : MOST;
}

static void read_flags(const char **at, struct itt_conversion *how)
{
	for (;; ++*at)
		switch (**at) {
		case '-':
			how->left = true;
			break;
		case '+':
			how->plus = true;
			break;
		case ' ':
			how->blank = true;
			break;
		case '#':
			how->alternative = true;
			break;
		case '0':
			how->zeros = true;
			break;
		case '\'':
		case 'I':
			break; /* the C locale has no groups, and no other digits */
		default:
			return;
		}
}

static void read_size(const char **at, struct itt_conversion *how, struct arguments *from)
{
	int value;

	if (**at == '*') {
		++*at;
		value = va_arg(from->list, int);
		how->left |= value < 0;
		how->width = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
		how->width = how->width < MOST ? how->width : MOST;
	} else {
		how->width = number(at);
	}
	how->precision = -1;
	if (**at != '.')
		return;
	++*at;
	if (**at == '*') {
		++*at;
		value = va_arg(from->list, int);
		how->precision = value < (int)MOST ? value : (int)MOST;
	} else {
		how->precision = (int32_t)number(at);
	}
}

static enum length read_length(const char **at)
{
	char first = **at;

	if (!first || !strchr("hlqjztZL", first))
		return AS_INT;
	++*at;
	if ((first != 'h' && first != 'l') || **at != first)
		return first == 'h'   ? AS_SHORT
		       : first == 'l' ? AS_LONG
		       : first == 'L' ? AS_LONG_DOUBLE
		       : first == 'q' ? AS_LONG_LONG
		       : first == 'j' ? AS_LONG_LONG
				      : AS_SIZE;
	++*at;
	return first == 'h' ? AS_CHAR : AS_LONG_LONG;
}

/* ---- conversions ---- */

static uint64_t take_integer(struct arguments *from, enum length length, bool is_signed)
{
	uint64_t value;

	if (length == AS_LONG_LONG || length == AS_LONG_DOUBLE)
		return va_arg(from->list, unsigned long long);
	if (length == AS_LONG || length == AS_SIZE) {
		value = va_arg(from->list, unsigned long);
		return is_signed ? (uint64_t)(long)value : value;
	}
	value = va_arg(from->list, unsigned);
	if (length == AS_CHAR)
		return is_signed ? (uint64_t)(int8_t)value : (uint8_t)value;
	if (length == AS_SHORT)
		return is_signed ? (uint64_t)(int16_t)value : (uint16_t)value;
	return is_signed ? (uint64_t)(int32_t)value : (uint32_t)value;
}

static void put_integer(struct itt_text *out, struct itt_conversion *how, uint64_t value, char sign)
{
	const char *figures = how->kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	uint32_t base = how->kind == 'o' ? 8 : how->kind == 'x' || how->kind == 'X' ? 16 : 10;
	size_t start = out->length, prefix, count = 0, least;
	char digits[24];

	if (sign)
		itt_put(out, &sign, 1);
	if (base == 16 && how->alternative && value) {
		itt_put(out, "0", 1);
		itt_put(out, &how->kind, 1);
	}
	prefix = out->length - start;
	for (; value; value /= base)
		digits[sizeof(digits) - ++count] = figures[value % base];
	least = how->precision < 0 ? 1 : (size_t)how->precision;
	if (base == 8 && how->alternative && least <= count)
		least = count + 1;
	if (least > count)
		itt_insert(out, out->length, least - count, '0');
	itt_put(out, digits + sizeof(digits) - count, count);
	how->zeros &= how->precision < 0;
	itt_widen(out, how, start, prefix);
}

static void put_decimal(struct itt_text *out, struct itt_conversion *how, struct arguments *from,
			enum length length)
{
	int64_t value = (int64_t)take_integer(from, length, true);

	put_integer(out, how, value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
		    itt_sign(how, value < 0));
}

static void put_pointer(struct itt_text *out, struct itt_conversion *how, const void *pointer)
{
	size_t start = out->length;

	if (pointer) {
		how->kind = 'x';
		how->alternative = true;
		put_integer(out, how, (uintptr_t)pointer, itt_sign(how, false));
		return;
	}
	itt_put(out, "(nil)", 5);
	how->zeros = false;
	itt_widen(out, how, start, 0);
}

static void put_text(struct itt_text *out, struct itt_conversion *how, const char *text)
{
	size_t start = out->length, most = out->room - start + 1;

	if (how->precision >= 0 && (size_t)how->precision < most)
		most = (size_t)how->precision;
	if (!text)
		text = how->precision < 0 || how->precision >= 6 ? "(null)" : "";
	itt_put(out, text, strnlen(text, most));
	how->zeros = false;
	itt_widen(out, how, start, 0);
}

static size_t utf8(uint32_t point, char bytes[4])
{
	size_t more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;

	if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return utf8(0xfffd, bytes);
	bytes[0] = (char)(more ? (0xff00u >> (more + 1) & 0xff) | point >> 6 * more : point);
	for (size_t i = 1; i <= more; i++)
		bytes[i] = (char)(0x80 | (point >> 6 * (more - i) & 0x3f));
	return more + 1;
}

static void put_wide(struct itt_text *out, struct itt_conversion *how, const wchar_t *text)
{
	size_t start = out->length, used = 0, length;
	size_t most = how->precision < 0 ? SIZE_MAX : (size_t)how->precision;
	char bytes[4];

	if (!text) {
		put_text(out, how, NULL);
		return;
	}
	for (; used < most && !out->cut && *text; text++, used += length) {
		length = utf8((uint32_t)*text, bytes);
		if (length > most - used)
			break;
		itt_put(out, bytes, length);
	}
	how->zeros = false;
	itt_widen(out, how, start, 0);
}

static void put_character(struct itt_text *out, struct itt_conversion *how, uint32_t point,
			  bool wide)
{
	char bytes[4] = { (char)point };
	size_t start = out->length;

	itt_put(out, bytes, wide ? utf8(point, bytes) : 1);
	how->zeros = false;
	itt_widen(out, how, start, 0);
}

static void take_double(struct arguments *from, struct itt_float *ret)
{
	double value = va_arg(from->list, double);
	uint64_t bits, mantissa;
	int32_t exponent;

	memcpy(&bits, &value, sizeof(bits));
	mantissa = bits & (~0ull >> 12);
	exponent = (int32_t)(bits >> 52 & 0x7ff);
	ret->negative = bits >> 63;
	ret->is = exponent != 0x7ff ? ITT_FINITE : mantissa ? ITT_NO_NUMBER : ITT_INFINITE;
	ret->mantissa = exponent ? mantissa | 1ull << 52 : mantissa;
	ret->exponent = (exponent ? exponent : 1) - 1075;
}

#if __LDBL_MANT_DIG__ == 64 || __LDBL_MANT_DIG__ == 113
/* The 80 bits of x87, or IEEE 754's 128 bits, of which 64 of the mantissa count. */
static void take_long_double(struct arguments *from, struct itt_float *ret)
{
	long double value = va_arg(from->list, long double);
	uint64_t word[2] = { 0 };
	uint32_t top;

	memcpy(word, &value, __LDBL_MANT_DIG__ == 64 ? 10 : 16);
	if (__LDBL_MANT_DIG__ == 64) {
		top = (uint32_t)word[1] & 0xffff;
		ret->mantissa = word[0];
	} else {
		top = (uint32_t)(word[1] >> 48);
		ret->mantissa = (word[1] & ~0ull >> 16) << 15 | word[0] >> 49;
		ret->mantissa |= (uint64_t)((top & 0x7fff) != 0) << 63;
	}
	ret->negative = top >> 15;
	top &= 0x7fff;
	ret->is = top != 0x7fff ? ITT_FINITE : ret->mantissa << 1 ? ITT_NO_NUMBER : ITT_INFINITE;
	ret->exponent = (int32_t)(top ? top : 1) - 16383 - 63;
}
#else
#define take_long_double take_double
#endif

/* False: there is no such conversion. */
static bool convert(struct itt_text *out, struct itt_conversion *how, struct arguments *from,
		    enum length length)
{
	bool wide = length == AS_LONG || how->kind == 'C' || how->kind == 'S';
	struct itt_float value;

	switch (how->kind) {
	case 'd':
	case 'i':
		put_decimal(out, how, from, length);
		return true;
	case 'o':
	case 'u':
	case 'x':
	case 'X':
		put_integer(out, how, take_integer(from, length, false), '\0');
		return true;
	case 'c':
	case 'C':
		put_character(out, how, va_arg(from->list, unsigned), wide);
		return true;
	case 's':
	case 'S':
		if (wide)
			put_wide(out, how, va_arg(from->list, const wchar_t *));
		else
			put_text(out, how, va_arg(from->list, const char *));
		return true;
	case 'p':
		put_pointer(out, how, va_arg(from->list, const void *));
		return true;
	case 'm':
		put_integer(out, how, (uint64_t)errno, '\0');
		return true;
	case 'n':
		(void)va_arg(from->list, void *);
		return true;
	case '%':
		itt_put(out, "%", 1);
		return true;
	default:
		break;
	}
	if (!how->kind || !strchr("aAeEfFgG", how->kind))
		return false;
	if (length == AS_LONG_DOUBLE)
		take_long_double(from, &value);
	else
		take_double(from, &value);
	itt_put_float(out, how, &value);
	return true;
}

size_t itt_format(char *text, size_t room, const char *format, va_list values, bool *ret_cut)
{
	struct itt_text out = { .text = text, .room = room };
	struct arguments from;

	va_copy(from.list, values);
	while (*format && !out.cut) {
		struct itt_conversion how = { .precision = -1 };
		const char *at = format + strcspn(format, "%"), *begin = at;
		enum length length;

		itt_put(&out, format, (size_t)(at - format));
		format = at;
		if (!*at++)
			break;
		read_flags(&at, &how);
		read_size(&at, &how, &from);
		if (*at == '$') {
			itt_put(&out, begin, strnlen(begin, room + 1));
			break;
		}
		length = read_length(&at);
		how.kind = *at;
		at += *at != '\0';
		if (!convert(&out, &how, &from, length))
			itt_put(&out, begin, (size_t)(at - begin));
		format = at;
	}
	va_end(from.list);
	*ret_cut = out.cut;
	return out.length;
}
