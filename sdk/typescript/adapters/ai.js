// For the AI SDK (package `ai`): a sandbox session for tools, a sandbox provider for its harness, and the six tools.
import { NotFound, NotADirectory, Sandbox } from "../lib/index.js";
import { kill, listen, runWhole } from "./run.js";

const PORT_WAIT = "20s";

/** What there is, or null when there is no such file. */
async function orNull(asked) {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof NotFound || error instanceof NotADirectory) return null;
    throw error;
  }
}

const streamOf = (bytes) => new ReadableStream({
  start(controller) {
    if (bytes.length > 0) controller.enqueue(new Uint8Array(bytes));
    controller.close();
  },
});

async function bytesOf(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

function lines(text, first = 1, last = Infinity) {
  if (first <= 1 && last === Infinity) return text;
  return text.split(/(?<=\n)/).slice(first - 1, last).join("");
}

/** An Experimental_SandboxSession: files and commands, and nothing that ends the sandbox or opens its network. */
export function sandboxSession(sandbox, home = "the folder where commands start") {
  const at = (dir) => dir === undefined || dir.startsWith("/") || !home.startsWith("/") ? dir : `${home}/${dir}`;
  const options = ({ command, workingDirectory, env }) => [command, { cwd: at(workingDirectory), env }];
  const read = ({ path, abortSignal }) => orNull(sandbox.readBytes(path, { signal: abortSignal }));
  const write = async ({ path, content, abortSignal }) => { await sandbox.write(path, content, { signal: abortSignal }); };
  return {
    description: `A Linux sandbox behind walls. Relative paths are taken from ${home}. Commands run by a shell, as an ordinary user.`,
    async readFile(asked) { const data = await read(asked); return data && streamOf(data); },
    async readBinaryFile(asked) { const data = await read(asked); return data && new Uint8Array(data); },
    async readTextFile({ encoding = "utf-8", startLine, endLine, ...asked }) {
      const data = await read(asked);
      return data && lines(new TextDecoder(encoding).decode(data), startLine, endLine);
    },
    async writeFile({ content, ...asked }) { await write({ ...asked, content: await bytesOf(content) }); },
    writeBinaryFile: write,
    writeTextFile: ({ encoding = "utf-8", content, ...asked }) => write({ ...asked, content: Buffer.from(content, encoding) }),
    async run({ abortSignal, ...asked }) {
      const [command, rest] = options(asked);
      const done = await runWhole(sandbox, command, { ...rest, signal: abortSignal });
      return { exitCode: done.status, stdout: done.stdout.toString(), stderr: done.stderr.toString() + done.refusal };
    },
    async spawn({ abortSignal, ...asked }) {
      abortSignal?.throwIfAborted();
      const process = await sandbox.spawn(...options(asked)), feeds = {};
      const [stdout, stderr] = ["stdout", "stderr"].map((name) => new ReadableStream({
        start(controller) { feeds[name] = controller; },
        cancel() { delete feeds[name]; },
      }));
      const heard = (name, piece) => feeds[name]?.enqueue(new Uint8Array(piece));
      const ended = listen(process, { limit: 0, heard, signal: abortSignal }).then((done) => ({ exitCode: done.status }), async (error) => {
        await kill(process);
        abortSignal?.throwIfAborted();
        throw error;
      }).finally(() => { for (const feed of Object.values(feeds)) feed.close(); });
      ended.catch(() => {}); // whoever waits hears it
      return { stdout, stderr, wait: () => ended, kill: () => kill(process) };
    },
  };
}

/** A network policy as a spec has it. */
function net(policy) {
  if (policy.mode !== "custom") return { mode: policy.mode === "allow-all" ? "allow" : "deny" };
  if (policy.deniedCIDRs?.length) throw new TypeError("deniedCIDRs: addresses are denied unless they are allowed");
  return { mode: "list", allow: policy.allowedHosts ?? [], cidr: policy.allowedCIDRs ?? [] };
}

async function networkSession(sandbox, { ports = [], key } = {}) {
  const home = (await sandbox.exec(["pwd"], { check: true })).stdout.trimEnd(), session = sandboxSession(sandbox, home);
  const endpoint = async ({ port, protocol = "http" }) => {
    const made = await sandbox.port(port, { wait: PORT_WAIT });
    return { url: made.url.replace(/^http/, protocol === "ws" ? "ws" : "http"), headers: made.headers, openUrl: made.openUrl };
  };
  return {
    ...session, id: sandbox.id, defaultWorkingDirectory: home, ports, sandbox,
    async getPortEndpoint(asked) { const { url, headers } = await endpoint(asked); return { url, headers }; },
    // An address alone carries no header; this one hands the token to a browser as a cookie.
    async getPortUrl(asked) { const made = await endpoint(asked); return asked.protocol === "ws" ? made.url : made.openUrl; },
    async stop() {
      if (!key) await sandbox.close();
      else if ((await orNull(sandbox.info()))?.state === "running") await sandbox.pause();
    },
    destroy: () => sandbox.close(),
    async setNetworkPolicy(policy) { await sandbox.setNet(net(policy)); },
    restricted: () => session,
  };
}

const LIVE = ["creating", "running", "paused", "stopped"];

async function find(key, client) {
  const sandbox = await orNull(Sandbox.get(key, { client }));
  if (!sandbox || !LIVE.includes(sandbox.record.state)) return null;
  if (sandbox.record.state === "paused") await sandbox.resume();
  return sandbox;
}

/** A harness-sandbox-v1 provider: each session a sandbox of this spec. One with a `sessionId` is found again by it, frozen while it is stopped. */
export function createCaissonSandbox({ ports, ...spec } = {}) {
  const keyOf = (sessionId) => sessionId && `ai-sdk-${sessionId}`;
  return {
    specificationVersion: "harness-sandbox-v1",
    providerId: "caisson",
    async createSession({ sessionId, abortSignal, onFirstCreate } = {}) {
      abortSignal?.throwIfAborted();
      const key = keyOf(sessionId), there = key ? await find(key, spec.client) : null;
      const sandbox = there ?? await Sandbox.create({ ...spec, key });
      try {
        const session = await networkSession(sandbox, { ports, key });
        if (!there) await onFirstCreate?.(session.restricted(), { abortSignal });
        return session;
      } catch (error) {
        if (!there) await sandbox.close();
        throw error;
      }
    },
    async resumeSession({ sessionId }) {
      const key = keyOf(sessionId), sandbox = await find(key, spec.client);
      if (!sandbox) throw new NotFound(`no session ${sessionId}`);
      return networkSession(sandbox, { ports, key });
    },
  };
}

/** bash, read, write, edit, glob and grep for generateText and agents. `jsonSchema` is that of `ai`. */
export function caissonTools(sandbox, jsonSchema) {
  const named = Object.values(sandbox.tools().functions());
  return Object.fromEntries(named.map(({ name, description, parameters, execute }) => [name, { description, inputSchema: jsonSchema(parameters), execute: (given) => execute(given) }]));
}
