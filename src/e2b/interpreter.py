"""interpreter.py - runs code for clients of E2B's code interpreter. Runs inside a sandbox, behind its walls.

The daemon starts it there when port 49999 is asked for first (src/e2b/interpreter.c) and relays requests; it knows
nothing of what is said. Contexts are processes: kernels of Jupyter where the image has ipykernel, else this program
again, as a plain kernel. Python 3.7 and its standard library; its text is in SOURCE, since it has no file.

    POST /execute {"code", "context_id"|"language", "env_vars"}   events, one JSON object a line
    POST /contexts {"language", "cwd"}   GET /contexts   POST /contexts/ID/restart   DELETE /contexts/ID   GET /health
"""
import ast
import asyncio
import base64
import builtins
import codecs
import datetime
import fcntl
import http.server
import inspect
import io
import json
import linecache
import os
import queue
import re
import selectors
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback
import types
import uuid

PORT = 49999
HOME = "/home/user"
BODY_MAX = 16 << 20
LOOK_S = 0.25  # how often it is seen whether the client is still there
ALIVE_S = 1  # and so often it is sent something: only its answer to a packet tells
LINE_MAX = 64 << 20
EVENTS_MAX = 256  # that wait for a client; then what is run waits too
NAMES = {"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg",
         "application/pdf": "pdf", "text/latex": "latex", "application/json": "json", "application/javascript": "javascript", "e2b/data": "data", "e2b/chart": "chart"}


# ---- the plain kernel: one process, one namespace ------------------------------------------------

METHODS = {"_repr_html_": "text/html", "_repr_markdown_": "text/markdown", "_repr_svg_": "image/svg+xml", "_repr_png_": "image/png", "_repr_jpeg_": "image/jpeg",
           "_repr_pdf_": "application/pdf", "_repr_latex_": "text/latex", "_repr_json_": "application/json", "_repr_javascript_": "application/javascript",
           "_repr_e2b_data_": "e2b/data", "_repr_e2b_chart_": "e2b/chart"}


def encoded(value):
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def plain(value):
    """As JSON has it, or nothing."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return None


def columns(frame, pandas):
    table = {str(k): [v.isoformat() if isinstance(v, pandas.Timestamp) else v for v in c] for k, c in frame.to_dict(orient="list").items()}
    return json.loads(json.dumps(table, default=lambda v: v.item() if hasattr(v, "item") else str(v)))


def portrait(figure):
    """A figure of matplotlib as an image."""
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return encoded(out.getvalue())


def bundle_of(value):
    """All that an object says of itself, by type."""
    bundle = {"text/plain": repr(value)}
    if isinstance(value, type):
        return bundle
    whole = getattr(value, "_repr_mimebundle_", None)
    if callable(whole):
        told = whole()
        bundle.update({k: encoded(v) for k, v in (told[0] if isinstance(told, tuple) else told or {}).items()})
    for name, kind in METHODS.items():
        method = getattr(value, name, None)
        told = method() if callable(method) else None
        if told is not None:
            bundle[kind] = encoded(told[0] if isinstance(told, tuple) else told)
    pandas, figures = sys.modules.get("pandas"), sys.modules.get("matplotlib.figure")
    if pandas is not None and isinstance(value, pandas.DataFrame):
        bundle["e2b/data"] = columns(value, pandas)
    if figures is not None and isinstance(value, figures.Figure):
        bundle["image/png"] = portrait(value)
    if isinstance(value, (dict, list)) and plain(value) is not None:
        bundle["application/json"] = plain(value)
    return bundle


class Shown:
    """What IPython.display's classes are: data of one type."""

    def __init__(self, data=None, **_):
        self.data = data

    def __repr__(self):
        return "<%s object>" % type(self).__name__


