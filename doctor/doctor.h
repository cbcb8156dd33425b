/*
 * xstrace-doctor: what this machine gives for tracing and what it lacks, and what will be seen of a
 * program. xstrace --doctor calls it: the launcher is linked statically, and cannot load what has
 * to be looked at.
 */
#ifndef XS_DOCTOR_H
#define XS_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ---- tell.c: what was found, a line each ---- */

enum dr_state {
	DR_OK,
	DR_NOTE,    /* good to know: something costs more, or cannot be had */
	DR_MISSING, /* is not installed; who needs it must do something */
	DR_BAD,	    /* tracing fails, or loses something */
};

/* `todo`: what to do about it; NULL: nothing. Both are constants, the text is copied. */
void dr_say(enum dr_state state, const char *what, const char *todo, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A line between; in JSON the name of the list that follows. */
void dr_section(const char *title, const char *key);
/* Prints all of it; the exit status: 0, or 1 where something is bad. */
int dr_print(bool json);

/* ---- child.c: libraries of others are looked at in a process of their own ---- */

struct dr_ended {
	int status;	/* as from waitpid(); -1: it could not be started */
	bool timed_out; /* it was killed */
};

/*
 * Calls `look` in a child without stdin, stdout and stderr, and reads what that puts into its file:
 * at most size - 1 bytes, then a 0. A crash of a driver, or a wait for ever, ends there.
 */
struct dr_ended dr_look(void (*look)(FILE *out, const void *data), const void *data, char *text,
			size_t size);
/* Runs a program likewise; its stdout and stderr. `argv` ends with NULL. */
struct dr_ended dr_run(char *const *argv, char *text, size_t size);
/* "crashed (signal 11)", "did not end within 30 s"; NULL: it ended well. */
const char *dr_why(const struct dr_ended *ended, char *text, size_t size);

/* ---- what is looked at ---- */

void dr_machine(void);	      /* machine.c: clock, memory, limits, rights, containers */
void dr_apis(void);	      /* apis.c: loaders, drivers, runtimes */
const char *dr_mpi(void);     /* apis.c: the MPI library that was found; NULL: none */
bool dr_has(const char *api); /* apis.c: "opencl", "level_zero", "cuda": is there a device? */
/* try.c: traces a program of each kind. `launcher`: the path of xstrace. */
void dr_try(const char *launcher);
/* probe.c: is such a program. */
int dr_probe(const char *kind, const char *library);
/* app.c: what will be seen of a program; argv[0] is its path. */
void dr_app(char *const *argv);

/* Does the file have the text? False also where it cannot be read. */
bool dr_file_has(const char *path, const char *text);
/* The first line of a small file; empty: it cannot be read. */
void dr_first_line(const char *path, char *text, size_t size);

#endif
