/* What an IPC handle of 64 bytes holds: memory of another process, by its descriptor there. */
#ifndef SG_IPC_H
#define SG_IPC_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { SG_IPC_EVENTS = 0x5e01, SG_IPC_MEMORY = 0x5e02 };

struct sg_ipc {
	uint32_t magic, flags;
	int32_t pid, fd;
	uint64_t size, offset;
	uint32_t device;
};

static inline int sg_ipc_open(const struct sg_ipc *ipc)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", ipc->pid, ipc->fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

#endif