class OnDemand:
    """Two modules that exist when somebody imports them: the backend of matplotlib, and display without IPython."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.makers = {"caisson_inline": self.inline, "IPython": self.package, "IPython.display": self.display}

    def find_spec(self, name, *_):
        if name not in self.makers:
            return None
        import importlib.machinery

        return importlib.machinery.ModuleSpec(name, self, is_package=name == "IPython")

    def create_module(self, _spec):
        return None

    def exec_module(self, module):
        self.makers[module.__name__](module)

    def inline(self, module):
        from matplotlib.backends import backend_agg

        module.FigureCanvas = backend_agg.FigureCanvasAgg
        module.show = lambda *_a, **_k: self.kernel.show_figures()

    def package(self, module):
        module.get_ipython = lambda: None

    def display(self, module):
        module.display = self.kernel.display
        for name, kind in (("HTML", "_repr_html_"), ("Markdown", "_repr_markdown_"), ("SVG", "_repr_svg_"), ("Latex", "_repr_latex_"), ("JSON", "_repr_json_"), ("Javascript", "_repr_javascript_")):
            setattr(module, name, type(name, (Shown,), {kind: lambda self: self.data}))


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # the code's own


def drained(pipe):
    """Waits until it was read; not for long, since somebody in the background may go on writing."""
    for _ in range(200):
        try:
            if struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0] == 0:
                return
        except OSError:
            return
        time.sleep(0.001)


def now_and_then():
    while True:
        time.sleep(0.2)
        flush()


class Kernel:
    """Reads requests from one end of a pair of sockets, and writes events to it. Standard output and errors are pipes."""

    def __init__(self, control):
        self.requests = control.makefile("r", encoding="utf-8", newline="\n")
        self.events = control.makefile("w", encoding="utf-8", newline="\n")
        self.count = 0
        self.is_busy = self.is_saying = self.is_stopped = False
        self.loop = None
        main = types.ModuleType("__main__")
        main.__dict__.update({"display": self.display, "__builtins__": builtins})
        sys.modules["__main__"] = main
        self.space = main.__dict__
        os.environ.setdefault("MPLBACKEND", "module://caisson_inline")
        sys.meta_path.append(OnDemand(self))  # last: what the image has goes first
        sys.path.insert(0, "")
        sys.argv = [""]
        for fd, name in ((1, "stdout"), (2, "stderr")):  # a line at a time, and what is none soon
            setattr(sys, name, io.TextIOWrapper(open(fd, "wb", closefd=False), "utf-8", "backslashreplace", line_buffering=True))
        threading.Thread(target=now_and_then, daemon=True).start()
        signal.signal(signal.SIGINT, self.interrupted)

    def interrupted(self, *_):
        if self.is_saying:  # a whole line first
            self.is_stopped = True
        elif self.is_busy:
            raise KeyboardInterrupt

    def say(self, **event):
        line = json.dumps(event) + "\n"
        self.is_saying = True
        flush()
        drained(1)  # what was written before comes before
        drained(2)
        self.events.write(line)
        self.events.flush()
        self.is_saying = False
        if self.is_stopped and self.is_busy:
            self.is_stopped = False
            raise KeyboardInterrupt

    def display(self, *values, raw=False, **_):
        for value in values:
            self.say(type="result", bundle=value if raw and isinstance(value, dict) else bundle_of(value), is_main_result=False)

    def show_figures(self):
        pyplot = sys.modules.get("matplotlib.pyplot")
        for number in pyplot.get_fignums() if pyplot is not None else ():
            self.display(pyplot.figure(number))
        if pyplot is not None:
            pyplot.close("all")

    def parse(self, code, name):
        """As Python, or with lines of shell in it: `!ls`, `%pip install x`, `%cd d`."""
        try:
            return ast.parse(code, name)
        except SyntaxError:
            changed = re.sub(r"^([ \t]*)([!%])(.*)$", lambda m: m.group(1) + "__shell__(%r, %r)" % (m.group(2), m.group(3)), code, flags=re.M)
            if changed == code:
                raise
            self.space["__shell__"] = shell_line
            return ast.parse(changed, name)

    def evaluate(self, tree, name, mode):
        compiled = compile(tree, name, mode, flags=getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0))
        value = eval(compiled, self.space)  # pylint: disable=eval-used
        if inspect.iscoroutine(value) and compiled.co_flags & inspect.CO_COROUTINE:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                asyncio.set_event_loop(self.loop)
            value = self.loop.run_until_complete(value)
        return value

    def run_code(self, code):
        name = "Cell In[%d]" % self.count
        code = dedented(code)
        linecache.cache[name] = (len(code), None, [line + "\n" for line in code.splitlines()], name)
        tree = self.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";") else None
        self.evaluate(tree, name, "exec")
        value = self.evaluate(ast.Expression(last.value), name, "eval") if last is not None else None
        self.show_figures()
        if value is not None:
            self.space["_"] = value
            self.say(type="result", bundle=bundle_of(value), is_main_result=True)

    def tell(self, error):
        frames = traceback.TracebackException(type(error), error, error.__traceback__)
        frames.stack = traceback.StackSummary.from_list([f for f in frames.stack if f.filename != "<interpreter>"])
        self.say(type="error", name=type(error).__name__, value=str(error), traceback="".join(frames.format()))

    def run(self, request):
        self.is_stopped = False
        before = {k: os.environ.get(k) for k in request["env"]}
        os.environ.update(request["env"])
        self.count += 1
        self.say(type="number_of_executions", execution_count=self.count)
        try:
            self.is_busy = True
            self.run_code(request["code"])
        except SystemExit as stop:  # an end of the code, not of the kernel
            if stop.code not in (None, 0):
                self.is_busy = False
                self.tell(stop)
        except BaseException as error:  # pylint: disable=broad-except
            self.is_busy = False
            self.tell(error)
        self.is_busy = False
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        self.say(type="end_of_execution")

    def serve(self):
        for line in self.requests:
            try:
                self.run(json.loads(line))
            except KeyboardInterrupt:  # at the very end of what was run
                self.is_busy = False
                self.say(type="end_of_execution")


def shell_line(kind, line):
    words = line.split(None, 1)
    if kind == "%" and words and words[0] == "cd":
        os.chdir(os.path.expanduser(words[1].strip() if len(words) > 1 else "~"))
    elif kind == "%" and words and words[0] == "pip":
        subprocess.run([sys.executable, "-m", "pip"] + line.split()[1:], check=False)
    elif kind == "!":
        subprocess.run(["/bin/sh", "-c", line], check=False)
    else:
        raise SyntaxError("%%%s: there is no IPython in this image" % line)


def dedented(code):
    """Without the indentation of its first line, as notebooks have it."""
    first = next((line for line in code.splitlines() if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return "\n".join(line[len(indent):] if line.startswith(indent) else line for line in code.splitlines()) if indent else code


# ---- contexts ------------------------------------------------------------------------------------

class Gone(Exception):
    """The client has left."""


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


def result_of(bundle, is_main):
    event = {"type": "result", "is_main_result": is_main}
    for kind, name in NAMES.items():
        if kind in bundle:
            event[name] = bundle.pop(kind)
    text = event.get("text") or ""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        event["text"] = text[1:-1]
    if bundle:
        event["extra"] = bundle
    return event


def received(control):
    try:
        return control.recv(1 << 16)
    except OSError:  # it died before it had read all
        return b""


class Events(queue.Queue):
    """Of one process. What comes while nobody runs anything is of what was left in the background, and nobody's."""
    is_wanted = is_restarted = False


