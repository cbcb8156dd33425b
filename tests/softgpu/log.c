/* The truth: a line for each command that was executed, and for each misuse of the API. One write()
 * a line, so that what was executed is there however the program ends, and several processes can
 * share the file. */
#include "driver.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sg_logging;
static int log_fd = -1;

static const char header[] = "seq\tpid\tdevice\ttile\tordinal\tindex\tkind\tname\tbytes\tgroups\tsi"
			     "ze\tstart\tend\tstart_ns\tend_ns\tqueue\t"
			     "list\texecution\n";
static const char *const kinds[] = { "kernel", "copy",	"fill",	 "region",    "barrier",
				     "signal", "wait",	"reset", "timestamp", "query",
				     "call",   "fence", "end" };

void sg_log_start(const char *path)
{
	struct stat status;

	if (!path || !*path)
		return;
	log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (log_fd < 0) {
		fprintf(stderr, "softgpu: SOFTGPU_LOG=%s cannot be opened\n", path);
		_Exit(124);
	}
	if (!fstat(log_fd, &status) && status.st_size == 0)
		(void)!write(log_fd, header, sizeof(header) - 1);
	sg_logging = true;
}

void sg_log(uint64_t sequence, const struct sg_queue *queue, const struct sg_list *list,
	    const struct sg_cmd *cmd, uint64_t execution, const struct sg_span *span)
{
	char line[512], groups[48] = "-", size[48] = "-";
	const struct sg_device *device = queue->device;
	int length;

	if (cmd->op == SG_KERNEL) {
		const uint32_t *count = cmd->indirect ? &cmd->indirect->groupCountX : cmd->groups;

		(void)snprintf(groups, sizeof(groups), "%u,%u,%u", count[0], count[1], count[2]);
		(void)snprintf(size, sizeof(size), "%u,%u,%u", cmd->size[0], cmd->size[1],
			       cmd->size[2]);
	}
	length = snprintf(line, sizeof(line),
			  "%llu\t%d\t%d\t%d\t%u\t%u\t%s\t%s\t%llu\t%s\t%s\t%llu\t%llu\t%llu\t%"
			  "llu\t%p\t%p\t%llu\n",
			  (unsigned long long)sequence, (int)getpid(), device->id, device->tile,
			  queue->ordinal, queue->index, kinds[cmd->op], cmd->name,
			  (unsigned long long)cmd->bytes, groups, size,
			  (unsigned long long)span->start, (unsigned long long)span->end,
			  (unsigned long long)span->start_ns, (unsigned long long)span->end_ns,
			  (const void *)queue, (const void *)list, (unsigned long long)execution);
	if (length > 0)
		(void)!write(log_fd, line,
			     (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
}

/*
 * What a program, or a tracer within it, must not do: told in the log, or on stderr, and fatal when
 * SOFTGPU_STRICT=1.
 */
void sg_misuse(const char *format, ...)
{
	char line[256] = "# misuse: ";
	size_t length = strlen(line);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line + length, sizeof(line) - length - 1, format, args);
	va_end(args);
	length = strlen(line);
	line[length++] = '\n';
	(void)!write(log_fd >= 0 ? log_fd : STDERR_FILENO, line, length);
	if (sg_config.strict) {
		(void)!write(STDERR_FILENO, line, length);
		abort();
	}
}
