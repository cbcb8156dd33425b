/*
 * A program that traces a part of itself and saves the trace.
 *
 *	cc -o saves_itself saves_itself.c $(pkg-config --cflags --libs xstrace)
 *	./saves_itself
 */
#include <stdio.h>
#include <xstrace/xstrace.h>

static double solve(int n)
{
	double sum = 0;

	xstrace_range_push("solve");
	for (int i = 1; i < n; i++)
		sum += 1.0 / i;
	xstrace_range_pop();
	return sum;
}

int main(void)
{
	struct xstrace_trace *trace = NULL;

	if (xstrace_start() == XSTRACE_OFF)
		fprintf(stderr, "not traced: %s\n", xstrace_why());
	for (int i = 0; i < 3; i++) {
		xstrace_counter("residual", 1.0 / (1 + i));
		printf("%.3f\n", solve(100000 * (i + 1)));
	}
	if (xstrace_stop(&trace) ==
	    XSTRACE_OK) { /* XSTRACE_JOINED: it is in the launcher's trace */
		printf("%zu events\n", xstrace_trace_count(trace));
		xstrace_trace_save(trace, "mine.json");
	}
	xstrace_trace_free(trace);
	return 0;
}