class PlainContext:
    """A process of the plain kernel. A thread reads what it writes, always, so that nothing that it leaves running waits."""
    languages = ("python",)

    def __init__(self, language, cwd):
        self.id, self.language, self.cwd = str(uuid.uuid4()), language, cwd
        self.lock, self.life = threading.Lock(), threading.RLock()  # life: one is started at a time
        self.start()

    def start(self):
        ours, theirs = socket.socketpair()
        boot = "import sys; exec(compile(sys.stdin.read(), '<interpreter>', 'exec'), {'__name__': 'kernel', 'FD': int(sys.argv[1])})"
        self.process = subprocess.Popen([sys.executable, "-c", boot, str(theirs.fileno())], cwd=self.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        self.process.stdin.write(SOURCE.encode())
        self.process.stdin.close()
        self.control, self.events = ours, Events(EVENTS_MAX)
        threading.Thread(target=self.pump, args=(self.process, ours, self.events), daemon=True).start()

    @staticmethod
    def pump(process, control, events):
        """Everything that one process says, in order."""
        streams = {"stdout": process.stdout, "stderr": process.stderr}
        decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in streams}
        selector, told = selectors.DefaultSelector(), b""
        for name, stream in streams.items():
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, name)
        selector.register(control, selectors.EVENT_READ, "control")

        def drain(name):
            while True:
                try:
                    data = os.read(streams[name].fileno(), 1 << 16)
                except BlockingIOError:
                    return
                text = decoders[name].decode(data)
                if text and events.is_wanted:
                    events.put({"type": name, "text": text, "timestamp": now()})
                if not data:
                    selector.unregister(streams.pop(name))
                    return

        while "control" in {key.data for key in selector.get_map().values()}:
            ready = {key.data for key, _ in selector.select()}
            data = received(control) if "control" in ready else None  # first: see drained()
            lines = (told + (data or b"")).split(b"\n")
            told = lines.pop()
            for event in map(json.loads, lines):
                events.is_wanted = event["type"] != "end_of_execution"
                events.put(event)
            for name in list(streams):
                drain(name)
            if data == b"" or len(told) > LINE_MAX:
                selector.unregister(control)
        process.wait()
        events.put(None)

    def run(self, code, env):
        """Events until the end; None now and then while there are none."""
        with self.life:
            if self.process.poll() is not None:
                self.restart()
            events, process, control = self.events, self.process, self.control
        events.is_wanted = True
        try:
            control.sendall((json.dumps({"code": code, "env": env}) + "\n").encode())
        except OSError:
            pass  # it has just ended, and that is told
        while True:
            try:
                event = events.get(timeout=LOOK_S)
            except queue.Empty:
                yield None
                continue
            if event is None and events.is_restarted:
                yield {"type": "error", "name": "ContextRestarting", "value": "Context was restarted", "traceback": ""}
            elif event is None:
                yield {"type": "error", "name": "KernelDied", "value": "the kernel ended with status %d; its variables are lost" % process.returncode, "traceback": ""}
            if event is None:
                event = {"type": "end_of_execution"}
            if event["type"] == "result":
                event = result_of(event["bundle"], event["is_main_result"])
            yield event
            if event["type"] == "end_of_execution":
                return

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def restart(self):
        with self.life:
            self.events.is_restarted = True
            self.end()
            self.start()


