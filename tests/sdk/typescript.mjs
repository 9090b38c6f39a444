// What tests/sdk/typescript.py runs against its daemon: one line per test, ok or not.
import assert from "node:assert/strict";
import net from "node:net";
import { Readable } from "node:stream";
import { pathToFileURL } from "node:url";

const sdk = await import(pathToFileURL(process.argv[2]).href);
const { Client, Process, Sandbox, Workspace, byCode, seal } = sdk;
const only = process.argv.slice(3);
const client = new Client();
const SPEC = { net: "deny", fs: "ephemeral:/work", creds: null, limits: { cpu: 2, mem: "4g", pids: 512, wall: "10m" } };

async function collect(iterable) {
  const all = [];
  for await (const one of iterable) all.push(one);
  return all;
}

async function eventually(isSo) {
  for (let i = 0; i < 400 && !(await isSo()); i++) await new Promise((resolve) => setTimeout(resolve, 100));
  assert.ok(await isSo());
}

async function withSandbox(options, use) {
  const s = await Sandbox.create(options);
  try {
    await use(s);
  } finally {
    await s[Symbol.asyncDispose]();
  }
}

const TESTS = {
  async "the one-liner works as written; its end deletes it"() {
    let id;
    await withSandbox(SPEC, async (s) => {
      id = s.id;
      assert.deepEqual((await s.info()).spec, { net: { mode: "deny" }, fs: [{ kind: "ephemeral", at: "/work" }], creds: [],
        limits: { cpu: 2, mem: 4294967296, pids: 512, wall_ms: 600000 }, user: "agent" });
      await s.write("a.js", "1 + 1");
      const r = await s.run(["cat", "a.js"]);
      assert.deepEqual([r.ok, r.exitCode, r.stdout, r.state], [true, 0, "1 + 1", "exited"]);
    });
    assert.equal((await Sandbox.get(id)).record.state, "gone");
    await assert.rejects(Sandbox.create({ net: "denny" }), { code: "invalid" });
    assert.equal(typeof Sandbox.prototype[Symbol.asyncDispose], "function");
  },

  async "folders of the host are lent before they are named"() {
    const folder = process.env.LENT;
    for (const fs of [`ro:${folder}:/data`, [{ kind: "overlay", src: folder, at: "/data" }]]) {
      await withSandbox({ fs }, async (s) => assert.equal(await s.read("/data/file"), "of the host"));
    }
  },

  async "exec: results, streams, input, timeouts, abort"() {
    await withSandbox({}, async (s) => {
      let heard = "";
      const r = await s.exec("echo out; sleep 0.1; echo err >&2; exit 3", { onStdout: (t) => { heard += t; }, onStderr: (t) => { heard += `!${t}`; } });
      assert.deepEqual([r.exitCode, r.stdout, r.stderr, heard], [3, "out\n", "err\n", "out\n!err\n"]);
      await assert.rejects(s.exec("exit 3", { check: true }), sdk.CommandError);
      assert.equal((await s.exec("sleep 9", { timeout: "100ms" })).state, "timeout");
      await assert.rejects(s.exec("sleep 9", { timeout: 0.1, check: true }), sdk.CommandTimeout);
      assert.equal((await s.exec("wc -c", { stdin: Buffer.alloc(300000, 255) })).stdout.trim(), "300000");
      assert.equal((await s.exec("cat", { stdin: "häh" })).stdout, "häh");
      assert.deepEqual((await s.exec(["printf", "\\377"])).stdoutBytes, Buffer.from([255]));
      const abort = new AbortController();
      setTimeout(() => abort.abort(new Error("enough")), 200);
      await assert.rejects(s.exec("sleep 112", { signal: abort.signal }), /enough/);
      await eventually(async () => (await s.exec("pgrep -f 'sleep 11[2]'")).exitCode === 1);
      await assert.rejects(s.exec("sleep 114", { stdin: Buffer.alloc(4 << 20), signal: AbortSignal.timeout(500) }), { name: "TimeoutError" });
      await eventually(async () => (await s.exec("pgrep -f 'sleep 11[4]'")).exitCode === 1);
      await assert.rejects(s.exec("exit 3", { check: true, output: { inline: "1m" } }), sdk.CommandError);
      assert.equal((await s.exec("sleep 2", { check: true, wait: "50ms" })).isOver, false);
      // Side by side: none of them ends before all are there.
      const all = await Promise.all([1, 2, 3, 4, 5, 6].map((i) => s.exec(
        `mkdir -p met; : >met/${i}; until [ $(ls met | wc -l) = 6 ]; do sleep 0.05; done; echo ${i}`, { timeout: "80s" })));
      assert.deepEqual(all.map((one) => one.stdout), ["1\n", "2\n", "3\n", "4\n", "5\n", "6\n"]);
    });
  },

  async "one sandbox for all who begin with it; many leave nothing behind"() {
    const s = new Sandbox();
    await Promise.all([s.start(), s.exec("true"), s.start()]);
    assert.deepEqual((await client.sandboxes()).map((one) => one.id), [s.id]);
    await s.close();
    const before = process.listenerCount("exit");
    for (let i = 0; i < 3; i++) await (await Sandbox.create()).close();
    assert.equal(process.listenerCount("exit"), before);
  },

  async "answers that end early, terminals that are left and looked at again"() {
    const server = net.createServer((socket) => socket.on("data", (data) => {
      const asked = data.toString();
      if (asked.includes("/v1/health")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
      else if (asked.includes("/v1/backends")) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
      else if (asked.includes("/tty")) {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x82\x01a\x82\x01b", "latin1");
        setTimeout(() => socket.resetAndDestroy(), 100);
      }
    }).on("error", () => {}));
    await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
    const other = new Client({ host: `127.0.0.1:${server.address().port}`, token: "none" });
    await assert.rejects(other.backends(), sdk.SandboxUnavailable);
    const t = await new Process(other, { id: "px_1" }).terminal(), got = [];
    for (let i = 0; i < 2; i++) {
      for await (const piece of t) {
        got.push(piece.toString());
        break;
      }
    }
    assert.deepEqual(got, ["a", "b"]);
    await new Promise((resolve) => { setTimeout(resolve, 300); }); // it breaks while nobody looks
    await assert.rejects(t.send("x"));
    other.close();
    server.close();
  },

  async "errors have the codes of the API, a class each"() {
    const said = (await client.openapi()).components.schemas.Problem.properties.code.enum;
    assert.deepEqual([...byCode.keys()].sort(), [...said].sort());
    await withSandbox({}, async (s) => {
      await assert.rejects(s.read("none"), sdk.NotFound);
      await assert.rejects(s.read("/"), sdk.IsADirectory);
      await assert.rejects(s.write("/etc/x", ""), sdk.PermissionDenied);
      await s.write("f", "one one");
      await assert.rejects(s.edit("f", "one", "1"), sdk.AmbiguousMatch);
      await assert.rejects(s.write("f", "", { onlyNew: true }), sdk.Exists);
    });
    await assert.rejects(new Client({ socket: "/run/nobody.sock" }).health(), (e) => e instanceof sdk.SandboxUnavailable && e.retrySafe);
  },

  async "files: read, write, edit, search, tar, watch"() {
    await withSandbox({}, async (s) => {
      await s.write("src/a b.txt", Buffer.from([255, 0, 65]), { mode: "0600" });
      assert.deepEqual(await s.readBytes("src/a b.txt", { first: 1 }), Buffer.from([0, 65]));
      await s.write("t", Readable.from([Buffer.from("one\n"), Buffer.from("two\n")]));
      await s.edit("t", "two", "2", { ifHash: (await s.stat("t", { hash: true })).hash });
      await s.insert("t", 0, "zero\n");
      assert.equal(await s.read("t"), "zero\none\n2\n");
      assert.equal((await s.readLines("t", 2, 2)).text, "one\n");
      await s.copy("t", "u");
      await s.move("u", "src/u");
      assert.deepEqual((await s.list(".", { depth: 2 })).map((e) => e.path).sort(), ["src", "src/a b.txt", "src/u", "t"]);
      assert.deepEqual((await s.grep("^2$", { glob: "t" })).matches.map((m) => m.line), [3]);
      assert.deepEqual((await s.glob("**/u")).paths, ["src/u"]);
      assert.equal((await s.batch([{ op: "stat", path: "none" }]))[0].error.code, "not_found");
      await s.patch("--- a/t\n+++ b/t\n@@ -1,1 +1,1 @@\n-zero\n+null\n");
      assert.equal((await s.upload(await s.download("src"), "copy")).files, 2);
      await s.delete("copy", { recursive: true });
      assert.deepEqual([await s.exists("copy"), await s.exists("t")], [false, true]);
      for await (const event of s.watch(".", { recursive: true })) {
        if (event.event === "ready") await s.write("src/new", "");
        else if (event.path === "src/new") break;
      }
    });
  },

  async "processes: input, signals, terminal, streams behind a seq"() {
    await withSandbox({}, async (s) => {
      const p = await s.spawn("cat; echo e >&2", { stdin: true, label: "ts" });
      await p.write("a\n");
      await p.write("b\n", { eof: true });
      assert.equal((await p.wait()).stdout, "a\nb\n");
      assert.equal((await p.log()).toString(), "a\nb\ne\n");
      const events = await collect(p.events());
      assert.equal(events.at(-1).type, "end");
      assert.equal(Buffer.concat(await collect(p.output({ after: events.at(-3).seq }))).toString(), "e\n");
      assert.equal(await new Response(p.readable("stdout")).text(), "a\nb\n");
      assert.equal((await Process.get(p.id)).id, p.id);
      const q = await s.spawn("trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done");
      for await (const piece of q.output()) {
        assert.equal(piece.toString(), "up\n");
        break;
      }
      await q.signal("TERM");
      assert.equal((await q.wait()).exitCode, 5);
      assert.equal((await (await s.spawn("sleep 99")).kill()).state, "killed");
      const t = await s.pty("stty size; read x; echo got $x; exit 4", { rows: 30, cols: 100 });
      let shown = "";
      for await (const piece of t) {
        shown += piece;
        if (shown.includes("30 100") && !shown.includes("got")) await t.send("it\n");
        if (shown.includes("got it")) shown += "";
      }
      assert.match(shown, /got it/);
      assert.equal(t.result.exitCode, 4);
    });
  },

  async "ports, network, life"() {
    await withSandbox({}, async (s) => {
      await s.write("index.html", "hello");
      await s.spawn("python3 -m http.server 8000");
      const port = await s.port(8000, { wait: "30s" });
      assert.equal(await (await fetch(port.url, { headers: port.headers })).text(), "hello");
      await port.close();
      assert.equal((await s.why("example.org")).decision, "deny");
      assert.deepEqual(await collect(s.connections()), []);
      await s.pause();
      assert.equal((await s.info()).state, "paused");
      await s.resume();
      await s.stop();
      assert.equal((await (await s.start()).exec("cat index.html")).stdout, "hello");
      assert.ok((await s.usage()).mem >= 0);
      assert.deepEqual(await s.shells(), []);
    });
  },

  async "workspaces: undo, fork, diff, apply"() {
    const ws = await Workspace.open("ts");
    await ws.write("a.txt", "1\n");
    await ws.exec("echo 2 >>a.txt");
    await ws.undo();
    assert.equal(await ws.read("a.txt"), "1\n");
    await ws.redo();
    const [one, two] = await ws.fork(2);
    await one.exec("echo x >b.txt");
    assert.deepEqual([await one.exists("b.txt"), await two.exists("b.txt")], [true, false]);
    assert.match(await ws.diff(), /\+2/);
    assert.deepEqual((await ws.changes()).counts, { A: 1 });
    assert.ok((await ws.history()).length >= 2);
    const s = ws.sandbox();
    assert.equal((await s.exec("cat a.txt")).stdout, "1\n2\n");
    await s.close();
    assert.equal((await ws.apply(process.env.TARGET, { dryRun: true })).applied, false);
    assert.equal((await ws.apply(process.env.TARGET)).applied, true);
    await ws.write("run.sh", "#!/bin/sh\n", { mode: "0755" });
    await assert.rejects(ws.apply(process.env.TARGET), sdk.Denied);
    for (const w of [one, two, ws]) await w.remove({ force: true });
  },

  async "secrets: sealed as RFC 9180 says"() {
    const hex = (text) => Buffer.from(text, "hex");
    assert.equal(seal(hex("4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a"), hex("4f6465206f6e2061204772656369616e2055726e"),
      hex("436f756e742d30"), hex("4265617574792069732074727574682c20747275746820626561757479"),
      hex("f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600")).toString("hex"),
    "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a"
      + "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28");
    const made = await client.setSecret("ts", "a-value-of-mine", { hosts: ["api.example.org"], env: "TOKEN" });
    assert.deepEqual(made.bind.hosts, ["api.example.org"]);
    await withSandbox({ net: "allow:api.example.org", creds: "ts" }, async (s) => {
      const shown = (await s.exec("echo $TOKEN")).stdout.trim();
      assert.ok(shown && shown !== "a-value-of-mine");
    });
    await client.deleteSecret("ts");
  },

  async "the daemon: health, ledger, tokens, run"() {
    assert.equal((await client.health()).ready, true);
    const r = await client.run("cat; exit 3", { stdin: "x", spec: { limits: { mem: "512m" } } });
    assert.deepEqual([r.exitCode, r.stdout], [3, "x"]);
    const left = await client.run("sort a >b", { files: { a: "2\n1\n" }, collect: ["b", "none"] });
    assert.deepEqual([left.files.b.toString(), left.missing], ["1\n2\n", ["none"]]);
    for await (const one of client.events({ follow: true })) {
      assert.equal(one.seq, 1);
      break;
    }
    const token = await client.createToken({ scope: "read" });
    assert.equal((await client.tokens()).length, 1);
    await client.revokeToken(token.id);
    assert.match(await client.metrics(), /caisson_/);
    assert.equal((await client.gc({ dryRun: true })).dry_run, true);
  },

  async "tools: six of them, in each shape, answered in words"() {
    await withSandbox({}, async (s) => {
      const tools = s.tools(), names = ["bash", "read", "write", "edit", "glob", "grep"];
      assert.deepEqual(tools.specs("anthropic").map((t) => t.name), names);
      assert.deepEqual(tools.specs("openai").map((t) => t.function.name), names);
      assert.deepEqual(Object.keys(tools.functions()), names);
      assert.equal(await tools.call("write", { file_path: "a/b.txt", content: "one\ntwo\n" }), "[/work/a/b.txt: 8 bytes, new]");
      assert.equal(await tools.call("read", '{"file_path": "a/b.txt", "offset": 2}'), "     2\ttwo");
      assert.equal(await tools.call("grep", { pattern: "tw." }), "a/b.txt:2:two");
      assert.equal(await tools.call("glob", { pattern: "**/*.txt" }), "a/b.txt");
      assert.equal(await tools.functions().bash.execute({ command: "echo hi; exit 2" }), "hi\n[exit status 2]");
      assert.match(await tools.call("edit", { file_path: "a/b.txt", old_string: "one", new_string: "1" }), /\+1\n/);
      assert.equal(await tools.call("edit", { file_path: "a/b.txt", old_string: "x", new_string: "" }), "[/work/a/b.txt: the old text is not there]");
      assert.equal(await tools.call("bash", { cmd: "" }), "[bash: unknown: cmd; needed: command]");
    });
  },
};

for (const [title, test] of Object.entries(TESTS)) {
  if (only.length && !only.some((word) => title.includes(word))) continue;
  const begin = Date.now();
  try {
    await test();
    console.log(`ok - ${title} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    console.log(`# ${String(error.stack ?? error).split("\n").join("\n# ")}\nnot ok - ${title}`);
  }
}
