// The AI SDK: generateText with a scripted model, tools that get the session, and what a session and a provider have to do.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Client, Sandbox } from "@caisson/sdk";
import { caissonTools, createCaissonSandbox, sandboxSession } from "@caisson/sdk/ai";
import { snippet } from "./snippet.mjs";

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

/** A model that asks for these calls, and then is done. */
function scripted(...calls) {
  const asked = calls.map(([toolName, input], i) => ({
    content: [{ type: "tool-call", toolCallId: `c${i}`, toolName, input: JSON.stringify(input) }], finishReason: { unified: "tool-calls", raw: "x" }, usage, warnings: [],
  }));
  return new MockLanguageModelV4({ doGenerate: [...asked, { content: [{ type: "text", text: "done" }], finishReason: { unified: "stop", raw: "x" }, usage, warnings: [] }] });
}

const results = (answer) => answer.steps.flatMap((step) => step.toolResults.map((one) => one.output));
let sandbox, session;
before(async () => {
  sandbox = await Sandbox.create({ net: "deny" });
  session = sandboxSession(sandbox, "/work");
});
after(() => sandbox.close());

test("the six tools, by a model", async () => {
  const answer = await generateText({
    model: scripted(["write", { file_path: "a.py", content: "print(6 * 7)\n" }], ["bash", { command: "python3 a.py; exit 3" }], ["read", { file_path: "none" }]),
    tools: caissonTools(sandbox, jsonSchema), prompt: "go", stopWhen: stepCountIs(9),
  });
  const [wrote, ran, read] = results(answer);
  assert.match(wrote, /a\.py/);
  assert.match(ran, /42[^]*3/);
  assert.match(read, /^\[/);
});

test("a tool gets the session", async () => {
  const whoami = tool({
    description: "who", inputSchema: jsonSchema({ type: "object", properties: {} }),
    execute: async (_, { experimental_sandbox }) => (await experimental_sandbox.run({ command: "id -un" })).stdout,
  });
  const answer = await generateText({ model: scripted(["whoami", {}]), tools: { whoami }, experimental_sandbox: session, prompt: "go", stopWhen: stepCountIs(3) });
  assert.deepEqual(results(answer), ["agent\n"]);
});

test("files of a session", async () => {
  assert.equal(await session.readFile({ path: "none" }), null);
  assert.equal(await session.readTextFile({ path: "none/none" }), null);
  await session.writeTextFile({ path: "d/e/text", content: "one\ntwo\nthree" });
  assert.equal(await session.readTextFile({ path: "/work/d/e/text", startLine: 2, endLine: 9 }), "two\nthree");
  assert.equal(await session.readTextFile({ path: "d/e/text", endLine: 1 }), "one\n");
  const bytes = new Uint8Array(200_000).map((_, i) => i * 7);
  await session.writeBinaryFile({ path: "bytes", content: bytes });
  assert.deepEqual(await session.readBinaryFile({ path: "bytes" }), bytes);
  await session.writeFile({ path: "copy", content: await session.readFile({ path: "bytes" }) });
  assert.equal((await session.run({ command: "cmp bytes copy && stat -c %s copy" })).stdout, "200000\n");
  await session.writeTextFile({ path: "empty", content: "" });
  assert.equal(await session.readTextFile({ path: "empty" }), "");
  await assert.rejects(() => session.readTextFile({ path: "d" }));
});

test("commands of a session", async () => {
  const done = await session.run({ command: "pwd; echo $A; echo e >&2; exit 5", workingDirectory: "d", env: { A: "b c" } });
  assert.deepEqual(done, { exitCode: 5, stdout: "/work/d\nb c\n", stderr: "e\n" });
  const much = await session.run({ command: "seq 100000" });
  assert.equal(much.stdout.length, 588895);
  await assert.rejects(() => session.run({ command: "sleep 60", abortSignal: AbortSignal.timeout(300) }), { name: "TimeoutError" });
  const p = await session.spawn({ command: "echo begin; sleep 60" });
  const { value } = await p.stdout.getReader().read();
  assert.equal(Buffer.from(value).toString(), "begin\n");
  await p.kill();
  await p.kill();
  assert.equal((await p.wait()).exitCode, 137);
  const aborted = new AbortController(), q = await session.spawn({ command: "sleep 60", abortSignal: aborted.signal });
  aborted.abort(new Error("enough"));
  await assert.rejects(() => q.wait(), /enough/);
  assert.equal((await session.run({ command: "pgrep -c sleep" })).stdout, "0\n");
});

test("a provider for the harness", async () => {
  const provider = createCaissonSandbox({ net: { allow: ["example.org"] }, ports: [8000] }), setups = [];
  const made = await provider.createSession({ sessionId: "one", onFirstCreate: async (s) => { setups.push((await s.run({ command: "echo setup >made" })).exitCode); } });
  assert.equal(made.defaultWorkingDirectory, "/work");
  assert.equal(made.restricted().stop, undefined);
  await made.spawn({ command: "python3 -m http.server 8000" });
  const { url, headers } = await made.getPortEndpoint({ port: 8000 });
  assert.equal(await (await fetch(`${url}/made`, { headers })).text(), "setup\n");
  assert.match((await made.getPortEndpoint({ port: 8000, protocol: "ws" })).url, /^ws:/);
  const decision = async () => (await made.sandbox.why("example.org")).decision;
  assert.equal(await decision(), "allow");
  await made.setNetworkPolicy({ mode: "deny-all" });
  assert.equal(await decision(), "deny");
  await made.setNetworkPolicy({ mode: "custom", allowedHosts: ["*.example.org", "example.org"] });
  assert.equal(await decision(), "allow");
  await made.stop();
  await made.stop();
  const again = await provider.resumeSession({ sessionId: "one" });
  assert.equal(again.id, made.id);
  assert.equal(await again.readTextFile({ path: "made" }), "setup\n");
  const third = await provider.createSession({ sessionId: "one", onFirstCreate: async () => { setups.push("again"); } });
  assert.equal(third.id, made.id);
  assert.deepEqual(setups, [0]);
  await third.destroy();
  await assert.rejects(() => provider.resumeSession({ sessionId: "one" }), /no session/);
  await assert.rejects(() => provider.createSession({ onFirstCreate: async () => { throw new Error("no setup"); } }), /no setup/);
  await assert.rejects(() => createCaissonSandbox({ env: { PATH: "/none" } }).createSession(), (error) => !/no setup/.test(error.message));
  assert.equal((await new Client().sandboxes()).length, 1);
});

test("the snippet", async () => {
  const { answer } = await snippet("Vercel AI SDK", { model: scripted(["bash", { command: "id -un" }]) }, ["answer"]);
  assert.deepEqual(results(answer).map((text) => text.trim()), ["agent"]);
});
