#include "window.h"

void xs_window_set(struct xs_window *window, const struct xs_run *run)
{
	const struct xs_options *options = run->options;
	uint64_t begin = run->control->mono0 + options->delay;

	window->begin = options->delay ? begin : 0;
	window->end = options->duration ? begin + options->duration : 0;
}

uint64_t xs_window_follow(struct xs_window *window, const struct xs_run *run)
{
	uint64_t now, next;

	if (!window->begin && !window->end)
		return UINT64_MAX;
	now = xs_clock_ns(CLOCK_MONOTONIC);
	if (window->begin && now >= window->begin) {
		(void)xs_control_change(run->directory, run->control, XS_PAUSE_WINDOW, false);
		window->begin = 0;
	}
	if (window->end && now >= window->end) {
		(void)xs_control_change(run->directory, run->control, XS_PAUSE_WINDOW, true);
		window->end = 0;
	}
	next = window->begin ? window->begin : window->end;
	return next ? next - now : UINT64_MAX;
}
