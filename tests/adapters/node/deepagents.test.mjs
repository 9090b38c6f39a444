// deepagents for JavaScript: an agent whose model is scripted, and what its own BaseSandbox makes of ours.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BaseSandbox, createDeepAgent, isSandboxBackend } from "deepagents";
import { AIMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { Client, Sandbox } from "@caisson/sdk";
import { caissonBackend } from "@caisson/sdk/deepagents";
import { snippet } from "./snippet.mjs";

/** A model that says these messages, one after the other. */
class Scripted extends FakeListChatModel {
  constructor(...turns) {
    super({ responses: ["unused"] });
    this.turns = turns;
  }
  bindTools() { return this; }
  async _generate() {
    const message = this.turns.shift();
    return { generations: [{ text: "", message }] };
  }
}
const ask = (name, args) => new AIMessage({ content: "", tool_calls: [{ name, args, id: name, type: "tool_call" }] });
const text = (bytes) => Buffer.from(bytes).toString();
let backend;
before(async () => { backend = await caissonBackend(BaseSandbox, { net: "deny" }); });
after(() => backend.close());

test("it is a sandbox", async () => {
  assert.ok(isSandboxBackend(backend));
  assert.match(backend.id, /^sb_/);
  assert.deepEqual(await backend.execute("echo out; echo err >&2; exit 3"), { output: "out\nerr\n", exitCode: 3, truncated: false });
  const much = await backend.execute("seq 2000000");
  assert.ok(much.truncated && much.output.endsWith("2000000\n"));
});

test("files: several, some of which are not there", async () => {
  assert.deepEqual(await backend.uploadFiles([["/work/up/a", Buffer.from("A")], ["relative", Buffer.from("B")], ["/etc/passwd", Buffer.from("C")]]),
    [{ path: "/work/up/a", error: null }, { path: "relative", error: "invalid_path" }, { path: "/etc/passwd", error: "permission_denied" }]);
  const found = await backend.downloadFiles(["/work/up/a", "/work/none", "/work/up", "relative"]);
  assert.deepEqual(found.map((one) => [one.content && text(one.content), one.error]), [["A", null], [null, "file_not_found"], [null, "is_directory"], [null, "invalid_path"]]);
});

test("what BaseSandbox makes of it: write, read, edit, ls, glob, grep", async () => {
  assert.equal((await backend.write("/work/src/a.txt", "one\ntwo\nthree\n")).error, undefined);
  assert.match((await backend.read("/work/src/a.txt", 1, 1)).content, /two/);
  assert.equal((await backend.edit("/work/src/a.txt", "two", "2")).occurrences, 1);
  assert.equal(text((await backend.downloadFiles(["/work/src/a.txt"]))[0].content), "one\n2\nthree\n");
  assert.ok((await backend.edit("/work/src/a.txt", "none", "x")).error);
  assert.ok((await backend.ls("/work/src")).files.some((one) => one.path.endsWith("a.txt")));
  assert.ok((await backend.glob("**/*.txt", "/work")).files.some((one) => one.path.endsWith("a.txt")));
  const { matches } = await backend.grep("three", "/work/src");
  assert.deepEqual(matches.map((one) => [one.path, one.line]), [["/work/src/a.txt", 3]]);
  assert.ok((await backend.read("/work/none")).error);
});

test("an agent with its tools", async () => {
  const turns = [ask("write_file", { file_path: "/work/p.py", content: "print(6 * 7)\n" }), ask("execute", { command: "python3 p.py; exit 4" }), new AIMessage("done")];
  const agent = createDeepAgent({ model: new Scripted(...turns), backend });
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: "go" }] });
  const said = messages.find((one) => one.getType() === "tool" && one.name === "execute").content;
  assert.match(said, /42[^]*4/);
});

test("a sandbox that is there, and the time that a command has", async () => {
  const sandbox = await Sandbox.create();
  const other = await caissonBackend(BaseSandbox, { sandbox, timeout: "1s" });
  assert.equal(other.id, sandbox.id);
  assert.equal((await other.execute("sleep 20")).exitCode, 124);
  await other.close();
});

test("the snippet", async () => {
  const model = new Scripted(ask("execute", { command: "id -un" }), new AIMessage("done"));
  const { answer } = await snippet("deepagents for JavaScript", { model }, ["answer"]);
  assert.match(answer.messages.find((one) => one.getType() === "tool").content, /^agent/);
  assert.equal((await new Client().sandboxes()).length, 1);
});
