// Mastra: a workspace with our sandbox and files, its own tools over both, and what each has to be able to do.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as mastra from "@mastra/core/workspace";
import { Client } from "@caisson/sdk";
import { caissonFor } from "@caisson/sdk/mastra";
import { snippet } from "./snippet.mjs";

const { CaissonSandbox, CaissonFilesystem } = caissonFor(mastra), { Workspace, createWorkspaceTools, WORKSPACE_TOOLS } = mastra;
let sandbox, files, workspace;
before(async () => {
  sandbox = new CaissonSandbox({ net: "deny", env: { FROM: "outside" } });
  files = new CaissonFilesystem(sandbox);
  workspace = new Workspace({ sandbox, filesystem: files });
  await workspace.init();
});
after(async () => {
  await workspace.destroy();
  assert.deepEqual(await new Client().sandboxes(), []);
});

test("commands", async () => {
  const done = await sandbox.executeCommand("echo", ["a b", "$FROM"], {});
  assert.deepEqual([done.success, done.exitCode, done.stdout], [true, 0, "a b $FROM\n"]);
  const heard = [], failed = await sandbox.executeCommand("echo $FROM $MORE; pwd; echo e >&2; exit 3", [], { env: { MORE: "1" }, cwd: "/tmp", onStdout: (s) => heard.push(s) });
  assert.deepEqual([failed.success, failed.exitCode, failed.stdout, failed.stderr], [false, 3, "outside 1\n/tmp\n", "e\n"]);
  assert.equal(heard.join(""), failed.stdout);
  const late = await sandbox.executeCommand("echo begun; sleep 30", [], { timeout: 500 });
  assert.deepEqual([late.timedOut, late.success, late.exitCode, late.stdout], [true, false, 124, "begun\n"]);
  const much = await sandbox.executeCommand("seq 100000", [], { maxRetainedBytes: 1000 });
  assert.ok(much.stdoutTruncated && much.stdoutDroppedBytes === 588895 - 1000 && much.stdout.endsWith("100000\n"));
  const letters = await sandbox.executeCommand("for i in $(seq 30000); do printf 'é€😀'; done");
  assert.equal(letters.stdout, "é€😀".repeat(30000));
  const aborted = await sandbox.executeCommand("sleep 30", [], { abortSignal: AbortSignal.timeout(300) });
  assert.ok(!aborted.success && aborted.killed);
});

test("processes that go on", async () => {
  const cat = await sandbox.processes.spawn("cat; exit 5");
  await cat.sendStdin("typed\n");
  await cat.closeStdin();
  assert.deepEqual([(await cat.wait()).exitCode, cat.stdout], [5, "typed\n"]);
  const sleeper = await sandbox.processes.spawn("sleep 100");
  assert.ok((await sandbox.processes.list()).some((one) => one.pid === sleeper.pid && one.running));
  assert.equal(await sandbox.processes.kill(sleeper.pid), true);
  assert.equal(await sandbox.processes.get(sleeper.pid), undefined);
  const server = await sandbox.processes.spawn("python3 -m http.server 8123");
  const port = await sandbox.port(8123);
  assert.equal((await fetch(port.url, { headers: port.headers })).status, 200);
  assert.match(await sandbox.networking.getPortUrl(8123), /^http:.*token=/);
  await server.kill();
});

test("files", async () => {
  await files.writeFile("d/a.txt", "one");
  await files.appendFile("d/a.txt", " two");
  await files.appendFile("d/new.txt", "begun");
  assert.equal(await files.readFile("d/a.txt", { encoding: "utf-8" }), "one two");
  const bytes = Buffer.from(Array.from({ length: 70000 }, (_, i) => i % 251));
  await files.writeFile("/work/d/bytes.bin", bytes);
  assert.deepEqual(await files.readFile("d/bytes.bin"), bytes);
  await files.copyFile("d/a.txt", "e/b.txt");
  await files.moveFile("e/b.txt", "e/c.md");
  await files.mkdir("e/f/g");
  assert.deepEqual((await files.readdir("e")).map((one) => [one.name, one.type]), [["c.md", "file"], ["f", "directory"]]);
  assert.deepEqual((await files.readdir(".", { recursive: true, extension: ".txt" })).filter((one) => one.type === "file").map((one) => one.name), ["d/a.txt", "d/new.txt"]);
  assert.deepEqual([(await files.stat("e/c.md")).size, (await files.stat("e")).type, await files.exists("e/c.md"), await files.exists("none/x")], [7, "directory", true, false]);
  await files.deleteFile("e/c.md");
  await files.deleteFile("e/c.md", { force: true });
  await files.rmdir("e", { recursive: true });
  await sandbox.writeFiles([{ path: "run.sh", content: "#!/bin/sh\necho ran\n", mode: 0o755 }]);
  assert.equal((await sandbox.executeCommand("./run.sh")).stdout, "ran\n");
});

