/*
 * The C library's functions for memory and text, for our libraries in the traced program alone.
 *
 * A sanitizer's runtime stands in front of the C library's. MemorySanitizer ends the program if
 * what they read was never written by code that it knows, and ThreadSanitizer if two threads touch
 * a place without a lock that it knows. It knows none of our code and none of our locks. A program
 * or a library that it preloads may have such functions, too.
 *
 * Text is read byte by byte: a word could reach over its end, which valgrind tells.
 */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define WORD sizeof(uint64_t)

/* Whole words, wherever they lie: the compiler knows the builtin by its constant size. */
static uint64_t word_at(const char *at)
{
	uint64_t word;

	__builtin_memcpy(&word, at, WORD);
	return word;
}

static void put_word(char *at, uint64_t word)
{
	__builtin_memcpy(at, &word, WORD);
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	char *out = to;
	const char *in = from;

	for (; size >= WORD; size -= WORD, in += WORD, out += WORD)
		put_word(out, word_at(in));
	while (size--)
		*out++ = *in++;
	return to;
}

void *memmove(void *to, const void *from, size_t size)
{
	char *out = to;
	const char *in = from;

	if ((uintptr_t)out <= (uintptr_t)in)
		for (; size >= WORD; size -= WORD, in += WORD, out += WORD)
			put_word(out, word_at(in));
	else
		for (; size >= WORD; size -= WORD)
			put_word(out + size - WORD, word_at(in + size - WORD));
	if ((uintptr_t)out <= (uintptr_t)in)
		while (size--)
			*out++ = *in++;
	else
		while (size--)
			out[size] = in[size];
	return to;
}

void *memset(void *at, int byte, size_t size)
{
	char *out = at;
	uint64_t word = (unsigned char)byte * 0x0101010101010101u;

	for (; size >= WORD; size -= WORD, out += WORD)
		put_word(out, word);
	while (size--)
		*out++ = (char)byte;
	return at;
}

int memcmp(const void *one, const void *other, size_t size)
{
	const unsigned char *a = one, *b = other;

	for (; size >= WORD && word_at((const char *)a) == word_at((const char *)b);
	     size -= WORD, a += WORD, b += WORD)
		;
	for (; size; size--, a++, b++)
		if (*a != *b)
			return *a - *b;
	return 0;
}

size_t strnlen(const char *text, size_t most)
{
	size_t length = 0;

	while (length < most && text[length])
		length++;
	return length;
}

size_t strlen(const char *text)
{
	return strnlen(text, SIZE_MAX);
}

int strncmp(const char *one, const char *other, size_t most)
{
	for (; most; most--, one++, other++)
		if (*one != *other || !*one)
			return (unsigned char)*one - (unsigned char)*other;
	return 0;
}

int strcmp(const char *one, const char *other)
{
	return strncmp(one, other, SIZE_MAX);
}

/* As in the C locale. */
static int lower(char letter)
{
	return letter >= 'A' && letter <= 'Z' ? letter + 'a' - 'A' : (unsigned char)letter;
}

int strcasecmp(const char *one, const char *other)
{
	while (*one && lower(*one) == lower(*other))
		one++, other++;
	return lower(*one) - lower(*other);
}

char *strchr(const char *text, int letter)
{
	for (; *text != (char)letter; text++)
		if (!*text)
			return NULL;
	return (char *)(uintptr_t)text;
}

char *strrchr(const char *text, int letter)
{
	size_t length = strlen(text) + 1;

	while (length--)
		if (text[length] == (char)letter)
			return (char *)(uintptr_t)(text + length);
	return NULL;
}

char *strstr(const char *text, const char *part)
{
	size_t length = strlen(part);

	for (; strncmp(text, part, length); text++)
		if (!*text)
			return NULL;
	return (char *)(uintptr_t)text;
}

/* Letters at the beginning that are of the set, or that are not. */
static size_t span(const char *text, const char *set, int of_it)
{
	size_t length = 0;

	while (text[length] && !strchr(set, text[length]) == !of_it)
		length++;
	return length;
}

size_t strspn(const char *text, const char *set)
{
	return span(text, set, 1);
}

size_t strcspn(const char *text, const char *set)
{
	return span(text, set, 0);
}

char *strcpy(char *restrict to, const char *restrict from)
{
	return memcpy(to, from, strlen(from) + 1);
}

char *strncat(char *restrict to, const char *restrict from, size_t most)
{
	size_t length = strnlen(from, most);
	char *end = to + strlen(to);

	memcpy(end, from, length);
	end[length] = '\0';
	return to;
}