# What the plain kernel adds to what objects say of themselves.
FORMATTERS = """
def __formatters(shell):
    import json
    from IPython.core.formatters import BaseFormatter
    from traitlets import ObjectName, Unicode
    class Data(BaseFormatter):
        format_type, print_method, _return_type = Unicode("e2b/data"), ObjectName("_repr_e2b_data_"), dict
    def columns(frame):
        table = {str(k): [v.isoformat() if hasattr(v, "isoformat") else v for v in c] for k, c in frame.to_dict(orient="list").items()}
        return json.loads(json.dumps(table, default=str))
    def plain(value):
        try:
            return json.loads(json.dumps(value))
        except (TypeError, ValueError):
            return None
    data = shell.display_formatter.formatters["e2b/data"] = Data(parent=shell.display_formatter)
    data.for_type_by_name("pandas", "DataFrame", columns)
    data.for_type_by_name("pandas.core.frame", "DataFrame", columns)
    for kind in (dict, list):
        shell.display_formatter.formatters["application/json"].for_type(kind, plain)
    shell.run_line_magic("colors", "NoColor")
__formatters(get_ipython())
del __formatters
"""


class JupyterContext:
    """A kernel of Jupyter, by its own client."""
    languages = ()  # those that are installed

    def __init__(self, language, cwd):
        self.id, self.language, self.cwd = str(uuid.uuid4()), language, cwd
        self.lock = threading.Lock()
        self.manager = jupyter_client.KernelManager(kernel_name=JUPYTER[language])
        self.manager.start_kernel(cwd=cwd, env=dict(os.environ, MPLBACKEND="module://matplotlib_inline.backend_inline"))
        self.connect()

    def connect(self):
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        if self.language == "python":
            self.silently(FORMATTERS)

    def silently(self, code):
        self.client.execute(code, silent=True, reply=True, timeout=30)

    def events(self, told):
        kind, content = told["msg_type"], told["content"]
        if kind == "stream":
            return {"type": content["name"], "text": content["text"], "timestamp": now()}
        if kind in ("display_data", "execute_result"):
            return result_of(content["data"], kind == "execute_result")
        if kind == "error":
            return {"type": "error", "name": content["ename"], "value": content["evalue"], "traceback": "\n".join(content["traceback"])}
        if kind == "execute_input":
            return {"type": "number_of_executions", "execution_count": content["execution_count"]}
        return None

    def run(self, code, env):
        if not self.manager.is_alive():
            self.restart()
        if env:
            self.silently("import os as __os; __before = {k: __os.environ.get(k) for k in %r}; __os.environ.update(%r)" % (list(env), env))
        asked = self.client.execute(code, allow_stdin=False)
        while True:
            try:
                told = self.client.get_iopub_msg(timeout=LOOK_S)
            except queue.Empty:
                yield None
                if self.manager.is_alive():
                    continue
                yield {"type": "error", "name": "KernelDied", "value": "the kernel ended; its variables are lost", "traceback": ""}
                break
            if told["parent_header"].get("msg_id") != asked:
                continue
            if told["msg_type"] == "status" and told["content"]["execution_state"] == "idle":
                break
            yield self.events(told)
        if env and self.manager.is_alive():
            self.silently("[__os.environ.pop(k, None) if v is None else __os.environ.__setitem__(k, v) for k, v in __before.items()]; del __os, __before")
        yield {"type": "end_of_execution"}

    def interrupt(self):
        self.manager.interrupt_kernel()

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def restart(self):
        self.client.stop_channels()
        self.manager.restart_kernel(now=True)
        self.connect()


