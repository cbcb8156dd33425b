/*
 * What a program's file says about whether it can be traced: libxstrace.so gets in where the
 * dynamic loader of this machine puts it.
 */
#ifndef XS_PROGRAM_H
#define XS_PROGRAM_H

enum xs_program {
	XS_PROGRAM_DYNAMIC,
	XS_PROGRAM_STATIC,
	XS_PROGRAM_OTHER_CLASS,
	XS_PROGRAM_SETUID,
	XS_PROGRAM_UNKNOWN,
};

/*
 * Looks into the file, for scripts into their interpreter, and for the dynamic loader, called as a
 * program (`argv` as it is given, or NULL), into what it is to load. *ret_file: the program that it
 * says this of.
 */
enum xs_program xs_program_kind(const char *path, char *const *argv, const char **ret_file);
/* "is statically linked"; NULL: it can be traced, as far as its file says. */
const char *xs_program_why_not(enum xs_program kind);
/*
 * Could the dynamic loader load this library? 0 or -errno; -ENOEXEC: it is none, or cut short. The
 * loader ends a program for a file that is cut short, and waits for ever at a pipe.
 */
int xs_library_check(const char *path);

#endif
