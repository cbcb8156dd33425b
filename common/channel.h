/*
 * Messages between launcher and drain process, by sockets that no other process has. So a process
 * that can write into the run directory (even into `control`) can neither make one of them wait nor
 * forge a message of the other. Each sees the other's end as the end of the channel.
 */
#ifndef XS_CHANNEL_H
#define XS_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

enum xs_word {
	/* the launcher's */
	XS_WORD_APP = 1,   /* number: the pid that is about to become the application */
	XS_WORD_APP_ENDED, /* number: its status, as from waitpid() */
	XS_WORD_NO_APP,	   /* it could not be run */
	XS_WORD_APP_BARE,  /* it has no variables of ours; the launcher says so */
	/* the drain process's */
	XS_WORD_READY,	      /* --chrome-kmd-logging: the application may start */
	XS_WORD_APP_FINISHED, /* the application's trace is complete; descendants still run */
	XS_WORD_RUN_FINISHED, /* nothing is left to do: the drain process is just ending */
};

struct xs_message {
	uint32_t word; /* enum xs_word */
	int32_t number;
};

enum xs_heard {
	XS_HEARD_NOTHING,
	XS_HEARD,
	XS_HEARD_END, /* the other one has ended, and all that it said has been heard */
};

/*
 * The descriptors that the drain process is started with, beside the first three: its end, the run
 * directory, and a file without a name that holds `control` as the launcher has made it. The run's
 * own file may be spoilt by a traced process before the drain process looks.
 */
#define XS_DRAIN_CHANNEL   3
#define XS_DRAIN_DIRECTORY 4
#define XS_DRAIN_CONTROL   5

/*
 * Moves a descriptor behind those: closed on exec, and none that a child is to have. The new one,
 * or -errno; the old one is closed.
 */
int xs_channel_move_up(int fd);
/* Makes both ends, moved up. 0 or -errno. */
int xs_channel_open(int ends[2]);
/*
 * Says it if the other one is there; raises no signal. Waits only while the kernel takes no word,
 * for half a second at most; then the other one sees the end of the channel.
 */
void xs_channel_say(int end, enum xs_word word, int32_t number);
/* What was said next; wait: until something is. */
enum xs_heard xs_channel_hear(int end, bool wait, struct xs_message *ret);

#endif
