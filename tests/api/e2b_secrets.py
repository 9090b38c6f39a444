#!/usr/bin/env python3
"""Secrets of E2B's clients, byte by byte: stored sealed and bound, never shown, named in header rules. TAP.

    tests/api/e2b_secrets.py         all (needs root)
    tests/api/e2b_secrets.py rules   those with the word in their title

That what is bound is said by the gate, and nowhere else: tests/net/sealed.py, tests/net/e2b.py.
"""
import sys

import lib
from door import OFFLINE, door
from lib import check, same, test

VALUE = "value-that-nobody-sees"
BOUND = {"hosts": "api.example.org,b.example.org:8443", "inject": "header:X-Api-Key", "format": "Key {}"}


def make(d, name, metadata=None, value=VALUE, status=201):
    return d.ok("POST", "/secrets", {"name": name, "value": value, **({"metadata": metadata} if metadata is not None else {})}, status=status)


@test("secrets: stored, listed by page, found by id and name, given another value, deleted; never shown", own=True)
def _(_api):
    with door("secrets") as d:
        made = make(d, "First", BOUND)
        same({k: made[k] for k in ("secretID", "name", "currentVersion", "metadata")}, {"secretID": "sec_first", "name": "first", "currentVersion": 1, "metadata": BOUND}, "made")
        check(made["createdAt"].endswith("Z") and made["updatedAt"].endswith("Z"), made)
        make(d, "second", {"hosts": "b.example.org"})
        native = d.daemon.client().ok("GET", "/v1/secrets/first")
        same((native["bind"]["hosts"], native["bind"]["inject"], native["version"]), (["api.example.org", "b.example.org:8443"], "header:X-Api-Key", 1), "as ours")
        page = d.call("GET", "/secrets?limit=1")
        same([s["name"] for s in page.json], ["first"], "a page")
        rest = d.call("GET", f"/secrets?limit=1&nextToken={page.headers['X-Next-Token']}")
        same(([s["name"] for s in rest.json], rest.headers["X-Next-Token"]), (["second"], None), "the last one")
        same((d.ok("GET", "/secrets/sec_first"), d.ok("GET", "/secrets/FIRST")["name"]), (made, "first"), "by id and name")
        again = d.ok("POST", "/secrets/first", {"value": "another value"})
        same((again["currentVersion"], again["metadata"]), (2, BOUND), "another value, for the same")
        same(d.ok("POST", "/secrets/first", {"value": "another value", "metadata": {"hosts": "c.example.org"}})["metadata"], {"hosts": "c.example.org", "inject": "bearer"}, "and for something else")
        for path in ("/secrets", "/secrets/first"):
            check(VALUE.encode() not in d.call("GET", path).body and b"another value" not in d.call("GET", path).body, path)
        kept = b"".join(p.read_bytes() for p in d.daemon.state.rglob("*") if p.is_file())
        check(b"api.example.org" in kept and VALUE.encode() not in kept, "nor in the store")
        other = d.token("manage", tenant="other")
        same((d.ok("GET", "/secrets", key=other), d.call("GET", "/secrets/first", key=other).status, d.call("POST", "/secrets/first", {"value": "x" * 8}, key=other).status), ([], 404, 404), "another tenant's")
        same(d.call("POST", "/secrets", {"name": "x", "value": "y" * 8, "metadata": BOUND}, key=d.token("read")).status, 403, "who may only look")
        d.daemon.client().ok("PUT", "/v1/secrets/canary", {"bind": '{"canary":"ghp_0123456789abcdefgh","env":"T"}'})
        same((len(d.ok("GET", "/secrets")), d.call("GET", "/secrets/canary").status), (2, 404), "a canary is none")
        for name in ("first", "sec_second"):
            d.ok("DELETE", f"/secrets/{name}", status=204)
            d.ok("DELETE", f"/secrets/{name}", status=404)


@test("refused, with a sentence: without a binding, another's name, what is no binding", own=True)
def _(_api):
    with door("unbound") as d:
        make(d, "taken", BOUND)
        for body, want in (({"name": "a", "value": "v"}, 422), ({"name": "a", "value": "v" * 8, "metadata": {}}, 422), ({"name": "a", "value": "v" * 8, "metadata": {"hosts": "x.example.org", "team": "ours"}}, 422),
                           ({"name": "a", "value": "v" * 8, "metadata": {"hosts": ""}}, 400), ({"name": "a", "value": "v" * 8, "metadata": {"hosts": "x.example.org", "inject": "nonsense"}}, 400),
                           ({"name": "TAKEN", "value": "v" * 8, "metadata": BOUND}, 409), ({"name": "a b", "value": "v" * 8, "metadata": BOUND}, 400), ({"name": "sec_a", "value": "v" * 8, "metadata": BOUND}, 400),
                           ({"name": "a", "value": "", "metadata": BOUND}, 400), ({"name": "a", "value": "v" * 5000, "metadata": BOUND}, 400), ({"name": "a", "metadata": BOUND}, 400), ({"value": "v" * 8, "metadata": BOUND}, 400), ({"name": "a", "value": "v" * 7, "metadata": BOUND}, 400)):
            answer = d.call("POST", "/secrets", body)
            check(answer.status == want and answer.json["message"] and "vvv" not in answer.json["message"], f"{str(body)[:90]}: {answer}")
        same([s["name"] for s in d.ok("GET", "/secrets")], ["taken"], "nothing was stored")


@test("rules: a header that names a secret is the secret where it is bound, and refused elsewhere", own=True)
def _(_api):
    with door("rules") as d:
        make(d, "key", BOUND)
        make(d, "bearer", {"hosts": "b.example.org"})
        rule = lambda **headers: [{"transform": {"headers": headers}}]
        rules = {"api.example.org": rule(**{"X-Api-Key": "Key ${e2b.secrets.key}", "X-Client": "plain"}), "b.example.org": rule(Authorization="Bearer ${e2b.secrets.BEARER}")}
        s = d.create(allow_internet_access=True, network={"rules": rules})
        spec = d.daemon.client().ok("GET", f"/v1/sandboxes/sb_{s.id[1:]}")["spec"]
        same((sorted(spec["creds"]), spec["net"]["headers"]), (["bearer", "key"], ["api.example.org X-Client: plain"]), "what is a secret is no header")
        same(d.ok("GET", f"/sandboxes/{s.id}")["network"]["rules"], rules, "said again as it was asked for")
        check(VALUE not in s.run("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")[0], "nothing of it is inside")
        for host, headers, want in (("api.example.org", {"X-Api-Key": "${e2b.secrets.key}"}, 422), ("api.example.org", {"X-Other": "Key ${e2b.secrets.key}"}, 422), ("evil.example.org", {"X-Api-Key": "Key ${e2b.secrets.key}"}, 422),
                                    ("b.example.org", {"Authorization": "Basic ${e2b.secrets.bearer}"}, 422), ("api.example.org", {"X-Api-Key": "Key ${e2b.secrets.none}"}, 404), ("api.example.org", {"X-Api-Key": "Key ${e2b.secrets.key"}, 422),
                                    ("api.example.org", {"X-Api-Key": "${e2b.secrets.key}${e2b.secrets.key}"}, 422)):
            same(d.call("POST", "/v2/sandboxes", {**OFFLINE, "allow_internet_access": True, "network": {"rules": {host: rule(**headers)}}}).status, want, (host, headers))
        same(d.call("PUT", f"/sandboxes/{s.id}/network", {"rules": rules}, key=d.token("admin")).status, 422, "later it is too late")


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
