/*
 * The work of MPI's requests: see requests.c.
 */
#ifndef XS_REQUESTS_H
#define XS_REQUESTS_H

#include "mpi_record.h"
#include "track.h"

struct xs_mpi_call;
struct xs_mpi_request_record;

/* What the requests of a function are. */
struct xs_request_role {
	bool is_known;
	bool receives;
	bool transfers; /* a file's data */
	bool persistent;
};

/*
 * A call that made a request, which it names, and ended at `made`, ns; the request's number. 0:
 * there is no room.
 */
uint64_t xs_request_made(struct xs_track *track, const struct xs_mpi_call *call,
			 const struct xs_request_role *role, uint64_t made);
/*
 * A request was started, or seen to be complete, at `ns`, by a call that began at `tick`; the
 * number of the one started. 0: not known.
 */
uint64_t xs_request_read(struct xs_track *track, const struct xs_mpi_request_record *record,
			 uint64_t ns, uint64_t tick);
/* Nobody will see the end of the work. tick, ns: the begin of the call. */
void xs_request_freed(struct xs_track *track, uint64_t handle, uint64_t tick, uint64_t ns);
/*
 * A call that names a request by its handle is told to the sinks, with the request's number: now,
 * or when all threads have been read that may have made the request.
 */
void xs_request_named(struct xs_track *track, struct xs_mpi_call *call);
/* All has been read that was written up to process->pass_tick. */
void xs_requests_pass(struct xs_process *process);
/* The process has ended: requests that are open. */
void xs_requests_finish(struct xs_process *process, uint64_t end);

#endif
