/*
 * Reasons not to record: all of them, or those of a part, in one word of the control file.
 */
#ifndef XS_PAUSE_H
#define XS_PAUSE_H

/*
 * Why the whole run does not record (a process may have reasons of its own, collector/control.c).
 */
enum xs_pause_reason {
	XS_PAUSE_SESSION = 1, /* --pause NAME */
	XS_PAUSE_WINDOW = 2,  /* --delay, --duration */
	XS_PAUSE_STOPPED = 4, /* --stop NAME: for good */
	/*
	 * nobody has started a trace: neither the program that contains the library, nor
	 * (--on-demand) dynolog
	 */
	XS_PAUSE_LIBRARY = 8,
	XS_PAUSE_ALL = 0xff, /* all of the above, and those to come */
	/* parts, which a program may switch off by themselves (xstrace_toggle_collection()) */
	XS_PART_HOST = 0x100, /* what it says itself: ranges, ITT, MPI */
	XS_PART_XPU = 0x200,  /* Level Zero, OpenCL */
	XS_PART_CUDA = 0x400,
	XS_PARTS = 0x700,
};

#endif
