"""shop.py - a package registry of the tests' own, that can be told to be slow, to lie, or to be gone.

pip (a page, or JSON), npm and cargo (a sparse index); index and files may have different names. It serves TLS
at one address and plain HTTP at the same, with the certificate of servers.py.
"""
import base64
import contextlib
import hashlib
import http.server
import io
import json
import socket
import ssl
import threading
import time
import zipfile

import servers


def wheel(name, text, extra=b""):
    """The bytes of a package that says `text`, and those of its METADATA."""
    info, out = f"{name}-1.0.dist-info", io.BytesIO()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    files = {f"{name}.py": f"TEXT = {text!r}\n", f"{info}/METADATA": metadata,
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: shop\nRoot-Is-Purelib: true\nTag: py3-none-any\n", f"{name}.bin": extra}
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(out, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return out.getvalue(), metadata.encode()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Page:
    """What is at one path. `slow` is bytes of a piece and seconds between two."""

    def __init__(self, body, kind="application/octet-stream", etag=None, slow=None, cut=None, headers=None, status=200, chunked=False):
        self.body, self.kind, self.etag, self.slow, self.cut = body, kind, etag, slow, cut
        self.headers, self.status, self.chunked = headers or {}, status, chunked


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def setup(self):
        super().setup()
        with self.server.shop.lock:
            self.server.shop.open_sockets.append(self.connection)

    def log_message(self, *_):
        pass

    def do_GET(self):
        shop, host = self.server.shop, (self.headers["Host"] or "").partition(":")[0]
        page = shop.pages.get((host, self.path)) or shop.pages.get((host, self.path + " " + (self.headers["Accept"] or "")[:30]))
        with shop.lock:
            shop.seen.append((host, self.command, self.path, dict(self.headers)))
        if page is None:
            page = Page(b"no\n", "text/plain", status=404)
        if page.etag and self.headers["If-None-Match"] == page.etag:
            page = Page(b"", page.kind, page.etag, status=304)
        with contextlib.suppress(OSError):
            self.answer(page)

    do_HEAD = do_GET

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.do_GET()

    def answer(self, page):
        self.send_response(page.status)
        for name, value in {"Content-Type": page.kind, **({"ETag": page.etag} if page.etag else {}), **page.headers}.items():
            self.send_header(name, value)
        if page.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif page.status != 304:
            self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        if self.command == "HEAD" or page.status == 304:
            return
        size, pause = page.slow or (1 << 20, 0)
        body = page.body if page.cut is None else page.body[:page.cut]
        for at in range(0, len(body), size):
            piece = body[at:at + size]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if page.chunked else piece)
            self.wfile.flush()
            time.sleep(pause)
        if page.cut is not None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif page.chunked:
            self.wfile.write(b"0\r\n\r\n")


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, shop, address, port):
        self.shop = shop
        super().__init__((address, port), Handler)

    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # the catcher has 0.0.0.0
        super().server_bind()

    def process_request(self, request, client_address):
        self.shop.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, *_):
        pass


class Shop:
    """`pages`: (host, path) to Page; may change at any time. `seen`: (host, method, path, headers) of each request."""

    def __init__(self, address=servers.SHOP):
        self.connections, self.open_sockets = 0, []
        self.address, self.pages, self.seen, self.lock, self.listeners = address, {}, [], threading.Lock(), []
        self.open()

    def open(self):
        for port in (80, 443):
            listener = Listener(self, self.address, port)
            if port == 443:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(servers.FOLDER / "cert.pem", servers.FOLDER / "key.pem")
                listener.socket = context.wrap_socket(listener.socket, server_side=True, do_handshake_on_connect=False)
            threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            self.listeners.append(listener)

    def close(self):
        for listener in self.listeners:
            listener.shutdown()
            listener.server_close()
        self.listeners = []

    def drop(self):
        """Hangs up on all who wait."""
        with self.lock:
            kept, self.open_sockets = self.open_sockets, []
        for s in kept:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def asked(self, path):
        with self.lock:
            return [s for s in self.seen if s[2] == path]

    def forget(self):
        with self.lock:
            self.seen.clear()

    # ---- registries ----

    def pip(self, name, text, is_json=False, has_metadata=False, extra=b""):
        """A package; its file is at /f/NAME..., its index at /simple/NAME/. The path of the file."""
        data, metadata = wheel(name, text, extra)
        file = f"{name}-1.0-py3-none-any.whl"
        path = f"/f/{file}"
        self.pages[("files.test", path)] = Page(data)
        self.pages[("files.test", path + ".metadata")] = Page(metadata)
        url = f"https://files.test{path}"
        beside = f' data-dist-info-metadata="sha256={sha256(metadata)}"' if has_metadata else ""
        if is_json:
            body = {"meta": {"api-version": "1.0"}, "name": name, "files": [{"filename": file, "url": url, "hashes": {"sha256": sha256(data)},
                                                                              "core-metadata": {"sha256": sha256(metadata)}}]}
            page = Page(json.dumps(body).encode(), "application/vnd.pypi.simple.v1+json", etag=f'"{sha256(data)[:8]}"')
        else:
            page = Page(f'<!DOCTYPE html><a href="{url}#sha256={sha256(data)}"{beside}>{file}</a>\n'.encode(), "text/html", etag=f'"{sha256(data)[:8]}"')
        self.pages[("pkg.test", f"/simple/{name}/")] = page
        return path

    def npm(self, name, tarball, escaped=None):
        """A packument and its tarball; the path of that."""
        path = f"/{name}/-/{name.rpartition('/')[2]}-1.0.0.tgz"
        version = {"name": name, "version": "1.0.0", "main": "index.js", "dist": {
            "tarball": f"https://pkg.test{path}", "shasum": hashlib.sha1(tarball).hexdigest(),
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()}}
        body = json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode()
        self.pages[("pkg.test", escaped or f"/{name}")] = Page(body, "application/json", etag='"1"')
        self.pages[("pkg.test", path)] = Page(tarball)
        return path

    def crate(self, name, data):
        """The path of its file."""
        self.pages[("pkg.test", "/config.json")] = Page(json.dumps({"dl": "https://files.test/crates"}).encode(), "application/json")
        line = json.dumps({"name": name, "vers": "1.0.0", "deps": [], "cksum": sha256(data), "features": {}, "yanked": False})
        self.pages[("pkg.test", f"/{name[:2]}/{name[2:4]}/{name}")] = Page(line.encode() + b"\n", "text/plain", etag='"1"')
        path = f"/crates/{name}/1.0.0/download"
        self.pages[("files.test", path)] = Page(data)
        return path
