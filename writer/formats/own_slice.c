#include "own_slice.h"

#include "json_text.h"
#include "number.h"

#define LEAST 128 /* bytes of text that may be looked at without asking whether they are there */

static inline bool take(const char **p, const char *text, size_t n)
{
	if (memcmp(*p, text, n))
		return false;
	*p += n;
	return true;
}
#define TAKE(p, literal) take(p, literal, sizeof(literal) - 1)

/* Digits without a sign and without a needless 0 in front; at most 15 of them. */
static inline bool take_digits(const char **p, uint64_t *ret)
{
	const char *from = *p, *at = from;
	unsigned n = xf_digits(at, ret);

	at += n;
	if (n == 8) {
		n = xf_digits(at, ret);
		at += n;
	}
	*p = at;
	return n != 8 && at > from && (*from != '0' || at == from + 1);
}

static inline bool take_id(const char **p, struct xf_text *ret, uint32_t *ret_number)
{
	const char *from = *p;
	uint64_t number = 0;

	if (!take_digits(p, &number) || number > UINT32_MAX)
		return false;
	*ret = (struct xf_text){ from, (size_t)(*p - from) };
	*ret_number = (uint32_t)number;
	return true;
}

/* Microseconds with three decimals. */
static inline bool take_time(const char **p, struct xf_text *ret, int64_t *ret_ns)
{
	const char *from = *p;
	uint64_t number = 0;

	if (!take_digits(p, &number) || **p != '.' || xf_digits(*p + 1, &number) != 3)
		return false;
	*p += 4;
	*ret = (struct xf_text){ from, (size_t)(*p - from) };
	*ret_ns = (int64_t)number;
	return true;
}

/* From the comma behind dur. */
static inline bool rest_of(const char *from, const char *p, const char *end, struct xf_event *event,
			   const char **ret_end)
{
	static const char cat[] = ",\"cat\":\"cpu_op\",\"name\":\"";
	const char *quote, *why;

	if (!xf_same16(p, cat) || !xf_same16(p + 8, cat + 8))
		return false;
	p += sizeof(cat) - 1;
	if (xf_string_end(p, end, &quote) != XF_OK)
		return false;
	event->ph = (struct xf_text){ from + 6, 3 };
	event->name = (struct xf_text){ p - 1, (size_t)(quote - p) + 2 };
	event->cat = (struct xf_text){ p - 17, 8 };
	event->id = event->bp = event->scope = event->args = (struct xf_text){ 0 };
	event->other_count = 0;
	p = quote + 1;
	if (*p != '}') {
		if (!TAKE(&p, ",\"args\":"))
			return false;
		event->args.p = p;
		if (xf_scan_value(p, end, &p, &why) != XF_OK || *p != '}')
			return false;
		event->args.n = (size_t)(p - event->args.p);
	}
	*ret_end = p + 1;
	event->own_rest.n = (size_t)(p + 1 - event->own_rest.p);
	event->is_own = true;
	return true;
}

bool xf_own_slice(const char *p, const char *end, struct xf_event *event, const char **ret_end)
{
	const char *from = p;

	event->is_own = false;
	if (end - p < LEAST || !TAKE(&p, "{\"ph\":\"X\",\"tid\":") ||
	    !take_id(&p, &event->tid, &event->own_tid) || !TAKE(&p, ",\"pid\":") ||
	    !take_id(&p, &event->pid, &event->own_pid) || !TAKE(&p, ",\"ts\":") ||
	    !take_time(&p, &event->ts, &event->own_ts))
		return false;
	event->own_rest.p = p;
	return TAKE(&p, ",\"dur\":") && take_time(&p, &event->dur, &event->own_dur) &&
	       rest_of(from, p, end, event, ret_end);
}

/* ---- as the one before ---- */

/*
 * Eight bytes that were digits: "1234.567" as 1234567. What they are is xored with '0', so that
 * digits that are missing in front are zeros. False: they are something else.
 */
