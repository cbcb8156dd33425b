/*
 * What launcher and drain process say to each other: an end that leaves takes none of its words
 * along.
 */
#include <unistd.h>

#include "channel.h"
#include "tap.h"

static int ends[2];

static bool hears(enum xs_heard expected, enum xs_word word, int32_t number)
{
	struct xs_message message = { .number = 0 };
	enum xs_heard heard = xs_channel_hear(ends[0], false, &message);

	return heard == expected &&
	       (heard != XS_HEARD || (message.word == word && message.number == number));
}

static void words(void)
{
	CHECK(!xs_channel_open(ends), "open");
	CHECK(hears(XS_HEARD_NOTHING, 0, 0), "nothing is said");
	xs_channel_say(ends[1], XS_WORD_APP_FINISHED, 7);
	xs_channel_say(ends[1], XS_WORD_RUN_FINISHED, 8);
	CHECK(hears(XS_HEARD, XS_WORD_APP_FINISHED, 7), "the first");
	CHECK(hears(XS_HEARD, XS_WORD_RUN_FINISHED, 8), "the second");
	close(ends[1]);
	CHECK(hears(XS_HEARD_END, 0, 0), "the end");
	close(ends[0]);
}

/* The kernel puts an error in front of the words of who has not heard all of ours. */
static void left_unheard(void)
{
	CHECK(!xs_channel_open(ends), "open");
	xs_channel_say(ends[0], XS_WORD_APP_ENDED, 1);
	xs_channel_say(ends[1], XS_WORD_APP_FINISHED, 2);
	xs_channel_say(ends[1], XS_WORD_RUN_FINISHED, 3);
	close(ends[1]);
	CHECK(hears(XS_HEARD, XS_WORD_APP_FINISHED, 2), "the first");
	CHECK(hears(XS_HEARD, XS_WORD_RUN_FINISHED, 3), "the last");
	CHECK(hears(XS_HEARD_END, 0, 0), "the end");
	xs_channel_say(ends[0], XS_WORD_APP_ENDED, 4); /* to nobody: no signal, no wait */
	close(ends[0]);
}

int main(int argc, char **argv)
{
	(void)argc;
	tap_main(argv);
	tap_run("words arrive in their order", words);
	tap_run("an end that has not heard all", left_unheard);
	return tap_done();
}
