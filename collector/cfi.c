/*
 * DWARF call frame information, as far as compilers for x86-64 use it in functions that call
 * others: the frame's end (CFA) is at an offset from rsp or rbp, or stored at one from rbp; the
 * return address lies below it; of the saved registers only rbp matters, since no other one is
 * needed to find a CFA.
 */
#include "cfi.h"

#include <stddef.h>
#include <string.h>

enum { RBP = 6, RSP = 7, RIP = 16 };
enum { SAVED = 8 }; /* states that DW_CFA_remember_state keeps */

struct reader {
	const unsigned char *p, *end;
	bool bad;
};

struct state {
	struct xs_rule rule;
	uint8_t cfa_register;
	bool cfa_known;
};

struct cie {
	const unsigned char *code, *end; /* the initial instructions */
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t pointers; /* DW_EH_PE_… of the addresses in its FDEs */
	bool augmented, signal;
};

static uint64_t read_fixed(struct reader *r, size_t size)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->p) < size) {
		r->bad = true;
		return 0;
	}
	memcpy(&value, r->p, size);
	r->p += size;
	return value;
}

static uint64_t read_uleb(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint8_t byte = (uint8_t)read_fixed(r, 1);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
}

static int64_t read_sleb(struct reader *r)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)read_fixed(r, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (byte & 0x40 && shift < 64)
		value |= UINT64_MAX << shift;
	return (int64_t)value;
}

/* DW_EH_PE_…: the format in the low bits, what it is relative to in the others. */
static uint64_t read_pointer(struct reader *r, uint8_t encoding)
{
	uint64_t base = (encoding & 0x70) == 0x10 ? (uint64_t)(uintptr_t)r->p : 0;

	if (encoding & 0x60)
		r->bad = true;
	switch (encoding & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c:
		return base + read_fixed(r, 8);
	case 0x03:
		return base + read_fixed(r, 4);
	case 0x0b:
		return base + (uint64_t)(int64_t)(int32_t)read_fixed(r, 4);
	default:
		r->bad = true;
		return 0;
	}
}

static void skip(struct reader *r, uint64_t size)
{
	if ((uint64_t)(r->end - r->p) < size)
		r->bad = true;
	else
		r->p += size;
}

/* An entry of .eh_frame: what follows its length. */
static bool entry_at(const unsigned char *entry, struct reader *ret)
{
	uint32_t length;

	memcpy(&length, entry, 4);
	if (!length || length >= 0xfffffff0) /* 64-bit DWARF: no linker writes it here */
		return false;
	*ret = (struct reader){ .p = entry + 4, .end = entry + 4 + length };
	return true;
}

static bool read_cie(const unsigned char *entry, struct cie *cie)
{
	struct reader r;
	const char *augmentation;
	const unsigned char *data_end;
	uint8_t version;

	memset(cie, 0, sizeof(*cie));
	if (!entry_at(entry, &r) || read_fixed(&r, 4))
		return false;
	cie->end = r.end;
	version = (uint8_t)read_fixed(&r, 1);
	if (version != 1 && version != 3)
		return false;
	augmentation = (const char *)r.p;
	skip(&r, strnlen(augmentation, (size_t)(r.end - r.p)) + 1);
	cie->code_align = read_uleb(&r);
	cie->data_align = read_sleb(&r);
	cie->return_register = version == 1 ? read_fixed(&r, 1) : read_uleb(&r);
	if (augmentation[0] == 'z') {
		uint64_t size = read_uleb(&r);

		cie->augmented = true;
		if (r.bad || size > (uint64_t)(r.end - r.p))
			return false;
		data_end = r.p + size;
		for (const char *c = augmentation + 1; *c; c++) {
			if (*c == 'R')
				cie->pointers = (uint8_t)read_fixed(&r, 1);
			else if (*c == 'L')
				skip(&r, 1);
			else if (*c == 'P')
				(void)read_pointer(&r, (uint8_t)read_fixed(&r, 1) & 0x7f & ~0x70);
			else if (*c == 'S')
				cie->signal = true;
			else if (*c != 'B') /* arm64's */
				return false;
		}
		r.p = data_end;
	} else if (augmentation[0]) {
		return false;
	}
	cie->code = r.p;
	return !r.bad;
}

static void set_cfa_register(struct state *state, uint64_t number)
{
	state->cfa_known = number == RBP || number == RSP;
	state->rule.flags &= (uint16_t)~(XS_RULE_CFA_OF_RBP | XS_RULE_CFA_LOADED);
	if (number == RBP)
		state->rule.flags |= XS_RULE_CFA_OF_RBP;
}

static void set_cfa_offset(struct state *state, int64_t offset)
{
	state->cfa_known &= offset == (int32_t)offset;
	state->rule.cfa = (int32_t)offset;
}