# ---- the server ----------------------------------------------------------------------------------

class Refusal(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Contexts:
    def __init__(self):
        self.all, self.defaults, self.lock = {}, {}, threading.Lock()

    def make(self, language, cwd):
        if language not in LANGUAGES:
            raise Refusal(500, "language %s: not in this image, which has: %s" % (language, ", ".join(sorted(LANGUAGES))))
        if not os.path.isdir(cwd):
            raise Refusal(500, "cwd %s: no such folder" % cwd)
        context = LANGUAGES[language](language, cwd)
        self.all[context.id] = context
        return context

    def default(self, language):
        with self.lock:
            context = self.all.get(self.defaults.get(language))
            if context is None:
                context = self.make(language, HOME if os.path.isdir(HOME) else os.getcwd())
                self.defaults[language] = context.id
            return context

    def find(self, name):
        context = self.all.get(name)
        if context is None:
            raise Refusal(404, "Context %s not found" % name)
        return context

    def remove(self, name):
        context = self.find(name)
        del self.all[name]
        context.end()


def language_of(body):
    name = str(body.get("language") or "python").lower().strip()
    return {"js": "javascript", "ts": "typescript"}.get(name, name)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    contexts = None

    def log_message(self, *_):
        pass

    def answer(self, status, text, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def body(self):
        """Of whichever framing; an object."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            data = b""
            while True:
                n = int(self.rfile.readline(64).split(b";")[0], 16)
                data += self.rfile.read(n) if len(data) + n <= BODY_MAX else b"\0"
                self.rfile.readline(64)
                if n == 0 or data.endswith(b"\0"):
                    break
        else:
            n = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(n) if n <= BODY_MAX else b"\0"
        try:
            body = json.loads(data or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            self.close_connection = True
            raise Refusal(422, "a JSON object is expected")
        return body

    def is_left(self):
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def put(self, event):
        data = json.dumps(event).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def execute(self):
        body = self.body()
        env = body.get("env_vars") or {}
        if not isinstance(body.get("code"), str) or not isinstance(env, dict) or not all(isinstance(v, str) for v in env.values()):
            raise Refusal(422, "code: a text; env_vars: an object of texts")
        if body.get("context_id") and body.get("language"):
            raise Refusal(400, "Only one of context_id or language can be provided")
        context = self.contexts.find(body["context_id"]) if body.get("context_id") else self.contexts.default(language_of(body))
        if env and context.language != "python":
            raise Refusal(400, "env_vars: only of Python contexts")
        with context.lock:
            self.send_response(200)
            self.send_header("Content-Type", "application/x-ndjson")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.stream(context, context.run(body["code"], env))
        self.wfile.write(b"0\r\n\r\n")

    def stream(self, context, events):
        """To its end, also when nobody listens: the next one must not hear of it."""
        is_left, last = False, time.monotonic()
        for event in events:
            if is_left:
                continue
            if event is None and time.monotonic() - last > ALIVE_S:
                event = {"type": "keepalive"}
            try:
                if self.is_left():
                    raise Gone
                if event is not None:
                    self.put(event)
                    last = time.monotonic()
            except (OSError, Gone):
                is_left = True
                context.interrupt()
        if is_left:
            raise Gone

    def route(self, method):
        parts = self.path.partition("?")[0].strip("/").split("/")
        if (method, parts) == ("GET", ["health"]):
            self.answer(200, '"OK"')
        elif (method, parts) == ("POST", ["execute"]):
            self.execute()
        elif (method, parts) == ("GET", ["contexts"]):
            self.answer(200, json.dumps([described(c) for c in list(self.contexts.all.values())]))
        elif (method, parts) == ("POST", ["contexts"]):
            body = self.body()
            self.answer(200, json.dumps(described(self.contexts.make(language_of(body), str(body.get("cwd") or HOME)))))
        elif method == "POST" and len(parts) == 3 and parts[0] == "contexts" and parts[2] == "restart":
            self.body()
            self.contexts.find(parts[1]).restart()
            self.answer(200, "null")
        elif method == "DELETE" and len(parts) == 2 and parts[0] == "contexts":
            self.contexts.remove(parts[1])
            self.answer(200, "null")
        else:
            raise Refusal(404, "no such resource")

    def handle_one(self, method):
        try:
            self.route(method)
        except Refusal as no:
            self.answer(no.status, str(no), "text/plain; charset=utf-8")
        except (Gone, OSError):
            self.close_connection = True

    def do_GET(self):
        self.handle_one("GET")

    def do_POST(self):
        self.handle_one("POST")

    def do_DELETE(self):
        self.handle_one("DELETE")


def described(context):
    return {"id": context.id, "language": context.language, "cwd": context.cwd}


def jupyter_kernels():
    """language -> name of a kernel that the image has."""
    specs = jupyter_client.kernelspec.KernelSpecManager().get_all_specs()
    return {spec["spec"]["language"].lower(): name for name, spec in sorted(specs.items())}


def main():
    server = http.server.ThreadingHTTPServer(("", PORT), Handler)
    server.daemon_threads = True
    Handler.contexts = Contexts()
    server.serve_forever()


if __name__ == "kernel":
    own = socket.socket(fileno=FD)  # noqa: F821 pylint: disable=undefined-variable
    os.set_inheritable(own.fileno(), False)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    Kernel(own).serve()
elif __name__ == "__main__":
    try:
        import ipykernel  # noqa: F401 pylint: disable=unused-import
        import jupyter_client
        import jupyter_client.kernelspec

        JUPYTER = jupyter_kernels()
    except ImportError:
        JUPYTER = {}
    LANGUAGES = {**{name: PlainContext for name in PlainContext.languages}, **{name: JupyterContext for name in JUPYTER}}
    main()
