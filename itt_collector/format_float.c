/*
 * Floating-point numbers by a format of printf(). Integers alone calculate, so no flag of the
 * floating-point environment is raised; each digit is exact, and what follows the last one is
 * rounded to the nearest, a tie to even, as IEEE 754 has it.
 */
#include "format.h"

#include <string.h>

#define GROUP 1000000000u /* nine digits at a time */
/* Exponents beyond a double's are infinite, or 0: only a long double has them. */
#define BITS_MAX 1088
#define BITS_MIN (-1138)

/* What is left of a number's digits, from the first one on. */
struct digits {
	uint32_t whole[BITS_MAX / 29 + 1];	  /* groups, the least one first */
	uint32_t fraction[(-BITS_MIN + 31) / 32]; /* bits, the last ones first */
	int32_t groups, words;
};

static void begin(struct digits *left, uint64_t mantissa, int32_t exponent)
{
	uint32_t below = exponent < 0 ? (uint32_t)-exponent : 0;
	uint64_t whole = !below ? mantissa : below < 64 ? mantissa >> below : 0;
	unsigned __int128 rest = below < 64 ? mantissa & ((1ull << below) - 1) : mantissa;

	left->groups = 0;
	left->words = (int32_t)(below + 31) / 32;
	memset(left->fraction, 0, sizeof(left->fraction));
	rest <<= (uint32_t)left->words * 32 - below;
	for (int32_t i = 0; i < left->words && rest; i++, rest >>= 32)
		left->fraction[i] = (uint32_t)rest;
	for (; whole; whole /= GROUP)
		left->whole[left->groups++] = (uint32_t)(whole % GROUP);
	for (int32_t step; exponent > 0; exponent -= step) {
		uint64_t carry = 0;

		step = exponent < 29 ? exponent : 29;
		for (int32_t i = 0; i < left->groups; i++) {
			carry += (uint64_t)left->whole[i] << step;
			left->whole[i] = (uint32_t)(carry % GROUP);
			carry /= GROUP;
		}
		if (carry)
			left->whole[left->groups++] = (uint32_t)carry;
	}
}

static bool is_zero(const struct digits *left)
{
	for (int32_t i = 0; i < left->groups; i++)
		if (left->whole[i])
			return false;
	for (int32_t i = 0; i < left->words; i++)
		if (left->fraction[i])
			return false;
	return true;
}

static uint32_t next_group(struct digits *left)
{
	uint64_t carry = 0;

	if (left->groups)
		return left->whole[--left->groups];
	for (int32_t i = 0; i < left->words; i++) {
		carry += (uint64_t)left->fraction[i] * GROUP;
		left->fraction[i] = (uint32_t)carry;
		carry >>= 32;
	}
	return (uint32_t)carry;
}

#define FEW 48 /* of most numbers: these need no room before they are rounded */

/* A number's digits as text: the first of them counts 10^exponent. */
struct figures {
	char *text;
	int32_t count, exponent;
	bool cut; /* there is no room for all that are not 0 */
};

/* One more at the last place; false: all were nines, or there are none, and a place more is needed.
 */
static bool add_one(struct figures *figures)
{
	int32_t i = figures->count;

	for (; i && figures->text[i - 1] == '9'; i--)
		figures->text[i - 1] = '0';
	if (i)
		figures->text[i - 1]++;
	return i;
}

static void round_up(struct figures *figures, bool fixed)
{
	if (add_one(figures))
		return;
	if (fixed)
		figures->text[figures->count++] = '0';
	figures->text[0] = '1';
	figures->exponent++;
}

/*
 * So many digits from the first that is not 0 on; fixed: up to so many behind the point. At most
 * `most`, and one more.
 */
