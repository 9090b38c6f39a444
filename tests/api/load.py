"""load.py - clients that work while the daemon is being killed, and remember what they were told.

What was acknowledged must be there after every restart; what was not may be there or not, but
never half. A process says in its label how it will end, so that every record can be judged.
"""
import contextlib
import http.client
import itertools
import random
import threading
import time

import lib
from lib import Failed, check, same

KEPT = 6
WORKERS = 4
NUMBERS = itertools.count(1)
GONE = (OSError, http.client.HTTPException)


class Kept:
    """A sandbox that must outlive the daemon."""

    def __init__(self, answer):
        self.id, self.files = answer["id"], {}  # name -> [acknowledged, sent]

    def target(self, name):
        return f"/v1/sandboxes/{self.id}/files/work/{name}"


class Load:
    """The clients, and all they know."""

    def __init__(self, daemon, seed):
        self.daemon, self.seed = daemon, seed
        self.lock = threading.Lock()
        self.go, self.end = threading.Event(), False
        self.busy = 0
        self.kept = []
        self.records = {}     # process -> (sandbox, code, has ended as we were told)
        self.short = {}       # sandbox -> "made" or "deleted": those that come and go
        self.problems = []
        self.counts = {"exec": 0, "run": 0, "write": 0, "read": 0, "create": 0, "delete": 0, "background": 0, "lost": 0, "unheard": 0}
        self.threads = [threading.Thread(target=self.work, args=(n,), daemon=True) for n in range(WORKERS)]

    def start(self):
        c = self.daemon.client()
        for i in range(KEPT):
            self.kept.append(Kept(c.create(key=f"kept-{i}", limits={"mem": "64m", "disk": "16m"})))
            self.mark(c, self.kept[-1])
        c.close()
        for t in self.threads:
            t.start()

    def mark(self, c, kept):
        """A file that tells one life of the walls from the next."""
        kept.files = {}
        same(c.put(kept.target("token"), kept.id.encode()).status // 100, 2, "mark")

    # ---- the clients ----

    def work(self, n):
        chooser = random.Random(self.seed * 100 + n)
        c = self.daemon.client()
        while not self.end:
            self.go.wait(1)
            with self.lock:
                if not self.go.is_set():
                    continue
                self.busy += 1
            try:
                chooser.choice((self.execute, self.execute, self.run, self.background, self.write, self.read, self.come_and_go))(c, chooser, n)
            except GONE:
                c.close()  # killed in the middle: unknown
                time.sleep(0.005)
            except Failed as failed:
                self.problems.append(str(failed))
            finally:
                with self.lock:
                    self.busy -= 1
        c.close()

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def put(self, c, kept, code, **options):
        number = next(NUMBERS)
        cmd = f"echo {number}; " + (f"sleep 0.{number % 3}; " if "wait" in options else "") + f"exit {code}"
        answer = c.post(f"/v1/sandboxes/{kept.id}/exec", {"cmd": ["sh", "-c", cmd], "label": f"{code}:{number}", **options})
        return answer, number

    def execute(self, c, chooser, _):
        kept, code = chooser.choice(self.kept), chooser.randrange(0, 250)
        answer, number = self.put(c, kept, code)
        if answer.status in (409, 503):  # its monitor was killed
            return
        same(answer.status, 200, f"exec: {answer}")
        p = answer.json
        check(p["state"] in ("exited", "lost", "killed", "signaled"), f"exec: {p}")
        if p["state"] == "exited":
            same((p["exit_code"], p["stdout"]), (code, f"{number}\n"), f"exec {p['id']}")
        with self.lock:
            self.records[p["id"]] = (kept.id, code, number, p["state"])
        self.count("exec")

    def run(self, c, chooser, _):
        """A sandbox of its own, which dies with the daemon; what was told of it stays."""
        number, code = next(NUMBERS), chooser.randrange(0, 250)
        answer = c.post("/v1/run", {"spec": {"limits": {"mem": "32m"}}, "cmd": ["sh", "-c", f"echo {number}; exit {code}"],
                                    "label": f"{code}:{number}"})
        if answer.status in (500, 503):  # killed while it was made
            return
        same(answer.status, 200, f"run: {answer}")
        p = answer.json
        check(p["state"] in ("exited", "lost", "killed", "signaled"), f"run: {p}")
        if p["state"] == "exited":
            same((p["exit_code"], p["stdout"]), (code, f"{number}\n"), f"run {p['id']}")
        with self.lock:
            self.records[p["id"]] = (p["sandbox"], code, number, p["state"])
        self.count("run")

    def background(self, c, chooser, _):
        kept, code = chooser.choice(self.kept), chooser.randrange(0, 250)
        answer, number = self.put(c, kept, code, wait=0)
        if answer.status in (409, 503):
            return
        same(answer.status, 200, f"exec: {answer}")
        with self.lock:
            self.records[answer.json["id"]] = (kept.id, code, number, None)
        self.count("background")

    def write(self, c, chooser, n):
        kept, name = chooser.choice(self.kept), f"t{n}"
        seqs = kept.files.setdefault(name, [0, 0])
        seqs[1] += 1
        answer = c.put(kept.target(name), f"{seqs[1]}:".encode() + b"x" * chooser.choice((0, 5000, 200_000)))
        if answer.status in (200, 201):
            seqs[0] = seqs[1]
            self.count("write")
        else:
            check(answer.status in (409, 503), f"write: {answer}")

    def read(self, c, chooser, n):
        kept, name = chooser.choice(self.kept), f"t{n}"
        low, high = kept.files.get(name, [0, 0])
        answer = c.get(kept.target(name))
        if answer.status in (409, 503):
            return
        self.judge_file(kept, answer, low, high)
        self.count("read")

    def judge_file(self, kept, answer, low, high):
        if answer.status == 404:
            check(low == 0, f"{kept.id}: a file that was written is not there: {answer}")
            return
        same(answer.status, 200, f"read: {answer}")
        head, _, rest = answer.body.partition(b":")
        check(low <= int(head) <= high and rest.strip(b"x") == b"" and len(rest) in (0, 5000, 200_000),
              f"{kept.id}: a file with {answer.body[:20]!r}, {len(rest)} bytes; {low} to {high} were written")

    def come_and_go(self, c, chooser, _):
        number = next(NUMBERS)
        answer = c.post("/v1/sandboxes", {"limits": {"mem": "16m", "disk": "4m"}, "labels": {"short": "1"}},
                        Idempotency_Key=f"short-{self.seed}-{number}")
        if answer.status in (500, 503):  # its monitor was killed while it was made
            check(answer.code in ("backend_error", "sandbox_unavailable"), f"create: {answer}")
            return
        same(answer.status, 201, f"create: {answer}")
        with self.lock:
            self.short[answer.json["id"]] = "made"
        self.count("create")
        if chooser.random() < 0.8:
            with self.lock:
                self.short[answer.json["id"]] = "unknown"
            gone = c.delete(f"/v1/sandboxes/{answer.json['id']}")
            if gone.status in (204, 404):
                with self.lock:
                    self.short[answer.json["id"]] = "deleted"
                self.count("delete")

    def pause(self):
        """Until no client is in the middle of something."""
        with self.lock:
            self.go.clear()
        lib.wait_until(lambda: self.busy == 0, 3 * lib.PATIENCE, "clients come to rest")

    # ---- after a restart ----

    def verify(self, killed):
        """`killed` monitors died: so many sandboxes may have stopped, and no more."""
        check(not self.problems, lambda: "clients saw: " + "; ".join(self.problems[:5]))
        c = self.daemon.client()
        with contextlib.closing(c):
            stopped = self.verify_kept(c)
            self.verify_short(c)
            check(len(stopped) <= killed, f"{killed} monitors were killed, but {len(stopped)} sandboxes stopped: {stopped}")
            self.verify_records(c, stopped)
            for kept in self.kept:
                if kept.id in stopped:
                    same(c.ok("POST", f"/v1/sandboxes/{kept.id}/start", {})["state"], "running", f"start {kept.id}")
                    self.mark(c, kept)

    def verify_kept(self, c):
        """Usable, or stopped and said so. Returns those."""
        stopped = set()
        for kept in self.kept:
            s = self.settled(c, kept.id)
            if s["state"] != "running":
                same(s["state"], "stopped", f"{kept.id}: {s['reason']}")
                stopped.add(kept.id)
                continue
            p = self.settled_execute(c, kept.id, ["cat", "/work/token"])
            same((p["state"], p["exit_code"], p["stdout"]), ("exited", 0, kept.id), f"{kept.id} is usable: {p}")
            for name, (low, high) in kept.files.items():
                self.judge_file(kept, c.get(kept.target(name)), low, high)
        return stopped

    def settled_execute(self, c, name, cmd):
        """Its monitor may still be telling what happened meanwhile: then it may be asked again."""
        deadline = time.monotonic() + lib.PATIENCE
        while True:
            answer = c.post(f"/v1/sandboxes/{name}/exec", {"cmd": cmd})
            if answer.status != 503 or not answer.json["retry_safe"] or time.monotonic() > deadline:
                same(answer.status, 200, f"exec in {name}: {answer}")
                return answer.json
            time.sleep(0.01)

    def settled(self, c, name):
        """Its state, once it is no longer on its way."""
        deadline = time.monotonic() + lib.PATIENCE
        while True:
            s = c.ok("GET", f"/v1/sandboxes/{name}")
            if s["state"] in ("running", "stopped", "gone", "failed") or time.monotonic() > deadline:
                return s
            time.sleep(0.01)

    def verify_short(self, c):
        for name, state in list(self.short.items()):
            answer = c.get(f"/v1/sandboxes/{name}")
            now = answer.json.get("state") if answer.status == 200 else "gone"
            if state == "deleted":
                check(now == "gone", f"{name} was deleted and is {now}")
                del self.short[name]
            elif state == "made":
                check(now in ("running", "stopped"), f"{name} was made and is {now}: {answer}")
                c.remove(name)
                del self.short[name]
            else:
                if now not in ("gone", "deleting"):
                    c.delete(f"/v1/sandboxes/{name}")
                self.short[name] = "deleted"

    def verify_records(self, c, stopped):
        """Every process that was acknowledged, with its own exit code or none."""
        for name, (sandbox, code, number, told) in list(self.records.items()):
            p = c.ok("GET", f"/v1/processes/{name}?wait=40s")
            if told:
                same(p["state"], told, f"{name} was told to have ended")
            if p["state"] == "exited":
                same((p["exit_code"], p["stdout"]), (code, f"{number}\n"), f"{name} has its own exit code and output")
            else:
                # Told at once that it is queued, and the daemon died before the monitor had heard of it.
                is_unheard = p["state"] == "lost" and "knows nothing of it" in p["reason"]
                check(told or is_unheard or sandbox in stopped, f"{name} of {sandbox}, whose monitor lives, is {p['state']}: {p['reason']}")
                self.counts["unheard"] += is_unheard
                check(p["exit_code"] is None, f"{name} is {p['state']} and has an exit code: {p}")
                self.count("lost")
            del self.records[name]

    def verify_all(self, c):
        """At the end: every record there is, also of requests whose answer nobody got."""
        cursor, n = "", 0
        while cursor is not None:
            page = c.ok("GET", "/v1/processes?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
            for p in page["processes"]:
                if p["exit_code"] is not None and p["label"]:
                    same(p["exit_code"], int(p["label"].split(":")[0]), f"{p['id']}: its own exit code")
                # A run whose client goes is killed; it may have ended by itself meanwhile.
                check(p["state"] in ("exited", "killed") or p["exit_code"] is None, f"an invented exit code: {p}")
                n += 1
            cursor = page["next"]
        return n
