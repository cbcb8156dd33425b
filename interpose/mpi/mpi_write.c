/*
 * The rare half of what each call does: is it one that the library makes itself, and its record
 * where the short way is closed.
 */
#include "mpi_record.h"
#include "mpi_wrap.h"

__thread uintptr_t xs_mpi_inside __attribute__((tls_model("initial-exec")));

/*
 * A library calls itself from few places, each a fixed way below its wrapper: a way that was once
 * seen by a look at the stack is known. Any other call from below may be one after a jump.
 */
bool xs_mpi_is_there(uintptr_t mark)
{
	static _Atomic uint64_t known[256];
	uint64_t way = (*(const uintptr_t *)mark ^ (uint64_t)(xs_mpi_inside - mark) << 48) *
			       0x9e3779b97f4a7c15ull |
		       1;
	_Atomic uint64_t *place = &known[way >> 56];

	if (mark < xs_mpi_inside) {
		if (atomic_load_explicit(place, memory_order_relaxed) == way)
			return true;
		if (xs_companion_came_by(xs_mpi_inside)) {
			atomic_store_explicit(place, way, memory_order_relaxed);
			return true;
		}
	}
	xs_mpi_inside = 0;
	return false;
}

void xs_mpi_write_long(const struct xs_mpi_call *call, uint32_t words, const uint64_t *word,
		       uint32_t count)
{
	union {
		struct xs_mpi_record record;
		uint64_t word[sizeof(struct xs_mpi_record) / 8 + XS_MPI_WORDS + 1];
	} buffer = { .record = { .event = { .tick = call->call.tick,
					    .name = call->function,
					    .kind = XS_MPI,
					    .source = XS_SOURCE_MPI,
					    .flags = call->result ? XS_MPI_FLAG_FAILED : 0 } } };
	uint64_t *place = buffer.record.word;

	(void)xs_call_leave(&call->call);
	for (uint32_t i = 0; i < count; i++)
		*place++ = word[i];
	if (call->result) {
		words |= 1u << XS_MPI_RESULT;
		*place++ = (uint32_t)call->result | (uint64_t)xs_mpi_error_of(call->result) << 32;
	}
	if (call->duration >> 48) {
		words |= 1u << XS_MPI_DURATION;
		*place++ = call->duration;
	}
	buffer.record.duration = call->duration & 0xffffffffffffu;
	buffer.record.words = words & 0xffff;
	buffer.record.event.words = (uint8_t)((place - buffer.word + 1) & ~1);
	xs_companion_record(&buffer, 8u * buffer.record.event.words);
}
