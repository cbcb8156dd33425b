/*
 * Identities of communicators, which all of their ranks find by themselves: a hash of the parent's
 * identity, the members' ranks in MPI_COMM_WORLD, and how many communicators of just these members
 * were made of the parent before: whoever is a member has taken part in all of those.
 */
#include "mpi_comms.h"
#include "mpi_record.h"

struct birth { /* how often communicators of a key were made */
	uint64_t key;
	uint32_t count;
};

static struct birth *births;
static uint32_t births_size, births_used;

uint64_t xs_mpi_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9fb21c651e98df25ull;
	hash ^= hash >> 29;
	hash *= 0xd6e8feb86659fd93ull;
	return hash ^ hash >> 32;
}

uint64_t xs_mpi_mix_ranks(uint64_t hash, const int32_t *ranks, int32_t count)
{
	hash = xs_mpi_mix(hash, (uint64_t)count);
	for (int32_t i = 0; ranks && i < count; i++)
		hash = xs_mpi_mix(hash, (uint32_t)ranks[i]);
	return hash;
}

/* With the lock held: how often this was asked for the key, with this time. */
static uint32_t nth(uint64_t key)
{
	if (4 * (births_used + 1) > 3 * births_size) {
		uint32_t size = births_size ? 2 * births_size : 256;
		struct birth *grown = xs_mpi_take(size * sizeof(*grown));

		if (!grown)
			return 0;
		memset(grown, 0, size * sizeof(*grown));
		for (uint32_t i = 0; i < births_size; i++) {
			uint32_t at = xs_mpi_place(births[i].key, size);

			while (births[i].count && grown[at & (size - 1)].count)
				at++;
			if (births[i].count)
				grown[at & (size - 1)] = births[i];
		}
		xs_mpi_give(births, births_size * sizeof(*births));
		births = grown;
		births_size = size;
	}
	for (uint32_t at = xs_mpi_place(key, births_size);; at++) {
		struct birth *birth = &births[at & (births_size - 1)];

		if (birth->count && birth->key != key)
			continue;
		births_used += !birth->count;
		birth->key = key;
		return ++birth->count;
	}
}

uint64_t xs_mpi_identity(uint64_t key)
{
	uint64_t id = xs_mpi_mix(key, nth(key));

	return id > XS_MPI_SELF ? id : id + 16;
}

uint64_t xs_mpi_text(const char *text, xs_word length)
{
	uint64_t hash = 5;

	/* Fortran's texts end with blanks that mean nothing */
	while (length > 0 && text[length - 1] == ' ')
		length--;
	for (xs_word i = 0; length < 0 ? text[i] != 0 : i < length; i++)
		hash = xs_mpi_mix(hash, (unsigned char)text[i]);
	return hash;
}
