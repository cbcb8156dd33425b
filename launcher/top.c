/*
 * xstrace --top: a page of what this user's runs do, made anew each second until 'q' or Ctrl-C.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "look.h"
#include "text.h"

#define FIRST_MS   1000 /* until the first picture that has rates */
#define STEP_MS	   100
#define FASTEST_MS 200
#define SLOWEST_MS 10000

/* Another screen, where the shell's lines stay; no cursor. And back. */
#define ENTER "\033[?1049h\033[?25l"
#define LEAVE "\033[?25h\033[?1049l"
#define HOME  "\033[H"
#define CLEAR "\033[J"	   /* what is below */
#define EOL   "\033[K\r\n" /* what is right of it */

static volatile sig_atomic_t ended, resized, stopped;
static struct termios before;

static void note(int signal)
{
	if (signal == SIGWINCH)
		resized = 1;
	else if (signal == SIGTSTP)
		stopped = 1;
	else
		ended = signal;
}

static bool has_colors(void)
{
	const char *terminal = getenv("TERM"), *none = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && !(none && none[0]) &&
	       !(terminal && !strcmp(terminal, "dumb"));
}

static int number_of(const char *variable, int otherwise)
{
	const char *text = getenv(variable);
	int value = text ? atoi(text) : 0;

	return value > 0 ? value : otherwise;
}

static void measure(struct xs_page *page)
{
	struct winsize size = { .ws_col = 0 };

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	page->width = size.ws_col ? size.ws_col : number_of("COLUMNS", 120);
	page->height = size.ws_row ? size.ws_row : number_of("LINES", 40);
}

static void write_all(const char *text, size_t length)
{
	while (length) {
		ssize_t n = write(STDOUT_FILENO, text, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			ended = SIGPIPE;
			return;
		}
		text += n;
		length -= (size_t)n;
	}
}

/* ---- once ---- */

static void pause_ms(int ms)
{
	const struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l };

	(void)nanosleep(&time, NULL);
}

/* Twice: from the first look on it is counted, and the second one shows that. */
static int show_once(const struct xs_options *options)
{
	struct xs_page page = { .color = has_colors() };
	struct xs_looks looks = xs_look(options->top, NULL), first;
	bool named = strcmp(options->top, "*") != 0;

	if (!looks.count && named)
		return XS_EXIT_SELF;
	if (looks.count)
		pause_ms(FIRST_MS);
	if (looks.count && (!named || xs_session_is_there(options->top))) {
		first = looks;
		looks = xs_look(options->top, NULL);
		xs_looks_free(looks.count ? &first : &looks);
		if (!looks.count)
			looks = first; /* it has just ended */
	}
	measure(&page);
	page.height = 0;
	if (options->json)
		xs_top_json(stdout, &looks);
	else
		xs_top_text(&page, &looks);
	if (page.length)
		(void)fwrite(page.text, 1, page.length, stdout);
	free(page.text);
	xs_looks_free(&looks);
	return 0;
}

/* ---- again and again ---- */

/* What would end or stop this leaves a terminal behind that others can use. */
static const int caught[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP };

/* Keys come one by one and are not shown. */
static bool take_terminal(void)
{
	struct sigaction action = { .sa_handler = note };
	struct termios now;

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return false;
	now = before;
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		(void)sigaction(caught[i], &action, NULL);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &now);
	write_all(ENTER, sizeof(ENTER) - 1);
	return true;
}

static void give_terminal_back(void)
{
	write_all(LEAVE, sizeof(LEAVE) - 1);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Ctrl-Z: until somebody lets it go on. */
static bool stop_here(void)
{
	give_terminal_back();
	stopped = 0;
	(void)signal(SIGTSTP, SIG_DFL);
	(void)raise(SIGTSTP);
	return take_terminal();
}

static void show(struct xs_page *page, const struct xs_looks *looks, int interval, bool held)
{
	char head[160], *at, *end;
	time_t now = time(NULL);
	struct tm parts = { .tm_hour = 0 };
	size_t n;

	(void)localtime_r(&now, &parts);
	measure(page);
	page->length = 0;
	page->lines = 1;
	n = (size_t)snprintf(
		head, sizeof(head),
		"xstrace --top  %02d:%02d:%02d  every %.1f s%s  q quit  p hold  +/- pace",
		parts.tm_hour, parts.tm_min, parts.tm_sec, interval / 1000.0, held ? ", held" : "");
	if (n > (size_t)page->width)
		n = (size_t)page->width;
	xs_top_text(page, looks);
	write_all(HOME, sizeof(HOME) - 1);
	write_all(head, n);
	for (at = page->text; at && at < page->text + page->length; at = end + 1) {
		end = memchr(at, '\n', (size_t)(page->text + page->length - at));
		write_all(EOL, sizeof(EOL) - 1);
		write_all(at, (size_t)(end - at));
	}
	write_all("\033[K", 3);
	write_all(CLEAR, sizeof(CLEAR) - 1);
}

/* What was typed while waiting; 0: nothing, -1: there is nobody any more. */
static int key(int ms)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char letter;

	if (poll(&input, 1, ms) <= 0)
		return 0;
	return read(STDIN_FILENO, &letter, 1) == 1 ? letter : -1;
}

static bool heed(int letter, int *interval, bool *held)
{
	if (letter == 'q' || letter == 'Q' || letter < 0)
		return false;
	if (letter == 'p' || letter == 'P')
		*held = !*held;
	if (letter == '+' && *interval > FASTEST_MS)
		*interval /= 2;
	if (letter == '-' && *interval < SLOWEST_MS)
		*interval *= 2;
	return true;
}

/* False: to end. */
static bool wait_a_while(int ms, int *interval, bool *held)
{
	for (int passed = 0; passed < ms && !ended && !resized && !stopped; passed += STEP_MS) {
		int letter = key(STEP_MS);

		if (letter && !heed(letter, interval, held))
			return false;
		if (letter)
			break;
	}
	return !ended;
}

static int follow(const struct xs_options *options, struct xs_looks looks)
{
	struct xs_page page = { .color = has_colors() };
	bool held = false, first = true, named = strcmp(options->top, "*") != 0, gone = false;
	int interval = 1000;

	if (!take_terminal()) {
		xs_tell("xstrace: --top needs a terminal; with --once it prints one picture\n");
		xs_looks_free(&looks);
		return XS_EXIT_SELF;
	}
	for (;;) {
		resized = 0;
		show(&page, &looks, interval, held);
		if (!wait_a_while(first ? FIRST_MS / 2 : interval, &interval, &held))
			break;
		if (stopped && !stop_here())
			break;
		first = false;
		if (held)
			continue;
		xs_looks_free(&looks);
		if (named && !xs_session_is_there(options->top)) {
			gone = true;
			break;
		}
		looks = xs_look(options->top, NULL);
	}
	give_terminal_back();
	if (gone)
		printf("[INFO] Session %s is over\n", options->top);
	xs_looks_free(&looks);
	free(page.text);
	return 0;
}

int xs_top(const struct xs_options *options)
{
	struct xs_looks looks;

	if (options->once)
		return show_once(options);
	looks = xs_look(options->top, NULL);
	if (!looks.count && strcmp(options->top, "*") != 0)
		return XS_EXIT_SELF;
	return follow(options, looks);
}
