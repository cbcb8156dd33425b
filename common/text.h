/*
 * Text of programs' making (names of theirs, of their kernels, tasks, files) on its way to a
 * person: to a terminal or a report, and into the names of files. It goes through one of these,
 * always.
 */
#ifndef XS_TEXT_H
#define XS_TEXT_H

#include <stddef.h>

/*
 * One line of plain text: what is no printable character becomes '?', be it a control character, a
 * byte that is not UTF-8, an end of a line or a mark that turns the direction of writing. Returns
 * the end; writes at most `length` bytes.
 */
char *xs_plain(char *out, const char *text, size_t length);

/*
 * The same as a part of a file's name: no '/', and no '-' at its beginning, which commands would
 * take for an option.
 */
char *xs_plain_file(char *out, const char *text, size_t length);

/*
 * A line on stderr, made plain as a whole. The format ends with \n. Whatever stderr is, and whether
 * anybody reads it, neither hangs nor ends the process.
 */
void xs_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
