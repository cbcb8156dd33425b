/*
 * The protocol of Meta's dynolog daemon, one process's side of it: datagrams between two Unix
 * sockets. Layout of messages: dynolog/src/ipcfabric/FabricManager.h and Utils.h of
 * facebookincubator/dynolog; addresses: Endpoint.h there.
 */
#ifndef XS_DYNOLOG_H
#define XS_DYNOLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#define XS_DYNOLOG_PIDS 11u    /* a process and ten ancestors */
#define XS_DYNOLOG_TEXT 65536u /* bytes of a configuration */

struct xs_dynolog {
	int fd; /* -1: there is none */
	struct sockaddr_un own;
	size_t own_length;
};

/* What has come. */
enum xs_dynolog_heard {
	XS_DYNOLOG_NOTHING,
	XS_DYNOLOG_EMPTY, /* an answer: there is no request */
	XS_DYNOLOG_REQUEST,
	XS_DYNOLOG_GARBAGE, /* no message of the protocol, or not the daemon's */
};

/* Makes the socket that the daemon answers to. 0 or -errno. */
int xs_dynolog_open(struct xs_dynolog *dynolog);
void xs_dynolog_close(struct xs_dynolog *dynolog);
/* Both return 0 or -errno, and never wait; -ECONNREFUSED, -ENOENT: no daemon is there. */
int xs_dynolog_register(const struct xs_dynolog *dynolog, int32_t pid);
/* pids: the process's, and its ancestors'. */
int xs_dynolog_ask(const struct xs_dynolog *dynolog, const int32_t *pids, uint32_t count);
/* Takes one message; `text`, of XS_DYNOLOG_TEXT bytes: a request's. */
enum xs_dynolog_heard xs_dynolog_hear(const struct xs_dynolog *dynolog, char *text,
				      size_t *ret_length);

#endif