test("errors of files are Mastra's", async () => {
  await files.mkdir("dir/sub");
  await files.writeFile("there", "1");
  const cases = [
    [() => files.readFile("none"), mastra.FileNotFoundError], [() => files.readFile("dir"), mastra.IsDirectoryError], [() => files.deleteFile("none"), mastra.FileNotFoundError],
    [() => files.deleteFile("dir"), mastra.IsDirectoryError], [() => files.rmdir("dir"), mastra.DirectoryNotEmptyError], [() => files.rmdir("there"), mastra.NotDirectoryError],
    [() => files.writeFile("there", "2", { overwrite: false }), mastra.FileExistsError], [() => files.writeFile("no/such", "2", { recursive: false }), mastra.DirectoryNotFoundError],
    [() => files.writeFile("/etc/no", "2"), mastra.PermissionError], [() => files.writeFile("there", "2", { expectedMtime: new Date(0) }), mastra.StaleFileError],
    [() => files.copyFile("none", "x"), mastra.FileNotFoundError], [() => files.stat("none"), mastra.FileNotFoundError],
    [() => files.appendFile("dir", "2"), mastra.IsDirectoryError], [() => files.appendFile("there/x", "2"), mastra.NotDirectoryError],
    [() => files.appendFile("/etc/no/such", "2"), mastra.PermissionError],
  ];
  for (const [act, kind] of cases) await assert.rejects(act, kind, String(act));
  await files.writeFile("there", "2", { expectedMtime: (await files.stat("there")).modifiedAt });
});

test("Mastra's own tools", async () => {
  const tools = await createWorkspaceTools(workspace), call = (name, given) => tools[name].execute(given, { workspace });
  await call(WORKSPACE_TOOLS.FILESYSTEM.WRITE_FILE, { path: "t.py", content: "print(6 * 7)\n" });
  assert.match(String(await call(WORKSPACE_TOOLS.FILESYSTEM.READ_FILE, { path: "t.py" })), /6 \* 7/);
  await call(WORKSPACE_TOOLS.FILESYSTEM.EDIT_FILE, { path: "t.py", old_string: "6", new_string: "60" });
  assert.match(JSON.stringify(await call(WORKSPACE_TOOLS.SANDBOX.EXECUTE_COMMAND, { command: "python3 t.py" })), /420/);
  assert.match(JSON.stringify(await call(WORKSPACE_TOOLS.FILESYSTEM.LIST_FILES, { path: "." })), /t\.py/);
});

test("stopped and started, destroyed and made anew", async () => {
  const one = new CaissonSandbox({ net: "deny" }), counts = { start: 0 };
  one.setOnStart(() => async () => { counts.start++; });
  await one.executeCommand("echo kept >kept");
  const { id } = one.sandbox;
  await mastra.callLifecycle(one, "stop");
  assert.equal((await one.executeCommand("cat kept")).stdout, "kept\n");
  assert.deepEqual([one.sandbox.id, counts.start], [id, 2]);
  assert.equal((await one.getInfo()).metadata.sandboxId, id);
  await new Client().call("DELETE", "/v1/sandboxes/{id}", { values: { id } });  // by somebody else
  await mastra.callLifecycle(one, "stop").catch(() => {});
  assert.equal((await one.executeCommand("cat kept")).exitCode, 1);
  assert.notEqual(one.sandbox.id, id);
  await mastra.callLifecycle(one, "destroy");
  assert.equal(one.status, "destroyed");
});

test("the snippet", async () => {
  const { answer } = await snippet("Mastra", {}, ["answer"]);
  assert.equal(answer.stdout, "agent\n");
});
