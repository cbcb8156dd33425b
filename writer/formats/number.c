#include "number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scan.h"

bool xf_unsigned(struct xf_text value, uint64_t *ret)
{
	uint64_t number = 0;

	if (!value.n || value.n > 20)
		return false;
	for (size_t i = 0; i < value.n; i++) {
		unsigned digit = (unsigned char)value.p[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, digit, &number))
			return false;
	}
	*ret = number;
	return true;
}

bool xf_integer(struct xf_text value, int64_t *ret)
{
	bool negative = value.n && value.p[0] == '-';
	uint64_t number;

	if (negative)
		value = (struct xf_text){ value.p + 1, value.n - 1 };
	if (!xf_unsigned(value, &number) || number > (uint64_t)INT64_MAX + negative)
		return false;
	*ret = (int64_t)(negative ? 0 - number : number);
	return true;
}

bool xf_number(struct xf_text value, double *ret)
{
	char text[64];
	int64_t whole;

	if (xf_integer(value, &whole)) {
		*ret = (double)whole;
		return true;
	}
	if (!value.n || value.n >= sizeof(text) ||
	    !(value.p[0] == '-' || (value.p[0] >= '0' && value.p[0] <= '9')))
		return false;
	memcpy(text, value.p, value.n);
	text[value.n] = '\0';
	if (strspn(text, "0123456789+-.eE") < value.n) /* a text that only begins as one */
		return false;
	*ret = strtod(text, NULL);
	return isfinite(*ret);
}

/*
 * The digits of a number and where its point is; of more than 19 digits the rest only says whether
 * it is 0.
 */
static bool decimal(struct xf_text value, uint64_t *ret_digits, int *ret_exponent, bool *ret_more)
{
	const char *p = value.p, *end = p + value.n;
	bool behind_point = false, any = false;
	int exponent = 0, count = 0;
	uint64_t digits = 0;

	*ret_more = false;
	if (p < end && *p == '-')
		p++;
	for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !behind_point)); p++) {
		if (*p == '.') {
			behind_point = true;
			continue;
		}
		any = true;
		if (count < 19) {
			digits = digits * 10 + (uint64_t)(*p - '0');
			count += digits != 0;
			exponent -= behind_point;
		} else {
			*ret_more |= *p != '0';
			exponent += !behind_point;
		}
	}
	if (p < end && (*p | 0x20) == 'e') {
		bool negative = p[1] == '-';
		int power = 0;

		for (p += 1 + (p[1] == '-' || p[1] == '+'); p < end && *p >= '0' && *p <= '9'; p++)
			power = power < 10000 ? power * 10 + (*p - '0') : power;
		exponent += negative ? -power : power;
	}
	*ret_digits = digits;
	*ret_exponent = exponent;
	return any && p == end;
}

/*
 * "123456.789" as 123456789: digits, a point, three digits; false: look at it as at any other
 * number.
 */
static inline bool three_decimals(struct xf_text value, uint64_t *ret)
{
	const char *p = value.p, *point;
	unsigned n;

	if (value.n < 5 || value.n > 20 || p[value.n - 4] != '.')
		return false;
	point = p + value.n - 4;
	*ret = 0;
	do {
		n = xf_digits(p, ret);
		p += n;
	} while (n == 8);
	if (p != point)
		return false;
	for (p++; p <= point + 3; p++) {
		unsigned digit = (unsigned char)*p - '0';

		if (digit > 9)
			return false;
		*ret = *ret * 10 + digit;
	}
	return *ret < (uint64_t)1 << 62;
}

bool xf_nanoseconds(struct xf_text value, int64_t *ret)
{
	uint64_t digits = 0;
	bool more;
	int exponent;

	if (three_decimals(value, &digits)) {
		*ret = (int64_t)digits;
		return true;
	}
	digits = 0;
	if (!value.n || !decimal(value, &digits, &exponent, &more))
		return false;
	for (exponent += 3; exponent > 0 && digits; exponent--) {
		if (digits > (uint64_t)INT64_MAX / 20)
			return false;
		digits *= 10;
	}
	for (; exponent < 0 && digits; exponent++) {
		uint64_t last = digits % 10;

		digits /= 10;
		if (exponent == -1) {
			digits += last > 5 || (last == 5 && (more || (digits & 1)));
		}
		more |= last != 0;
	}
	if (digits >= (uint64_t)1 << 62)
		return false;
	*ret = value.p[0] == '-' ? -(int64_t)digits : (int64_t)digits;
	return true;
}
