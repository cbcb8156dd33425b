#include "mpi_words.h"

#include <stdlib.h>

#define TEXTS 64u /* a power of two */

/* Words that are the same in many calls; the number of a collective is not. */
#define KEPT_WORDS 6u
#define KEPT (1u << XS_MPI_COMM | 1u << XS_MPI_PEER | 1u << XS_MPI_COUNT | 1u << XS_MPI_BYTES | 1u << XS_MPI_RECV_PEER | 1u << XS_MPI_RECV_BYTES)

struct xs_mpi_texts {
	struct text {
		uint32_t words, length; /* words: 0, there is none */
		uint64_t word[KEPT_WORDS];
		char text[4 * XS_CHUNK]; /* the six members have 204 bytes at most */
	} of[TEXTS];
};

/* An identity as text: the same on all ranks. 0: not known. */
static inline __attribute__((always_inline)) char *put_identity(char *o, const char *key, uint64_t id)
{
	static const char digits[] = "0123456789abcdef";

	if (!id)
		return o;
	o = put(o, key);
	if (id == XS_MPI_WORLD)
		return put(o, "\"world\"");
	if (id == XS_MPI_SELF)
		return put(o, "\"self\"");
	*o++ = '"';
	for (int shift = 60; shift >= 0; shift -= 4)
		*o++ = digits[id >> shift & 15];
	*o++ = '"';
	return o;
}

static inline __attribute__((always_inline)) char *put_half(char *o, const char *key, uint32_t half)
{
	return (int32_t)half == XS_MPI_NOTHING ? o : xs_json_signed(put(o, key), (int32_t)half);
}

static inline __attribute__((always_inline)) char *put_amount(char *o, const char *key, uint64_t value)
{
	return (int64_t)value == INT64_MIN ? o : xs_json_signed(put(o, key), (int64_t)value);
}

static char *put_word(char *o, enum xs_mpi_word word, uint64_t value)
{
	uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);

	switch (word) {
	case XS_MPI_COMM:
		return put_identity(o, ",\"comm\":", value);
	case XS_MPI_PEER:
		return put_half(put_half(o, ",\"peer\":", low), ",\"tag\":", high);
	case XS_MPI_COUNT:
		return put_amount(o, ",\"count\":", value);
	case XS_MPI_BYTES:
		return put_amount(o, ",\"bytes\":", value);
	case XS_MPI_ROOT:
		return put_half(put_half(o, ",\"root\":", low), ",\"seq\":", high);
	case XS_MPI_RECV_PEER:
		return put_half(put_half(o, ",\"recv_peer\":", low), ",\"recv_tag\":", high);
	case XS_MPI_RECV_BYTES:
		return put_amount(o, ",\"recv_bytes\":", value);
	case XS_MPI_NEW_COMM:
		return put_identity(o, ",\"new_comm\":", value);
	case XS_MPI_WIN:
		return put_identity(o, ",\"win\":", value);
	case XS_MPI_FILE:
		return put_identity(o, ",\"file\":", value);
	case XS_MPI_OFFSET:
		return xs_json_signed(put(o, ",\"offset\":"), (int64_t)value);
	default:
		return o;
	}
}

char *xs_mpi_put_words(char *o, uint32_t words, const uint64_t *value)
{
	for (; words; words &= words - 1) {
		uint32_t word = (uint32_t)__builtin_ctz(words);

		o = put_word(o, word, value[word]);
	}
	return o;
}

char *xs_mpi_put_call(struct xs_process *process, char *o, uint32_t words, const uint64_t *value)
{
	/* words that are not there are 0 */
	const uint64_t kept[KEPT_WORDS] = { value[XS_MPI_COMM], value[XS_MPI_PEER],	 value[XS_MPI_COUNT],
					    value[XS_MPI_BYTES], value[XS_MPI_RECV_PEER], value[XS_MPI_RECV_BYTES] };
	uint64_t hash = words & KEPT, differs;
	struct text *text;

	if (!process->mpi_texts)
		process->mpi_texts = calloc(1, sizeof(*process->mpi_texts));
	if (!hash || !process->mpi_texts)
		return xs_mpi_put_words(o, words, value);
	for (uint32_t i = 0; i < KEPT_WORDS; i++)
		hash = (hash ^ kept[i]) * 0x9e3779b97f4a7c15ull;
	text = &process->mpi_texts->of[hash >> 58];
	differs = text->words ^ (words & KEPT);
	for (uint32_t i = 0; i < KEPT_WORDS; i++)
		differs |= text->word[i] ^ kept[i];
	if (__builtin_expect(differs != 0, 0)) {
		text->words = words & KEPT;
		memcpy(text->word, kept, sizeof(text->word));
		text->length = (uint32_t)(xs_mpi_put_words(text->text, text->words, value) - text->text);
	}
	return xs_mpi_put_words(put_chunks(o, text->text, text->length), words & ~KEPT, value);
}