/* A register is saved at an offset from the CFA. */
static void set_saved(struct state *state, const struct cie *cie, uint64_t number, int64_t offset)
{
	if (number == RBP) {
		state->rule.flags =
			(uint16_t)((state->rule.flags & ~XS_RULE_RBP_AT_RBP) | XS_RULE_RBP_AT_CFA);
		state->rule.rbp = (int16_t)offset;
		state->cfa_known &= offset == (int16_t)offset;
	} else if (number == cie->return_register) {
		state->cfa_known &= offset == -8;
	}
}

/*
 * DW_CFA_def_cfa_expression: only "what is stored at an offset from rbp" (DW_OP_breg6,
 * DW_OP_deref).
 */
static void set_cfa_expression(struct state *state, struct reader *r)
{
	uint64_t size = read_uleb(r);
	struct reader e = { .p = r->p };

	skip(r, size);
	e.end = r->p;
	if (read_fixed(&e, 1) != 0x76) {
		state->cfa_known = false;
		return;
	}
	set_cfa_register(state, RBP);
	set_cfa_offset(state, read_sleb(&e));
	if (read_fixed(&e, 1) != 0x06 || e.p != e.end || e.bad)
		state->cfa_known = false;
	state->rule.flags |= XS_RULE_CFA_LOADED;
}

/* DW_CFA_expression: rbp alone matters, saved at an offset from rbp (DW_OP_breg6). */
static void set_saved_expression(struct state *state, const struct cie *cie, uint64_t number,
				 struct reader *r)
{
	uint64_t size = read_uleb(r);
	struct reader e = { .p = r->p };
	int64_t offset;

	skip(r, size);
	e.end = r->p;
	if (number == cie->return_register)
		state->cfa_known = false;
	if (number != RBP)
		return;
	if (read_fixed(&e, 1) != 0x76) {
		state->cfa_known = false;
		return;
	}
	offset = read_sleb(&e);
	state->rule.flags =
		(uint16_t)((state->rule.flags & ~XS_RULE_RBP_AT_CFA) | XS_RULE_RBP_AT_RBP);
	state->rule.rbp = (int16_t)offset;
	state->cfa_known &= offset == (int16_t)offset && e.p == e.end && !e.bad;
}

/* A register is what it was at the function's first instruction. */
static void restore(struct state *state, const struct state *initial, uint64_t number)
{
	if (number != RBP)
		return;
	state->rule.flags &= (uint16_t)~(XS_RULE_RBP_AT_CFA | XS_RULE_RBP_AT_RBP);
	state->rule.flags |= initial->rule.flags & (XS_RULE_RBP_AT_CFA | XS_RULE_RBP_AT_RBP);
	state->rule.rbp = initial->rule.rbp;
}

/*
 * Other rules for a register (DW_CFA_register, DW_CFA_val_offset, …) are not used for those that
 * matter.
 */
static void forget(struct state *state, const struct cie *cie, uint64_t number)
{
	if (number == RBP || number == cie->return_register)
		state->cfa_known = false;
}

/* Where the CFA is. False: the operation is none of these. */
static bool define_cfa(uint8_t op, struct reader *r, const struct cie *cie, struct state *state)
{
	switch (op) {
	case 0x0c: /* DW_CFA_def_cfa */
		state->rule.flags &= (uint16_t)~XS_RULE_CFA_LOADED;
		set_cfa_register(state, read_uleb(r));
		set_cfa_offset(state, (int64_t)read_uleb(r));
		return true;
	case 0x0d: /* DW_CFA_def_cfa_register */
		set_cfa_register(state, read_uleb(r));
		return true;
	case 0x0e: /* DW_CFA_def_cfa_offset */
		set_cfa_offset(state, (int64_t)read_uleb(r));
		return true;
	case 0x0f: /* DW_CFA_def_cfa_expression */
		set_cfa_expression(state, r);
		return true;
	case 0x12: /* DW_CFA_def_cfa_sf */
		set_cfa_register(state, read_uleb(r));
		set_cfa_offset(state, read_sleb(r) * cie->data_align);
		return true;
	case 0x13: /* DW_CFA_def_cfa_offset_sf */
		set_cfa_offset(state, read_sleb(r) * cie->data_align);
		return true;
	default:
		return false;
	}
}

/* Where a register is saved. False: the operation is none of these. */
static bool define_register(uint8_t op, struct reader *r, const struct cie *cie,
			    const struct state *initial, struct state *state)
{
	uint64_t number = read_uleb(r); /* of the register, in all of them */

	switch (op) {
	case 0x05: /* DW_CFA_offset_extended */
		set_saved(state, cie, number, (int64_t)read_uleb(r) * cie->data_align);
		return true;
	case 0x06: /* DW_CFA_restore_extended */
		restore(state, initial, number);
		return true;
	case 0x07: /* DW_CFA_undefined */
		if (number == cie->return_register)
			state->rule.flags |= XS_RULE_OUTERMOST;
		return true;
	case 0x08: /* DW_CFA_same_value */
		if (number == RBP)
			state->rule.flags &= (uint16_t)~(XS_RULE_RBP_AT_CFA | XS_RULE_RBP_AT_RBP);
		return true;
	case 0x09: /* DW_CFA_register */
	case 0x14: /* DW_CFA_val_offset */
	case 0x15: /* DW_CFA_val_offset_sf */
		forget(state, cie, number);
		(void)read_uleb(r);
		return true;
	case 0x10: /* DW_CFA_expression */
		set_saved_expression(state, cie, number, r);
		return true;
	case 0x11: /* DW_CFA_offset_extended_sf */
		set_saved(state, cie, number, read_sleb(r) * cie->data_align);
		return true;
	case 0x16: /* DW_CFA_val_expression */
		forget(state, cie, number);
		skip(r, read_uleb(r));
		return true;
	default:
		return op == 0x2e; /* DW_CFA_GNU_args_size: one number, of no register */
	}
}

