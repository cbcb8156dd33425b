/*
 * Names that break writers of JSON, and tasks that break those who match begin with end: whatever
 * a program passes, the trace must be valid, say what it can, and the program must not notice.
 *
 * For each nasty name, "name: <bytes in hex>" is printed, in the order of the tasks names::<name>.
 */
#include "itt_app.h"

static const struct {
	const char *bytes;
	size_t size;
} nasty[] = {
/* clang-format off */
#define NAME(s) {s, sizeof(s) - 1}
	/* clang-format on */
	NAME("plain"),
	NAME("\"quoted\""),
	NAME("back\\slash\\"),
	NAME("\\u0041 \\n not escapes"),
	NAME("new\nline\r\n"),
	NAME("\x01\x02\x1b[31m\x1f\x7f tab\t bell\a"),
	NAME("},{\"ph\":\"X\"},"),
	NAME("]}"),
	NAME("a::b::c"),
	NAME("</script><!-- %s %n %d"),
	NAME(" leading and trailing "),
	NAME("gr\xc3\xbc\xc3\x9f \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x9a\x80"),
	NAME("line\xe2\x80\xa8separator\xe2\x80\xa9 bom\xef\xbb\xbf nul\xc2\x80"),
	/* from here on, not UTF-8: each wrong sequence becomes U+FFFD */
	NAME("latin1 \xe9\xff\xfe"),
	NAME("lone continuation \x80\xbf"),
	NAME("cut 2 \xc3"),
	NAME("cut 3 \xe4\xb8"),
	NAME("cut 4 \xf0\x9f\x9a"),
	NAME("cut inside \xf0\x9f\x9a, then text"),
	NAME("overlong \xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf"),
	NAME("surrogate \xed\xa0\x80\xed\xbf\xbf"),
	NAME("beyond \xf4\x90\x80\x80 \xf5\x80\x80\x80"),
	NAME(""),
#undef NAME
};

static __itt_domain *names, *domain_a, *domain_b;
static __itt_string_handle *task_a, *task_b;
static long tasks;

static void trace_name(const char *bytes, size_t size)
{
	printf("name: ");
	for (size_t i = 0; i < size; i++)
		printf("%02x", (unsigned char)bytes[i]);
	printf("\n");
	finished_task(names, __itt_string_handle_create(bytes));
	tasks++;
}

static char *long_text(size_t size)
{
	char *bytes = malloc(size + 1);

	if (!bytes)
		die("malloc");
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)('a' + i % 26);
	bytes[size] = '\0';
	return bytes;
}

/* with its domain's in front of it, a name is as long as both */
static void trace_long_domain(void)
{
	char *domain = long_text(3000), *name = long_text(16000);

	finished_task(__itt_domain_create(domain), __itt_string_handle_create(name));
	tasks++;
	free(domain);
	free(name);
}

static void trace_long_name(size_t size)
{
	char *bytes = long_text(size);

	trace_name(bytes, size);
	memset(bytes, 'X', size); /* the name was copied, or it is wrong now */
	free(bytes);
}

/* a handle is the same whoever asks for its name, and the name's memory may change after */
static void trace_reused_buffer(void)
{
	char name[] = "first";
	__itt_string_handle *first = __itt_string_handle_create(name), *second, *first_again;
	__itt_domain *names_again = __itt_domain_create("names");

	memcpy(name, "other", sizeof(name));
	second = __itt_string_handle_create(name);
	memcpy(name, "first", sizeof(name));
	first_again = __itt_string_handle_create(name);
	finished_task(names, first);
	finished_task(names, second);
	printf("handles: %s\n", first == first_again && names == names_again ? "same" : "differ");
	printf("expected: 1 tasks names::first\nexpected: 1 tasks names::other\n");
	tasks += 2;
}

/* neither is inside the other, so they cannot share a track */
static void trace_interleaved(void)
{
	task_begin(domain_a, task_a);
	sleep_ms(1);
	task_begin(domain_b, task_b);
	sleep_ms(1);
	task_end(domain_a);
	sleep_ms(1);
	task_end(domain_b);
	printf("expected: 1 tasks domain a::a\nexpected: 1 tasks domain b::b\n");
	tasks += 2;
}

/* neither an end without a begin nor a begin without a domain is a task */
static void trace_unmatched(void)
{
	__itt_domain *volatile no_domain = NULL;
	__itt_string_handle *no_name;

	task_end(domain_a);
	task_end(domain_b);
	finished_task(no_domain, task_a);
	no_domain = __itt_domain_create(NULL);
	no_name = __itt_string_handle_create(NULL);
	printf("of NULL: %s, %s\n", no_domain ? "a domain" : "no domain",
	       no_name ? "a name" : "no name");
}

/* a program may switch a domain off and on between tasks, and also inside one */
static void trace_disabled(void)
{
	__itt_domain *domain = __itt_domain_create("switched");

	if (domain) /* NULL: nobody listens */
		domain->flags = 0;
	finished_task(domain, __itt_string_handle_create("off"));
	if (domain)
		domain->flags = 1;
	finished_task(domain, __itt_string_handle_create("on"));
	printf("expected: 1 tasks switched::on\nexpected: 0 tasks switched::off\n");
	tasks++;
}

/* a task without a name is still a task; what it is called is the tracer's choice */
static void trace_nameless(void)
{
	__itt_string_handle *volatile no_name = NULL;

	finished_task(domain_a, no_name);
	tasks++;
}

static void trace_nasty_domain(void)
{
	finished_task(__itt_domain_create("do\"ma\\in\n\xff"), task_a);
	finished_task(__itt_domain_create(""), task_a);
	tasks += 2;
}

/* counters are called as tasks are, also by nothing */
static void trace_counters(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(nasty); i++) {
		__itt_counter counter = __itt_counter_create(nasty[i].bytes, NULL);

		if (counter) /* NULL: nobody listens */
			__itt_counter_inc_delta(counter, 1);
	}
}

int main(void)
{
	names = __itt_domain_create("names");
	domain_a = __itt_domain_create("domain a");
	domain_b = __itt_domain_create("domain b");
	task_a = __itt_string_handle_create("a");
	task_b = __itt_string_handle_create("b");
	__itt_thread_set_name("thr\"ead\\\n\xff");

	for (size_t i = 0; i < ARRAY_SIZE(nasty); i++)
		trace_name(nasty[i].bytes, nasty[i].size);
	trace_long_name(600);
	trace_long_name(100000);
	trace_reused_buffer();
	trace_interleaved();
	trace_unmatched();
	trace_disabled();
	trace_nameless();
	trace_nasty_domain();
	trace_long_domain();
	trace_counters();
	printf("expected: %ld tasks\n", tasks);
	return 0;
}