static void find_figures(struct figures *figures, struct digits *left, int32_t count, bool fixed,
			 int32_t most)
{
	int32_t top = left->groups * 9 - 1, place = GROUP / 10;
	uint32_t group = next_group(left), digit;
	bool begun = false, all = true, odd, rest;

	for (;; top--) {
		digit = group / (uint32_t)place;
		group %= (uint32_t)place;
		if (!begun && digit) {
			begun = true;
			figures->exponent = top;
			count += fixed ? top + 1 : 0;
			all = count <= most;
			if (!all)
				count = most;
		}
		if (begun && figures->count >= count)
			break;
		if (begun)
			figures->text[figures->count++] = (char)('0' + digit);
		place /= 10;
		if (!place) {
			place = GROUP / 10;
			group = next_group(left);
		}
	}
	odd = figures->count && figures->text[figures->count - 1] & 1;
	rest = group || !is_zero(left);
	figures->cut = !all && (digit || rest);
	if (all && count >= 0 && (digit > 5 || (digit == 5 && (odd || rest))))
		round_up(figures, fixed);
}

/* 0 has no first digit. */
static void get_figures(struct figures *figures, const struct itt_float *value, int32_t count,
			bool fixed, int32_t most)
{
	struct digits left;

	figures->count = figures->exponent = 0;
	if (value->mantissa && value->exponent >= BITS_MIN) {
		begin(&left, value->mantissa, value->exponent);
		find_figures(figures, &left, count, fixed, most);
	} else if (!fixed) {
		figures->count = count < most ? count : most;
		memset(figures->text, '0', (size_t)figures->count);
	}
}

/* The figures, with their point and the zeros around it. */
static void put_point(struct itt_text *out, const struct figures *figures, int32_t behind,
		      bool point)
{
	size_t start = out->length, before;

	if (figures->text == out->text + start)
		out->length += (size_t)figures->count;
	else
		itt_put(out, figures->text, (size_t)figures->count);
	if (!figures->count)
		itt_put(out, "0", 1);
	else if (figures->exponent < 0)
		itt_insert(out, start, (size_t)-figures->exponent, '0');
	before = figures->count && figures->exponent > 0 ? (size_t)figures->exponent + 1 : 1;
	if (out->length - start < before) { /* it did not fit */
		out->cut = true;
		return;
	}
	if (behind || point)
		itt_insert(out, start + before, 1, '.');
	before += (behind || point) + (size_t)behind;
	if (out->length - start < before)
		itt_insert(out, out->length, before - (out->length - start), '0');
}

static void put_exponent(struct itt_text *out, char letter, int32_t exponent, uint32_t least)
{
	uint32_t value = (uint32_t)(exponent < 0 ? -exponent : exponent), count = 0;
	char text[8], digits[6];

	text[0] = letter;
	text[1] = exponent < 0 ? '-' : '+';
	for (; value || count < least; value /= 10)
		digits[count++] = (char)('0' + value % 10);
	for (uint32_t i = 0; i < count; i++)
		text[2 + i] = digits[count - 1 - i];
	itt_put(out, text, 2 + count);
}

static void put_scientific(struct itt_text *out, const struct itt_conversion *how,
			   const struct figures *figures, int32_t behind, bool point)
{
	struct figures shown = { .text = figures->text, .count = figures->count };

	put_point(out, &shown, behind, point);
	put_exponent(out, how->kind & 0x20 ? 'e' : 'E', figures->exponent, 2);
}

static void put_general(struct itt_text *out, const struct itt_conversion *how,
			const struct itt_float *value, struct figures *figures, int32_t most)
{
	int32_t precision = how->precision < 0 ? 6 : how->precision ? how->precision : 1, behind;
	bool scientific;

	get_figures(figures, value, precision, false, most);
	scientific = figures->exponent < -4 || figures->exponent >= precision;
	behind = precision - 1 - (scientific ? 0 : figures->exponent);
	if (!how->alternative) {
		behind -= precision - figures->count; /* which are 0, or the text is cut */
		/* one stays, whatever others have written there by now */
		for (; behind > 0 && figures->count > 1 && figures->text[figures->count - 1] == '0';
		     behind--)
			figures->count--;
		behind = behind > 0 ? behind : 0;
	}
	if (scientific)
		put_scientific(out, how, figures, behind, how->alternative);
	else
		put_point(out, figures, behind, how->alternative);
}

