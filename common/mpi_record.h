/*
 * The records of MPI: calls, requests and communicators.
 */
#ifndef XS_MPI_RECORD_H
#define XS_MPI_RECORD_H

#include "record.h"

enum xs_mpi_flags {
	XS_MPI_FLAG_FAILED = 2, /* the record has an XS_MPI_RESULT */
	XS_MPI_FLAG_INSIDE = 4, /* no call, but what the library does within one */
};

static_assert((int)XS_MPI_FLAG_FAILED == (int)XS_CALL_FLAG_FAILED, "reports count both as calls");

/*
 * An MPI call: its duration in ticks, and the words whose bits (1 << enum xs_mpi_word) are set in
 * `words`, in the order of the enum. Ranks are those in MPI_COMM_WORLD.
 */
enum xs_mpi_word {
	/*
	 * the communicator: XS_MPI_WORLD, XS_MPI_SELF or a hash that is the same on all of its
	 * ranks
	 */
	XS_MPI_COMM,
	XS_MPI_PEER, /* partner | tag << 32 */
	XS_MPI_COUNT,
	XS_MPI_BYTES,
	XS_MPI_ROOT,	  /* root | number of the collective on the communicator, from 1, << 32 */
	XS_MPI_RECV_PEER, /* the other half of what sends and receives; as XS_MPI_PEER */
	XS_MPI_RECV_BYTES,
	XS_MPI_REQUEST,	 /* handle */
	XS_MPI_NEW_COMM, /* that the call made; as XS_MPI_COMM */
	XS_MPI_WIN,	 /* handle */
	XS_MPI_FILE,	 /* handle */
	XS_MPI_OFFSET,	 /* in the file, in its units */
	/*
	 * of collectives whose partners need not be alike: whose data the call gets; see
	 * XS_MPI_FROM_ALL
	 */
	XS_MPI_FROM,
	XS_MPI_RESULT,	 /* of a call that failed: the code | its enum xs_mpi_error << 32 */
	XS_MPI_DURATION, /* of a call that took too long for the record's 48 bits */
	XS_MPI_WORDS,
};
#define XS_MPI_MAKES   (1u << 15) /* in `words`: the call made the request that it names */
#define XS_MPI_WORLD   1u
#define XS_MPI_SELF    2u
#define XS_MPI_NOTHING INT32_MIN /* a half of a word that is not known, and not shown */
#define XS_MPI_NO_PEER -1	 /* MPI_PROC_NULL */

/*
 * Classes of errors, by the numbers that MPI 5's ABI gives them: of those that MPI has for
 * arguments that are wrong, and for messages.
 */
enum xs_mpi_error {
	XS_MPI_ERR_UNNAMED, /* any other one, or not known */
	XS_MPI_ERR_BUFFER,
	XS_MPI_ERR_COUNT,
	XS_MPI_ERR_TYPE,
	XS_MPI_ERR_TAG,
	XS_MPI_ERR_COMM,
	XS_MPI_ERR_RANK,
	XS_MPI_ERR_REQUEST,
	XS_MPI_ERR_ROOT,
	XS_MPI_ERR_GROUP,
	XS_MPI_ERR_OP,
	XS_MPI_ERR_TOPOLOGY,
	XS_MPI_ERR_DIMS,
	XS_MPI_ERR_ARG,
	XS_MPI_ERR_UNKNOWN,
	XS_MPI_ERR_TRUNCATE,
	XS_MPI_ERR_OTHER,
	XS_MPI_ERR_INTERN,
	XS_MPI_ERR_INFO = 34,
};

/*
 * XS_MPI_FROM: a bit for each of the first XS_MPI_FROM_BITS ranks of the communicator (between
 * groups: of the other group); or all of them; or the id of such bits in more words, interned with
 * XS_MPI_SET_SCOPE; or, if both marks are set, nothing is known.
 */
#define XS_MPI_FROM_BITS    62u
#define XS_MPI_FROM_ALL	    (1ull << 62)
#define XS_MPI_FROM_SET	    (1ull << 63)
#define XS_MPI_FROM_UNKNOWN UINT64_MAX
#define XS_MPI_SET_SCOPE    3u /* the id of no string */

struct xs_mpi_record {
	struct xs_event event;
	uint64_t duration : 48, words : 16;
	uint64_t word[];
};
static_assert(sizeof(struct xs_mpi_record) == 24 && 1u << XS_MPI_WORDS <= XS_MPI_MAKES,
	      "a call with one word is half a cache line");

struct xs_mpi_request_record {
	struct xs_event event; /* tick: when; name: number of the function that did or saw it */
	uint64_t request;      /* handle */
	uint64_t bytes;	       /* that came; UINT64_MAX: not known */
	int32_t peer, tag;     /* that they came from; XS_MPI_NOTHING: not known */
	uint64_t cancelled;    /* 1: nothing came, or will */
};
static_assert(sizeof(struct xs_mpi_request_record) == 48, "multiple of 16");

struct xs_mpi_member_record {
	/* name: what the application calls the communicator, interned; 0: nothing */
	struct xs_event event;
	uint64_t id;	       /* as XS_MPI_COMM */
	int32_t rank, members; /* in its group; members 0: not known */
	int32_t others;	       /* members of the other group; 0: there is none */
	int32_t side;	       /* 0 or 1: which of the two groups it is */
	uint64_t reserved;
};
static_assert(sizeof(struct xs_mpi_member_record) == 48, "multiple of 16");

#endif
