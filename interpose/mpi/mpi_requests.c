/*
 * Requests and statuses. The traced process keeps no table of requests: records hold their handles,
 * and the drain process pairs the start and the completion of each. Only a receive from any source
 * on a communicator with other ranks than the world's is remembered here: without it, nothing tells
 * to which communicator the rank in its status belongs.
 */
#include "mpi_record.h"
#include "mpi_wrap.h"

static int (*get_elements)(const void *status, xs_word type, int64_t *count);

void xs_mpi_requests_find(void)
{
	*(void **)&get_elements = xs_mpi_find_in("PMPI_Get_elements_x");
}

int64_t xs_mpi_ask_bytes(const void *status)
{
	int64_t bytes = INT64_MIN;

	return get_elements && !get_elements(status, (xs_word)xs_mpi_abi.byte, &bytes) && bytes >= 0
		       ? bytes
		       : INT64_MIN;
}

/* ---- notes ---- */

#define NOTES 1024u
static struct note {
	uint64_t handle;
	struct xs_mpi_comm *comm;
} notes[NOTES];
static _Atomic uint32_t note_count, lock;

static uint32_t note_of(uint64_t handle)
{
	uint32_t i = (uint32_t)(handle * 0x9e3779b97f4a7c15ull >> 32) % NOTES;

	for (uint32_t n = 0; n < NOTES && notes[i].handle && notes[i].handle != handle; n++)
		i = (i + 1) % NOTES;
	return i;
}

void xs_mpi_note(uint64_t handle, struct xs_mpi_comm *comm)
{
	uint32_t i;

	xs_lock_robust(&lock);
	i = note_of(handle);
	if (notes[i].handle != handle &&
	    atomic_load_explicit(&note_count, memory_order_relaxed) < NOTES / 2)
		atomic_fetch_add_explicit(&note_count, 1, memory_order_relaxed);
	else if (notes[i].handle != handle) {
		xs_unlock(&lock); /* too many: their sources stay unknown */
		return;
	}
	notes[i] = (struct note){ handle, comm };
	xs_unlock(&lock);
}

struct xs_mpi_comm *xs_mpi_message(uint64_t handle)
{
	struct xs_mpi_comm *comm = &xs_mpi_world_comm;
	uint32_t i;

	if (__builtin_expect(!atomic_load_explicit(&note_count, memory_order_relaxed), 1))
		return comm;
	xs_lock_robust(&lock);
	i = note_of(handle);
	if (notes[i].handle == handle) {
		comm = notes[i].comm;
		notes[i].handle = 0;
		atomic_fetch_sub_explicit(&note_count, 1, memory_order_relaxed);
		/* entries that were placed behind it by collision move up */
		for (uint32_t j = (i + 1) % NOTES; notes[j].handle; j = (j + 1) % NOTES) {
			struct note moved = notes[j];

			notes[j].handle = 0;
			notes[note_of(moved.handle)] = moved;
		}
	}
	xs_unlock(&lock);
	return comm;
}

/* ---- completion ---- */

xs_word xs_mpi_wait_begin(struct xs_mpi_wait *wait, int32_t count, xs_word requests,
			  xs_word statuses, bool many, enum xs_mpi_ignore kind, bool fortran)
{
	size_t bytes;

	/* none where some must be: the call will fail */
	wait->count = count > 0 && requests ? count : 0;
	wait->few[0] = 0;
	wait->fortran = fortran;
	wait->step = xs_mpi_abi.status_size;
	wait->handles = wait->few;
	wait->taken[0] = wait->taken[1] = 0;
	if (wait->count > (int32_t)XS_MPI_FEW) {
		bytes = (size_t)wait->count * sizeof(*wait->handles);
		wait->handles = xs_mpi_take(bytes);
		wait->taken[0] = wait->handles ? bytes : 0;
	}
	for (int32_t i = 0; wait->handles && i < wait->count; i++)
		wait->handles[i] = fortran ? F_OUT_REQUEST((const int32_t *)requests + i)
				   : xs_mpi_abi.int_handles ? ((const uint32_t *)requests)[i]
							    : ((const uint64_t *)requests)[i];
	wait->statuses = (unsigned char *)statuses;
	if (!xs_mpi_ignored(statuses, kind, many))
		return statuses;
	bytes = (size_t)(many ? wait->count : 1) * wait->step;
	wait->statuses = (unsigned char *)wait->few_statuses;
	if (bytes > sizeof(wait->few_statuses)) {
		wait->statuses = xs_mpi_take(bytes);
		wait->taken[1] = wait->statuses ? bytes : 0;
	}
	if (!wait->statuses)
		return statuses;
	return (xs_word)wait->statuses;
}