static void put_hexadecimal(struct itt_text *out, const struct itt_conversion *how,
			    uint64_t mantissa, int32_t exponent)
{
	const char *figures = how->kind == 'a' ? "0123456789abcdef" : "0123456789ABCDEF";
	int32_t behind = 0;
	uint64_t rest = 0, half;
	char first = '0';

	if (mantissa) {
		uint32_t zeros = (uint32_t)__builtin_clzll(mantissa);

		first = '1';
		exponent += 63 - (int32_t)zeros;
		rest = mantissa << zeros << 1;
	} else {
		exponent = 0;
	}
	if (how->precision >= 0 && how->precision < 16) {
		uint32_t shift = 64 - 4 * (uint32_t)how->precision;
		uint64_t kept = shift < 64 ? rest >> shift : 0, cut = rest << (64 - shift) % 64;

		if (!how->precision)
			cut = rest;
		half = 1ull << 63;
		kept += cut > half || (cut == half && (how->precision ? kept & 1 : first & 1));
		first += (char)(how->precision ? kept >> 4 * how->precision : kept);
		rest = shift < 64 ? kept << shift : 0;
	}
	itt_put(out, &first, 1);
	if (how->precision >= 0)
		behind = how->precision;
	else
		for (uint64_t bits = rest; bits; bits <<= 4)
			behind++;
	if (behind || how->alternative)
		itt_put(out, ".", 1);
	for (int32_t i = 0; i < behind && i < 16; i++, rest <<= 4)
		itt_put(out, &figures[rest >> 60], 1);
	if (behind > 16)
		itt_insert(out, out->length, (size_t)behind - 16, '0');
	put_exponent(out, how->kind & 0x20 ? 'p' : 'P', exponent, 1);
}

static void put_finite(struct itt_text *out, const struct itt_conversion *how,
		       const struct itt_float *value)
{
	/* many figures are found where the text goes on; one more may come by rounding */
	int32_t most = (int32_t)(out->room - out->length) - 1,
		behind = how->precision < 0 ? 6 : how->precision;
	struct figures figures = { .text = out->text + out->length };
	char few[FEW + 1];

	if ((how->kind | 0x20) != 'f' && behind < FEW) {
		figures.text = few;
		most = FEW;
	} else if (most < 1) {
		out->cut = true;
		return;
	}
	switch (how->kind | 0x20) {
	case 'a':
		put_hexadecimal(out, how, value->mantissa, value->exponent);
		break;
	case 'f':
		get_figures(&figures, value, behind, true, most);
		put_point(out, &figures, behind, how->alternative);
		break;
	case 'e':
		get_figures(&figures, value, behind + 1, false, most);
		put_scientific(out, how, &figures, behind, how->alternative);
		break;
	default:
		put_general(out, how, value, &figures, most);
	}
	out->cut |= figures.cut;
}

void itt_put_float(struct itt_text *out, const struct itt_conversion *how,
		   const struct itt_float *value)
{
	bool infinite = value->is == ITT_INFINITE ||
			(value->is == ITT_FINITE && value->mantissa &&
			 value->exponent + 64 - __builtin_clzll(value->mantissa) > BITS_MAX);
	struct itt_conversion numbers = *how;
	size_t start = out->length, prefix;
	char sign = itt_sign(how, value->negative);

	if (sign)
		itt_put(out, &sign, 1);
	if (value->is == ITT_NO_NUMBER || infinite) {
		itt_put(out,
			value->is == ITT_NO_NUMBER ? (how->kind & 0x20 ? "nan" : "NAN")
			: how->kind & 0x20	   ? "inf"
						   : "INF",
			3);
		numbers.zeros = false;
		itt_widen(out, &numbers, start, 0);
		return;
	}
	if ((how->kind | 0x20) == 'a')
		itt_put(out, how->kind == 'a' ? "0x" : "0X", 2);
	prefix = out->length - start;
	put_finite(out, &numbers, value);
	itt_widen(out, &numbers, start, prefix);
}
