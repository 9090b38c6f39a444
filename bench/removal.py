"""removal.py - many live sandboxes removed by one call, and what another start costs meanwhile.

A part of bench/run: `bench/run removal [COUNT [SECONDS]]`. The call is the removal of the workspace that all of them
work on. On a slow host as many are made as SECONDS allow.
"""
import json
import threading
import time

import daemon as daemons

COUNT = 1000
STARTS = 20
MAKERS = 16


def start_ms(daemon):
    """One more sandbox, from the request to the answer of its first command; it is removed again."""
    begin = time.monotonic()
    status, made = daemon.ask("POST", "/v1/sandboxes", {})
    assert status == 201, made
    status, process = daemon.ask("POST", f"/v1/sandboxes/{made['id']}/exec", {"cmd": ["/bin/true"]})
    took = (time.monotonic() - begin) * 1000
    assert status == 200 and process["exit_code"] == 0, process
    daemon.ask("DELETE", f"/v1/sandboxes/{made['id']}")
    return took


def remove(daemon, workspace, out):
    """On a connection of its own; seconds until nothing of them is left."""
    mine = daemons.Connection(daemon.socket)

    def ask(method, path):
        mine.request(method, path)
        answer = mine.getresponse()
        return answer.status, answer.read().decode()
    begin = time.monotonic()
    out["status"], out["text"] = ask("DELETE", f"/v1/workspaces/{workspace}?force=true")
    while json.loads(ask("GET", "/v1/sandboxes?label=bench%3Dremoval&limit=1")[1])["sandboxes"]:
        time.sleep(0.02)
    out["seconds"] = time.monotonic() - begin
    mine.close()


def make(daemon, spec, count, seconds):
    """By MAKERS clients at once. How many were asked for, how many of them failed."""
    deadline = time.monotonic() + seconds
    lock = threading.Lock()
    asked = failed = 0

    def work():
        nonlocal asked, failed
        mine = daemons.Connection(daemon.socket)
        while True:
            with lock:
                if asked == count or time.monotonic() > deadline:
                    break
                asked += 1
            mine.request("POST", "/v1/sandboxes", json.dumps(spec))
            answer = mine.getresponse()
            answer.read()
            if answer.status != 201:
                with lock:
                    failed += 1
        mine.close()
    threads = [threading.Thread(target=work) for _ in range(MAKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return asked, failed


def bench(daemon, count=COUNT, seconds=float("inf")):
    usual = sorted(start_ms(daemon) for _ in range(STARTS))[STARTS // 2]
    status, made = daemon.ask("PUT", "/v1/workspaces/bench-removal", {})
    assert status == 201, made
    workspace = made["id"]
    spec = {"workspace": workspace, "fs": ["workspace:/work"], "labels": {"bench": "removal"}}
    begin = time.monotonic()
    count, failed = make(daemon, spec, count, seconds)
    making = time.monotonic() - begin
    daemon.connection.close()  # an idle one is not kept for ever
    made = {"seconds": None}
    thread = threading.Thread(target=remove, args=(daemon, workspace, made))
    thread.start()
    meanwhile = []
    while thread.is_alive() and made["seconds"] is None and len(meanwhile) < STARTS:
        meanwhile.append(start_ms(daemon))
    thread.join()
    worst = max(meanwhile)
    print(f"{count} sandboxes, made in {making:.1f} s, removed by one call: {made['seconds']:.2f} s ({failed} had not been made, answer {made['status']}); "
          f"a start meanwhile {worst:.1f} ms at most, else {usual:.1f} ms (p50)\n")
    return {"count": count, "failed": failed, "status": made["status"], "seconds": made["seconds"], "usual_ms": usual,
            "meanwhile_ms": meanwhile}


def verdicts(result):
    if result["failed"] or result["status"] >= 300:
        return [("removal at once, failed", max(result["failed"], 1), 0)]
    return [(f"{result['count']} sandboxes removed by one call, s", result["seconds"], 5),
            ("a start meanwhile, worst / usual p50", max(result["meanwhile_ms"]) / result["usual_ms"], 5)]
