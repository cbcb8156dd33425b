"""A daemon that speaks dynolog's protocol, as one of the sides that libkineto has; and one that misbehaves.

    with Dynolog(directory) as daemon:                  # sockets in that directory; None: abstract ones
        daemon.wait_for(pid)                            # until the process has asked
        daemon.gputrace([pid], "ACTIVITIES_LOG_FILE=…")  # what dyno gputrace does; the pids it is for

The layouts, of facebookincubator/dynolog at c3a231a520f67fe8c4a153b38d4bb32a7b94c148:
    every message   dynolog/src/ipcfabric/FabricManager.h, struct Metadata: size_t size, char type[32]; then `size` bytes
    "ctxt"          dynolog/src/ipcfabric/Utils.h, struct LibkinetoContext: int32 gpu, pid; int64 jobid
                    answered (dynolog/src/tracing/IPCMonitor.cpp) by "ctxt": int32, processes of the job on that GPU
    "req"           Utils.h, struct LibkinetoRequest: int32 type, n; int64 jobid; int32 pids[n], the process and its ancestors
                    answered (IPCMonitor.cpp) by "req": the configuration as text, empty if there is none
    addresses       dynolog/src/ipcfabric/Endpoint.h: datagrams; KINETO_IPC_SOCKET_DIR/dynolog, or abstract "dynolog" with a
                    zero byte behind it
    requests        dynolog/src/LibkinetoConfigManager.cpp: each process gets one once; it is busy until it has fetched it;
                    REQUEST_TRACE_ID is added; `limit` processes at most, of those whose pids or ancestors match
"""

import contextlib
import os
import socket
import struct
import threading
import time

HEAD = struct.Struct("<Q32s")
CONTEXT = struct.Struct("<iiq")
QUESTION = struct.Struct("<iiq")
ACTIVITIES = 2


def message(kind, data):
    return HEAD.pack(len(data), kind.encode()) + data


class Dynolog:
    def __init__(self, directory):
        self.address = f"{directory}/dynolog" if directory else "\0dynolog\0"
        self.env = {"KINETO_USE_DAEMON": "1", **({"KINETO_IPC_SOCKET_DIR": str(directory)} if directory else {})}
        self.registered = []  # pid, gpu, job
        self.asked = {}  # pid: its pids, when it was heard last
        self.requests = {}  # pid: configuration
        self.wrong = []
        self.questions = 0
        self.answer = self.answer_properly  # or another function of the socket, the sender, its pid
        self.changed = threading.Condition()

    def __enter__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.address)
        self.socket.settimeout(0.05)
        self.over = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        self.socket.close()
        if not self.address.startswith("\0"):
            os.unlink(self.address)

    def serve(self):
        while not self.over:
            try:
                data, sender = self.socket.recvfrom(1 << 16)
            except TimeoutError:
                continue
            with self.changed, contextlib.suppress(FileNotFoundError, ConnectionRefusedError):  # it has ended
                self.take(data, sender)
                self.changed.notify_all()

    def take(self, data, sender):
        size, kind = HEAD.unpack_from(data)
        body = data[HEAD.size :]
        kind = kind.partition(b"\0")[0]
        if size != len(body) or kind not in (b"ctxt", b"req"):
            self.wrong.append(data)
        elif kind == b"ctxt":
            gpu, pid, job = CONTEXT.unpack(body)
            self.registered.append((pid, gpu, job))
            self.socket.sendto(message("ctxt", struct.pack("<i", len(self.registered))), sender)
        else:
            how, count, job = QUESTION.unpack_from(body)
            pids = struct.unpack_from(f"<{count}i", body, QUESTION.size)
            if how != ACTIVITIES or len(body) != QUESTION.size + 4 * count:
                self.wrong.append(data)
            self.asked[pids[0]] = pids
            self.questions += 1
            self.answer(sender, pids[0])

    def answer_properly(self, sender, pid):
        self.socket.sendto(message("req", self.requests.pop(pid, "").encode()), sender)

    def wait_for(self, pid=None, timeout=20, again=False):
        """Until it has asked (again: from now on); its pid."""
        deadline = time.monotonic() + timeout
        with self.changed:
            if again:
                self.asked.clear()
            while not (pid in self.asked if pid else self.asked):
                assert self.changed.wait(deadline - time.monotonic()), f"{pid} has not asked"
            return pid or next(iter(self.asked))

    def gputrace(self, pids, config, limit=3):
        """Returns the processes that are triggered."""
        with self.changed:
            matched = [pid for pid, of in self.asked.items() if not pids or set(pids) & set(of)]
            found = [pid for pid in matched if pid not in self.requests][:limit]
            for pid in found:
                self.requests[pid] = f"\n{config}\nREQUEST_TRACE_ID={1000 + pid}\n"
        return found
