/* The clock, and the truth: a line for each command that was executed. One write() a line, so that
 * what was executed is there however the program ends, and several processes can share the file. */
#include "driver.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int log_fd = -1;
static _Atomic uint64_t sequence;

static const char header[] =
	"seq\tpid\tkind\tname\tcorrelation\tdevice\tcontext\tstream\tgraph\tnode\tgrid\tblock\t"
	"shared\tcopy\tbytes\tstart\tend\tstart_ns\tend_ns\n";
static const char *const kinds[SC_KINDS] = { "kernel", "copy", "peer",	"set",	"host",
					     "record", "wait", "graph", "empty" };

/* A program that forbids itself the time stamp counter has the kernel alone. */
static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	if (sc_config.asks_kernel)
		(void)syscall(SYS_clock_gettime, clock, &ts);
	else
		(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t realtime(void)
{
	return now(CLOCK_REALTIME);
}

uint64_t (*_Atomic sc_clock)(void) = realtime;

uint64_t sc_raw_ns(void)
{
	return now(CLOCK_MONOTONIC_RAW);
}

void sc_log_start(const char *path)
{
	struct stat status;

	if (!path || !*path)
		return;
	log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (log_fd < 0) {
		fprintf(stderr, "softcuda: SOFTCUDA_LOG=%s cannot be opened\n", path);
		_Exit(124);
	}
	if (!fstat(log_fd, &status) && status.st_size == 0)
		(void)!write(log_fd, header, sizeof(header) - 1);
	sc_flag(SC_LOGGING, true);
}

void sc_log_command(const struct sc_cmd *cmd, uint64_t raw_start, uint64_t raw_end)
{
	const char *name = cmd->kind == SC_KERNEL ? cmd->function->name : kinds[cmd->kind];
	char line[1024];
	int length = snprintf(
		line, sizeof(line),
		"%llu\t%d\t%s\t%s\t%u\t%d\t%u\t%u\t%u\t%llu\t%u,%u,%u\t%u,%u,%u\t%u\t%u\t%llu\t"
		"%llu\t%llu\t%llu\t%llu\n",
		(unsigned long long)atomic_fetch_add(&sequence, 1) + 1, (int)getpid(),
		kinds[cmd->kind], name, cmd->corr, cmd->context->device->ordinal, cmd->context->id,
		cmd->stream->id, cmd->graph_id, (unsigned long long)cmd->node_id, cmd->grid[0],
		cmd->grid[1], cmd->grid[2], cmd->block[0], cmd->block[1], cmd->block[2],
		cmd->shared, cmd->copy_kind, (unsigned long long)cmd->bytes,
		(unsigned long long)cmd->start, (unsigned long long)cmd->end,
		(unsigned long long)raw_start, (unsigned long long)raw_end);

	if (length > 0 && (size_t)length < sizeof(line))
		(void)!write(log_fd, line, (size_t)length);
}

/* what is no command: a line that begins with "# " */
void sc_log_note(const char *format, ...)
{
	char line[512] = "# ";
	va_list args;
	size_t length;

	if (log_fd < 0)
		return;
	va_start(args, format);
	(void)vsnprintf(line + 2, sizeof(line) - 3, format, args);
	va_end(args);
	length = strlen(line);
	line[length++] = '\n';
	(void)!write(log_fd, line, length);
}
