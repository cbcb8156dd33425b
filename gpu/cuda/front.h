/*
 * Functions of CUPTI's that a program may call for itself, and we are in front of: those by which
 * it takes the records of activity, or changes which there are.
 */
#ifndef XS_CUDA_FRONT_H
#define XS_CUDA_FRONT_H

#include "xs_cuda.h"

enum xs_front_function {
	XS_FRONT_REGISTER,
	XS_FRONT_ENABLE,
	XS_FRONT_DUMP,
	XS_FRONT_DISABLE,
	XS_FRONT_CONTEXT,
	XS_FRONT_CLOCK,
	XS_FRONT_FUNCTIONS,
};

/* A libcupti that we are in front of. */
struct xs_front {
	_Atomic(void *) base; /* where it is loaded; NULL: nowhere */
	_Atomic(void *) real[XS_FRONT_FUNCTIONS];
	_Atomic uint32_t owner;			    /* theirs.c */
	_Atomic(CUpti_TimestampCallbackFunc) clock; /* the program's; NULL: it has none */
	_Atomic uint64_t kinds;			    /* bit n: the program has enabled kind n */
};

/* ---- front.c ---- */

/* From here on xs_cupti has the real functions. NULL: nobody is in front of that libcupti. */
struct xs_front *xs_cuda_front(void);

/* ---- theirs.c ---- */

/* The program's calls. */
CUptiResult xs_cuda_register_theirs(struct xs_front *front,
				    CUpti_BuffersCallbackRequestFunc request,
				    CUpti_BuffersCallbackCompleteFunc complete);
CUptiResult xs_cuda_enable_theirs(struct xs_front *front, enum xs_front_function function,
				  CUpti_ActivityKind kind);
CUptiResult xs_cuda_disable_theirs(struct xs_front *front, CUpti_ActivityKind kind);
CUptiResult xs_cuda_disable_context_theirs(struct xs_front *front, CUcontext context,
					   CUpti_ActivityKind kind);
CUptiResult xs_cuda_clock_theirs(struct xs_front *front, CUpti_TimestampCallbackFunc clock);
/* Our callbacks are about to be registered. False: the program's have the place. */
bool xs_cuda_take_place(struct xs_front *front);
/* Has it registered a clock in the libcupti of that place? */
bool xs_cuda_is_clock_theirs(void);
/* From here on the program may have the place. */
void xs_cuda_have_place(void);

#endif
