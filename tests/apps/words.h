/*
 * A program that does what words say: tests of what is recorded when, for work of any kind.
 *
 *	=NAME		a piece of work of this name
 *	pause, resume	ITT's
 *	set:VALUE	PTI_ENABLE_COLLECTION
 *	!		prints a line, and goes on when it has read one
 */
#ifndef WORDS_H
#define WORDS_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void call_itt(const char *name)
{
	void (*function)(void);

	*(void **)&function = dlsym(RTLD_DEFAULT, name);
	if (function)
		function();
}

static void do_words(char **words, void (*work)(const char *name))
{
	for (; *words; words++) {
		if (**words == '=')
			work(*words + 1);
		else if (!strcmp(*words, "pause"))
			call_itt("__itt_pause");
		else if (!strcmp(*words, "resume"))
			call_itt("__itt_resume");
		else if (!strncmp(*words, "set:", 4))
			setenv("PTI_ENABLE_COLLECTION", *words + 4, 1);
		else if (puts("ready") < 0 || fflush(stdout) || getchar() == EOF)
			exit(1);
	}
}

#endif
