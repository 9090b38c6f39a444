#!/usr/bin/env python3
"""An end-to-end test in a real browser: the application, Playwright and Debian's Chromium are all inside, without a network.

    browser_test.py FOLDER    where `npm install --prefix FOLDER playwright-core` has put it
"""
import json
import pathlib
import shutil
import sys

from caisson import Sandbox

PAGE = """<!doctype html><title>Basket</title>
<button id=add>Add</button> <output id=count>0</output>
<script>
  let n = 0;
  document.getElementById("add").onclick = async () => {
    const answer = await fetch("/price.json");
    n += (await answer.json()).price;
    document.getElementById("count").textContent = n;
  };
</script>"""
TEST = """
import { createRequire } from "node:module";
const { chromium } = createRequire("/opt/playwright/node_modules/")("playwright-core");
const browser = await chromium.launch({ executablePath: process.argv[2], args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage();
await page.goto("http://127.0.0.1:8000/");
await page.click("#add");
await page.click("#add");
await page.waitForFunction(() => document.getElementById("count").textContent === "84");
await page.screenshot({ path: "basket.png" });
const outside = await page.evaluate(() => fetch("http://example.org/").then(() => "reached", () => "not reached"));
console.log(JSON.stringify({ title: await page.title(), count: await page.textContent("#count"), outside }));
await browser.close();
"""


def main(folder):
    browser = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not browser or not (pathlib.Path(folder) / "node_modules/playwright-core").is_dir():
        print("Chromium or playwright-core is not installed here")
        return 77
    with Sandbox(net="deny", fs=["ephemeral:/work", f"ro:{folder}:/opt/playwright"], limits=dict(mem="2g", pids=512)) as s:
        s.write("index.html", PAGE)
        s.write("price.json", '{"price": 42}')
        s.write("/work/test.mjs", TEST)
        with s.spawn("python3 -m http.server --bind 127.0.0.1 8000"):
            s.port(8000, wait="20s").close()  # it is up
            r = s.exec(["node", "test.mjs", browser], timeout="2m")
        if not r.ok:
            print(r.stdout, r.stderr)
            return 1
        seen, picture = json.loads(r.stdout), s.read_bytes("basket.png")
    print(seen, f"screenshot: {len(picture)} bytes")
    return 0 if seen == {"title": "Basket", "count": "84", "outside": "not reached"} and picture[1:4] == b"PNG" else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1] if len(sys.argv) > 1 else "/tmp/playwright"))