/*
 * Runs instructions up to those for code behind `at`; false: one is unknown, or they do not fit
 * together.
 */
static bool run(struct reader r, const struct cie *cie, uint64_t location, uint64_t at,
		struct state *state)
{
	const struct state initial = *state;
	struct state saved[SAVED];
	unsigned depth = 0;

	while (r.p < r.end && !r.bad) {
		uint8_t op = (uint8_t)read_fixed(&r, 1), low = op & 0x3f;

		if (op >> 6 == 1) { /* DW_CFA_advance_loc */
			location += low * cie->code_align;
		} else if (op >> 6 == 2) { /* DW_CFA_offset */
			set_saved(state, cie, low, (int64_t)read_uleb(&r) * cie->data_align);
		} else if (op >> 6 == 3) { /* DW_CFA_restore */
			restore(state, &initial, low);
		} else if (op == 0x01) { /* DW_CFA_set_loc */
			location = read_pointer(&r, cie->pointers);
		} else if (op >= 0x02 && op <= 0x04) { /* DW_CFA_advance_loc1, 2, 4 */
			location += read_fixed(&r, (size_t)1 << (op - 2)) * cie->code_align;
		} else if (op == 0x0a) { /* DW_CFA_remember_state */
			if (depth == SAVED)
				return false;
			saved[depth++] = *state;
		} else if (op == 0x0b) { /* DW_CFA_restore_state */
			if (!depth)
				return false;
			*state = saved[--depth];
		} else if (op /* DW_CFA_nop */ && !define_cfa(op, &r, cie, state) &&
			   !define_register(op, &r, cie, &initial, state)) {
			return false;
		}
		if (location > at)
			break;
	}
	return !r.bad;
}

/* The FDE that may cover `at`, by the sorted table of a PT_GNU_EH_FRAME segment; NULL: none. */
static const unsigned char *find_fde(const unsigned char *header, uintptr_t at)
{
	struct reader r = { .p = header + 4, .end = header + 16 };
	const unsigned char *table = header + 12;
	uint32_t count, low = 0, high;
	int32_t pair[2];
	int64_t wanted = (int64_t)(at - (uintptr_t)header);

	/*
	 * version 1; count: 4 bytes; table: 4 bytes each, relative to the header. Every linker
	 * writes it so
	 */
	if (header[0] != 1 || header[2] != 0x03 || header[3] != 0x3b ||
	    ((header[1] & 0x0f) != 0x0b && (header[1] & 0x0f) != 0x03))
		return NULL;
	skip(&r, 4);
	count = (uint32_t)read_fixed(&r, 4);
	for (high = count; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		memcpy(pair, table + 8 * (size_t)middle, sizeof(pair));
		if (pair[0] <= wanted)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	memcpy(pair, table + 8 * (size_t)(low - 1), sizeof(pair));
	return header + pair[1];
}

bool xs_cfi_find(const unsigned char *eh_frame_hdr, uintptr_t at, struct xs_rule *ret)
{
	const unsigned char *fde = find_fde(eh_frame_hdr, at);
	struct state state = { .rule.flags = XS_RULE_VALID };
	struct reader r;
	struct cie cie;
	uint64_t begin, size;
	uint32_t to_cie;

	if (!fde || !entry_at(fde, &r))
		return false;
	memcpy(&to_cie, r.p, 4);
	if (!to_cie || !read_cie(r.p - to_cie, &cie))
		return false;
	r.p += 4;
	begin = read_pointer(&r, cie.pointers);
	size = read_pointer(&r, cie.pointers & 0x0f);
	if (r.bad || at < begin || at - begin >= size)
		return false;
	if (cie.augmented)
		skip(&r, read_uleb(&r));
	if (cie.signal) {
		ret->cfa = ret->rbp = 0;
		ret->flags = XS_RULE_VALID | XS_RULE_SIGNAL;
		return true;
	}
	if (!run((struct reader){ .p = cie.code, .end = cie.end }, &cie, 0, UINT64_MAX, &state) ||
	    !run(r, &cie, begin, at, &state))
		return false;
	if (!state.cfa_known && !(state.rule.flags & XS_RULE_OUTERMOST))
		return false;
	*ret = state.rule;
	return true;
}
