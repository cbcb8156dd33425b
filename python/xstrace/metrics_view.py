"""Shows metrics in a browser: a page for each execution of a kernel, which the slices of a trace link to.

The server listens on 127.0.0.1 alone and answers whoever has its token: the page that it names when it starts has the token in its
address and leaves a cookie, so that links to http://localhost:8000/KERNEL/INSTANCE work afterwards.
"""

from __future__ import annotations

import hmac
import html
import http.cookies
import http.server
import os
import re
import secrets
import ssl
import subprocess
import urllib.parse

from .analyze import Misuse, instance_charts, stall_pages
from .charts import ChartsError, page
from .cli import printable
from .stalls import Dump
from .temporary import Directory

COOKIE = "xstrace-metrics"


def pages_of(options, sections, kernel, instance, dump):
    """The pages (as charts.page() takes them) of that execution, none if it has no metrics. Raises Misuse."""
    for section in sections:
        if section.has_stalls:
            stalled = section.stalls.get(kernel) or section.stalls.get(re.sub(r"\[[^\]]*\]$", "", kernel))
            if stalled:
                return stall_pages(options, stalled, dump)
        else:
            for one in section.instances:
                if one.id == instance:
                    return instance_charts(options, section, one)
    return []


def index_of(options, sections):
    """The first page: all there is to look at, as HTML."""
    rows = []
    for section in sections:
        rows.append(f"<h2>Device {section.device}</h2>")
        if section.has_stalls:
            found = [(name, 0, name) for name in section.stalls]
        else:
            found = [(one.kernel, int(one.id), f"{one.kernel} #{int(one.id)}") for one in section.instances]
        rows += [
            f'<li><a href="/{urllib.parse.quote(name, safe="")}/{number}">{html.escape(text)}</a></li>' for name, number, text in found
        ]
    title = html.escape(options.title)
    return f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title></head>\n<body><h1>{title}</h1>\n{chr(10).join(rows)}\n</body></html>\n'


class _Handler(http.server.BaseHTTPRequestHandler):
    options = sections = dump = token = None
    server_version, sys_version = "xstrace", ""

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        told = urllib.parse.parse_qs(address.query).get("token", [""])[0]
        if not self._is_local():
            return self._answer(421, "This server is localhost's")
        if not self._same(told) and not self._same(self._cookie()):
            return self._answer(403, "The token is missing: open the address that analyzeperfmetrics.py has printed")
        if told:
            return self._answer(303, "", ("Location", urllib.parse.quote(urllib.parse.unquote(address.path)) or "/"), self._leave_cookie())
        return self._show(urllib.parse.unquote(address.path))

    def _show(self, path):
        kernel, _, instance = path.removeprefix("/").rpartition("/")
        try:
            if path in ("", "/"):
                return self._answer(200, index_of(self.options, self.sections))
            if not re.fullmatch(r"\d{1,15}", instance):
                return self._answer(404, "There is /, and for each instance of a kernel /KERNEL/INSTANCE")
            pages = pages_of(self.options, self.sections, kernel.strip('"'), int(instance), self.dump)
            if not pages:
                return self._answer(404, "The file has no metrics of this instance")
            return self._answer(200, page(pages, self.options.title))
        except (Misuse, ChartsError) as error:
            return self._answer(404, str(error))

    def _is_local(self):
        # another name that leads here: a page of somebody else's
        host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
        return host in ("localhost", "127.0.0.1")

    def _cookie(self):
        try:
            found = http.cookies.SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except http.cookies.CookieError:
            found = None
        return found.value if found else ""

    def _same(self, token):
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())

    def _leave_cookie(self):
        # Lax: a link from the page of a trace viewer is followed with it
        return ("Set-Cookie", f"{COOKIE}={self.token}; HttpOnly; SameSite=Lax; Path=/")

    def _answer(self, status, text, *headers):
        body = text.encode("utf-8", "backslashreplace")
        kind = "text/html" if text.startswith("<!doctype") else "text/plain"
        self.send_response(status)
        for name, value in (("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass  # the terminal is the user's


def _certificate(folder):
    """Makes a certificate for localhost in the folder; the paths of it and its key. Raises Misuse."""
    paths = [os.path.join(folder, name) for name in ("certificate.pem", "key.pem")]
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "7",
        "-subj",
        "/CN=localhost",
        "-out",
        paths[0],
        "-keyout",
        paths[1],
    ]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise Misuse("-p: openssl could not make a certificate; give one by -c and -e") from None
    return paths


def _secure(server, options):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with Directory("xstrace-certificate.") as folder:
        paths = [options.certificate, options.key] if options.certificate else _certificate(folder)
        try:
            context.load_cert_chain(*paths)
        except ssl.SSLError:
            raise Misuse(f"{options.certificate} and {options.key} are no certificate and its key") from None
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)


def serve(options, sections):
    """Answers until Ctrl-C. Raises Misuse, OSError."""
    if not options.metrics and not any(section.has_stalls for section in sections):
        raise Misuse("-m and -y are missing: which metrics to draw; -l lists them")
    handler = type("Handler", (_Handler,), {"options": options, "sections": sections, "token": secrets.token_urlsafe(24)})
    handler.dump = Dump(options.shaderdump, options.demangler) if options.shaderdump else None
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), handler)
    except (OSError, OverflowError) as error:
        raise Misuse(f"port {options.port}: {getattr(error, 'strerror', None) or error}; another one: --port") from None
    server.daemon_threads = True
    if options.https:
        _secure(server, options)
    scheme = "https" if options.https else "http"
    print(f"Open {scheme}://localhost:{server.server_port}/?token={handler.token}", flush=True)
    print(f"Then links of {printable(options.title)} in a trace work, too; Ctrl-C ends", flush=True)
    try:
        server.serve_forever()
    finally:
        server.server_close()
