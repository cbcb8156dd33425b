/*
 * How to get from a frame to its caller's, out of a module's .eh_frame: what a C++ exception would
 * use, read by ourselves.
 *
 * Only memory of the module is read: no lock, no allocation, usable in any context.
 */
#ifndef XS_CFI_H
#define XS_CFI_H

#include <stdbool.h>
#include <stdint.h>

enum xs_rule_flags {
	XS_RULE_VALID = 1,
	XS_RULE_CFA_OF_RBP = 2, /* the frame's end is counted from rbp, not from rsp */
	XS_RULE_CFA_LOADED = 4, /* and stored there (a realigned stack) */
	/* the caller's rbp is saved there; neither of the two: it is in rbp still */
	XS_RULE_RBP_AT_CFA = 8,
	XS_RULE_RBP_AT_RBP = 16,
	XS_RULE_SIGNAL = 32,	/* what a signal interrupted: the kernel saved all registers */
	XS_RULE_OUTERMOST = 64, /* there is no caller */
};

struct xs_rule {
	int32_t cfa;	/* offset */
	int16_t rbp;	/* offset */
	uint16_t flags; /* enum xs_rule_flags */
};

/*
 * The rule at `at`, an address inside of an instruction, by the module's PT_GNU_EH_FRAME segment.
 * False: the module does not tell, or in terms that code which calls functions does not use.
 */
bool xs_cfi_find(const unsigned char *eh_frame_hdr, uintptr_t at, struct xs_rule *ret);

#endif
