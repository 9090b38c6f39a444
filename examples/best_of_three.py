#!/usr/bin/env python3
"""Best of three: three ideas at the same time, each in a fork of the workspace; the fastest that passes is merged.

A fork costs milliseconds and copies nothing; what an idea breaks, it breaks in its own tree.
"""
import asyncio

from caisson.aio import Workspace

TEST = '''\
import time
from primes import primes

begin = time.perf_counter()
assert primes(30) == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29], primes(30)
assert len(primes(20000)) == 2262
print(f"{(time.perf_counter() - begin) * 1000:.1f}")
'''
IDEAS = {
    "every divisor": "def primes(n):\n    return [i for i in range(2, n) if all(i % d for d in range(2, int(i ** 0.5) + 1))]\n",
    "a sieve": "def primes(n):\n    free = bytearray([1]) * n\n    for i in range(2, int(n ** 0.5) + 1):\n        if free[i]:\n"
               "            free[i * i::i] = bytes(len(range(i * i, n, i)))\n    return [i for i in range(2, n) if free[i]]\n",
    "odd numbers": "def primes(n):\n    return [2] + [i for i in range(3, n, 2)]\n",  # and it is wrong
}


async def attempt(ws, name, code):
    """(milliseconds or None, name, workspace)"""
    await ws.write("primes.py", code)
    result = await ws.exec("python3 test_primes.py", timeout="1m")
    return float(result.stdout) if result.ok else None, name, ws


async def main():
    ws = await Workspace.open("example-best-of-three")
    forks = []
    try:
        await ws.exec("git init -q . && git add -A && git commit -q --allow-empty -m start")
        await ws.write("test_primes.py", TEST)
        await ws.commit("the test")
        forks = await ws.fork(len(IDEAS))
        tries = await asyncio.gather(*(attempt(fork, name, code) for fork, (name, code) in zip(forks, IDEAS.items())))
        for ms, name, _ in tries:
            print(f"{name:14} {'fails' if ms is None else f'{ms:.1f} ms'}")
        ms, name, best = min((one for one in tries if one[0] is not None), key=lambda one: one[0])
        await best.commit(f"primes: {name}")
        merged = await ws.merge(best)
        is_there = "primes.py" in [entry["path"] for entry in await ws.list()]
        print("merged:", name, "" if "sha" in merged else merged)
        return 0 if is_there and name == "a sieve" and (await ws.exec("python3 test_primes.py")).ok else 1
    finally:
        for one in [*forks, ws]:
            await one.remove(force=True)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
