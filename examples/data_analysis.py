#!/usr/bin/env python3
"""Data analysis: code that nobody has read works on a table, without a network, and only what was named comes back."""
import json

from caisson import Client

TABLE = "region,units,price\n" + "".join(
    f"{('north', 'south', 'west')[i % 3]},{i % 7 + 1},{(i * 37) % 90 + 10}\n" for i in range(300))

# As a model would have written it.
CODE = r'''
import collections, csv, json, pathlib

sums = collections.defaultdict(int)
for row in csv.DictReader(open("sales.csv")):
    sums[row["region"]] += int(row["units"]) * int(row["price"])
pathlib.Path("out").mkdir()
json.dump({"total": sum(sums.values()), "by_region": dict(sorted(sums.items()))}, open("out/summary.json", "w"))
most = max(sums.values())
bars = "".join(f'<rect y="{30 * i}" height="24" width="{300 * v // most}"/><text x="4" y="{30 * i + 17}" fill="white">{k}</text>'
               for i, (k, v) in enumerate(sorted(sums.items())))
open("out/chart.svg", "w").write(f'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="{30 * len(sums)}">{bars}</svg>')
open("scratch.tmp", "w").write("not wanted")
print("rows:", sum(1 for _ in open("sales.csv")) - 1)
'''


def main():
    result = Client().run(["python3", "analyse.py"], spec=dict(net="deny", limits=dict(cpu=1, mem="512m")), timeout="1m",
                          files={"sales.csv": TABLE, "analyse.py": CODE}, collect=["out/*"], check=True)
    print(result.stdout, end="")
    summary = json.loads(result.files["out/summary.json"])
    print("total:", summary["total"], "best:", max(summary["by_region"], key=summary["by_region"].get))
    print("files:", *sorted(result.files))
    return 0 if sorted(result.files) == ["out/chart.svg", "out/summary.json"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