static void write_request(const struct xs_mpi_call *call, uint8_t kind, uint64_t tick,
			  uint64_t request, const struct xs_mpi_came *came)
{
	struct xs_mpi_request_record record = {
		.event = { .tick = tick,
			   .name = call->function,
			   .kind = kind,
			   .words = sizeof(record) / 8,
			   .source = XS_SOURCE_MPI },
		.request = request,
		.bytes = UINT64_MAX,
		.peer = XS_MPI_NOTHING,
		.tag = XS_MPI_NOTHING,
	};

	if (came && came->cancelled) {
		(void)xs_mpi_message(request);
		record.cancelled = 1;
	} else if (came) {
		record.bytes = came->bytes < 0 ? UINT64_MAX : (uint64_t)came->bytes;
		record.peer = xs_mpi_rank(xs_mpi_message(request), came->source);
		record.tag = came->tag < 0 ? XS_MPI_NOTHING : came->tag;
	}
	xs_companion_record(&record, sizeof(record));
}

static void one_done(const struct xs_mpi_call *call, const struct xs_mpi_wait *wait, int32_t at,
		     int32_t status)
{
	uint64_t handle = wait->handles[at];
	struct xs_mpi_came came;

	if (handle == xs_mpi_abi.request_null)
		return;
	if (wait->statuses)
		came = xs_mpi_read_status(wait->statuses + (size_t)status * wait->step);
	write_request(call, XS_MPI_DONE, call->call.tick + call->duration, handle,
		      wait->statuses ? &came : NULL);
}

static void give_back(struct xs_mpi_wait *wait)
{
	if (wait->taken[0])
		xs_mpi_give(wait->handles, wait->taken[0]);
	if (wait->taken[1])
		xs_mpi_give(wait->statuses, wait->taken[1]);
}

/* Of a call that is about one request, that; of others, how many they are. */
static void write_call(const struct xs_mpi_call *call, const struct xs_mpi_wait *wait)
{
	uint64_t word = (uint64_t)wait->count;

	if (call->function == FN_MPI_Wait || call->function == FN_MPI_Test) {
		word = wait->handles[0];
		xs_mpi_write(call, 1u << XS_MPI_REQUEST, &word, 1);
	} else {
		xs_mpi_write(call, 1u << XS_MPI_COUNT, &word, 1);
	}
}

void xs_mpi_wait_end(struct xs_mpi_call *call, struct xs_mpi_wait *wait, int32_t done,
		     const int32_t *indices)
{
	write_call(call, wait);
	for (int32_t i = 0; wait->handles && !call->result && i < done && i < wait->count; i++) {
		int32_t at = indices ? indices[i] - wait->fortran : i;

		if (at >= 0 && at < wait->count)
			one_done(call, wait, at, i);
	}
	give_back(wait);
}

void xs_mpi_wait_one(struct xs_mpi_call *call, struct xs_mpi_wait *wait, int32_t flag,
		     int32_t index)
{
	int32_t at = index - wait->fortran;

	write_call(call, wait);
	if (wait->handles && !call->result && flag && index != xs_mpi_abi.undefined && at >= 0 &&
	    at < wait->count)
		one_done(call, wait, at, 0);
	give_back(wait);
}

void xs_mpi_started(const struct xs_mpi_call *call, uint64_t request)
{
	if (!call->result)
		write_request(call, XS_MPI_START, call->call.tick, request, NULL);
}

void xs_mpi_started_all(const struct xs_mpi_call *call, int32_t count, const void *requests,
			bool fortran)
{
	for (int32_t i = 0; !call->result && i < count; i++)
		xs_mpi_started(call, fortran ? F_OUT_REQUEST((const int32_t *)requests + i)
				     : xs_mpi_abi.int_handles ? ((const uint32_t *)requests)[i]
							      : ((const uint64_t *)requests)[i]);
}