static inline bool take_seven(uint64_t bytes, uint64_t *ret)
{
	const uint64_t point = (uint64_t)('.' ^ '0') << 32;

	bytes ^= point;
	if (((bytes | (bytes + XF_ONES * 0x76)) & XF_HIGHS) | (bytes & 0xff00000000ull))
		return false;
	bytes = (bytes & 0xffffffff) << 8 | (bytes & 0xffffff0000000000ull);
	*ret = xf_eight(bytes);
	return true;
}

/* As take_time(), of at most four digits in front of the point. */
static inline bool take_short_time(const char **p, struct xf_text *ret, int64_t *ret_ns)
{
	uint64_t bytes, others, number;
	unsigned n;

	memcpy(&bytes, *p, 8);
	bytes ^= XF_ONES * '0';
	others = (bytes | (bytes + XF_ONES * 0x76)) & XF_HIGHS;
	n = others ? (unsigned)__builtin_ctzll(others) / 8 : 8;
	if (n - 1 > 3 || (**p == '0' && n > 1) || !take_seven(bytes << (32 - 8 * n), &number))
		return false;
	*ret = (struct xf_text){ *p, n + 4 };
	*ret_ns = (int64_t)number;
	*p += n + 4;
	return true;
}

static void keep(const char *p, struct xf_own *own, const struct xf_event *event)
{
	own->head_length = (uint32_t)(event->ts.p - p);
	own->digits = (uint32_t)event->ts.n - 4;
	if (own->digits < 5) {
		own->head_length = 0;
		return;
	}
	memcpy(own->head, p, own->head_length);
	own->tid_at = (uint32_t)(event->tid.p - p);
	own->tid_length = (uint32_t)event->tid.n;
	own->pid_at = (uint32_t)(event->pid.p - p);
	own->pid_length = (uint32_t)event->pid.n;
	own->tid = event->own_tid;
	own->pid = event->own_pid;
	own->high = event->own_ts - event->own_ts % 10000000;
	memset(own->mask, 0, sizeof(own->mask));
	memset(own->mask, 0xff, own->digits - 4);
	memcpy(own->lead, event->ts.p, sizeof(own->lead));
}

/* Does it begin so, up to the last four digits in front of the point? */
static inline bool is_alike(const char *p, const struct xf_own *own)
{
	typedef uint64_t two __attribute__((vector_size(16)));
	uint32_t last = own->head_length - 16, third = own->head_length > 32 ? last - 16 : 0;
	const uint32_t places[] = { 0, 15, third, last };
	two differ = { 0, 0 }, a, b, mask;

	for (unsigned i = 0; i < 4; i++) {
		memcpy(&a, p + places[i], 16);
		memcpy(&b, own->head + places[i], 16);
		differ |= a ^ b;
	}
	memcpy(&a, p + own->head_length, 16);
	memcpy(&b, own->lead, 16);
	memcpy(&mask, own->mask, 16);
	differ |= (a ^ b) & mask;
	return !(differ[0] | differ[1]);
}

bool xf_own_next(const char *p, const char *end, struct xf_own *own, struct xf_event *event,
		 const char **ret_end)
{
	const char *from = p;
	uint64_t bytes, low;

	if (end - p < LEAST || !own->head_length || !is_alike(p, own))
		goto other;
	p += own->head_length + own->digits - 4;
	memcpy(&bytes, p, 8);
	if (!take_seven(bytes ^ XF_ONES * '0', &low))
		goto other;
	p += 8;
	event->tid = (struct xf_text){ from + own->tid_at, own->tid_length };
	event->pid = (struct xf_text){ from + own->pid_at, own->pid_length };
	event->own_tid = own->tid;
	event->own_pid = own->pid;
	event->ts = (struct xf_text){ from + own->head_length, own->digits + 4 };
	event->own_ts = own->high + (int64_t)low;
	event->own_rest.p = p;
	if (TAKE(&p, ",\"dur\":") &&
	    (take_short_time(&p, &event->dur, &event->own_dur) ||
	     take_time(&p, &event->dur, &event->own_dur)) &&
	    rest_of(from, p, end, event, ret_end))
		return true;
	event->is_own = false;
	return false;
other:
	if (!xf_own_slice(from, end, event, ret_end))
		return false;
	keep(from, own, event);
	return true;
}
