// A sandbox: a replaceable place to run commands in.
import { defaultClient } from "./client.js";
import { execBody, given, Result } from "./common.js";
import { CaissonError, NotFound } from "./errors.js";
import { forget, remember } from "./exit.js";
import { Files } from "./files.js";
import { Process } from "./process.js";
import { Tools } from "./tools.js";

/** A port inside that has a local one: HTTP and WebSocket, with a token of its own. */
export class Port {
  constructor(sandbox, made) {
    this.sandbox = sandbox;
    this.made = made;
    this.port = made.port;
    this.url = made.url;
    this.headers = made.headers;
    this.localPort = made.local_port;
    this.openUrl = made.open_url;
    this.isReady = made.ready;
  }

  close() { return this.sandbox.closePort(this.port); }
}

/** Who runs commands: a sandbox, or a workspace in its default one. */
export class Runs extends Files {
  /** Runs a command and returns what it left; whoever aborts `signal` ends the command. */
  async exec(cmd, { stdin, wait, output, check = false, signal, onStdout, onStderr, ...options } = {}) {
    const [body, later] = execBody(cmd, stdin, { ...options, output });
    if (wait !== undefined || (output !== undefined && !later)) {
      const early = new Result(await this._start({ ...body, ...(wait === undefined ? { on_disconnect: "kill" } : given({ wait })) }, signal));
      return check && early.isOver ? early.check() : early;
    }
    // It has a record before it is waited for: then no restart of the daemon can lose it.
    const process = new Process(this.client, await this._start({ ...body, wait: 0, on_disconnect: "kill" }, signal));
    const result = await this.#attend(process, later, { onStdout, onStderr, signal });
    return check ? result.check() : result;
  }

  async #attend(process, later, { onStdout, onStderr, signal }) {
    try {
      if (later) await process.write(later, { eof: true, signal });
      return onStdout || onStderr ? await process.pump({ onStdout, onStderr, signal }) : await process.wait(undefined, { signal });
    } catch (error) {
      await process.kill().catch((other) => {
        if (!(other instanceof CaissonError)) throw other; // it was over
      });
      throw signal?.aborted ? signal.reason : error;
    }
  }

  run(cmd, options) { return this.exec(cmd, options); }

  /** Starts a command and returns at once. `stdin: true`: input comes later, by write(). */
  async spawn(cmd, { stdin, ...options } = {}) {
    const [body, later] = execBody(cmd, stdin, options);
    const process = new Process(this.client, await this._start({ ...body, wait: 0 }));
    if (later) await process.write(later, { eof: true });
    return process;
  }

  /** Starts a command with a terminal, and looks at it. */
  async pty(cmd = ["bash", "-i"], { rows = 24, cols = 80, ...options } = {}) {
    return (await this.spawn(cmd, { ...options, tty: true, rows, cols, stdin: true })).terminal();
  }

  /** bash, read, write, edit, glob and grep, in the shapes that models and frameworks take. */
  tools() { return new Tools(this); }
}

const REST = ["key", "labels", "ttl", "idle"];

export class Sandbox extends Runs {
  _at = "/v1/sandboxes/{id}";

  constructor({ client = defaultClient(), ...spec } = {}) {
    super();
    this.client = client;
    this.record = undefined;
    this.keeps = spec.key !== undefined;
    this.spec = Object.fromEntries(Object.entries(spec).filter(([name, value]) => value !== undefined && (value !== null || !REST.includes(name))));
    this.starting = undefined;
  }

  /** Makes one. */
  static create(options) { return new Sandbox(options).start(); }

  /** One that is there, by id or key. It is not deleted at the end. */
  static async get(id, { client } = {}) {
    const sandbox = new Sandbox({ client });
    sandbox.keeps = true;
    sandbox.record = await sandbox.client.call("GET", "/v1/sandboxes/{id}", { values: { id } });
    return sandbox;
  }

  // ---- life

  async _id() {
    if (!this.record) await (this.starting ??= this.#make().finally(() => { this.starting = undefined; }));
    return this.record.id;
  }

  /** Once it was started. */
  get id() {
    if (!this.record) throw new Error("the sandbox was not started yet");
    return this.record.id;
  }

  /** Makes it; one that is stopped is made usable again. */
  async start() {
    if (this.record) return this.#turn("POST", "/v1/sandboxes/{id}/start");
    await this._id(); // whoever else begins with it at the same time gets the same one
    return this;
  }

  async #make() {
    let made = await this.client.call("POST", "/v1/sandboxes", { body: this.spec });
    if (!this.keeps) remember(made.id, this.client.wire.address);
    if (made.state === "stopped") made = await this.client.call("POST", "/v1/sandboxes/{id}/start", { values: { id: made.id } });
    this.record = made;
  }

  async #turn(method, template, parts) {
    this.record = await this._ask(method, template, parts);
    return this;
  }

  async info() { return (await this.#turn("GET", "/v1/sandboxes/{id}")).record; }
  /** Ends its processes; files stay. */
  stop() { return this.#turn("POST", "/v1/sandboxes/{id}/stop"); }
  pause() { return this.#turn("POST", "/v1/sandboxes/{id}/pause"); }
  resume() { return this.#turn("POST", "/v1/sandboxes/{id}/resume"); }
  /** New walls, a new generation, the same id. */
  replace() { return this.#turn("POST", "/v1/sandboxes/{id}/replace"); }
  extend(options) { return this.#turn("POST", "/v1/sandboxes/{id}/extend", { body: given(options) }); }
  usage() { return this._ask("GET", "/v1/sandboxes/{id}/usage"); }

  /** Deletes it, with all that runs in it. A workspace stays. */
  async close() {
    if (!this.record) return;
    try {
      await this._ask("DELETE", "/v1/sandboxes/{id}");
    } catch (error) {
      if (!(error instanceof NotFound)) throw error; // it is gone already
    }
    forget(this.record.id);
    this.record = undefined;
  }

  async [Symbol.asyncDispose]() {
    if (!this.record) return;
    if (this.keeps) await this.stop();
    else await this.close();
  }

  // ---- commands

  _start(body, signal) { return this._ask("POST", "/v1/sandboxes/{id}/exec", { body, signal }); }
  async processes() { return this.client.processes({ sandbox: await this._id() }); }
  async shells() { return (await this._ask("GET", "/v1/sandboxes/{id}/shells")).shells; }
  async deleteShell(name) { await this._ask("DELETE", "/v1/sandboxes/{id}/shells/{name}", { values: { name } }); }

  // ---- network

  ports() { return this._ask("GET", "/v1/sandboxes/{id}/ports"); }
  /** Forwards a port; with `wait` when somebody listens there. */
  async port(port, options = {}) { return new Port(this, await this._ask("POST", "/v1/sandboxes/{id}/ports", { body: given({ port, ...options }) })); }
  async closePort(port) { await this._ask("DELETE", "/v1/sandboxes/{id}/ports/{port}", { values: { port } }); }

  /** What it reached, and what was denied, oldest first. */
  async* connections({ after = 0, follow = false, decision, name, signal } = {}) {
    const values = { id: await this._id() }, query = given({ decision, name });
    if (follow) {
      yield* this.client.follow("GET", "/v1/sandboxes/{id}/connections", { values, after, query: { ...query, follow: true }, signal });
      return;
    }
    for (let at = after; at !== null;) {
      const page = await this.client.call("GET", "/v1/sandboxes/{id}/connections", { values, query: { ...query, after: at }, signal });
      yield* page.connections;
      at = page.next;
    }
  }

  /** Whether its rules allow a host, by which rule, and what would. */
  why(host, port) { return this._ask("GET", "/v1/sandboxes/{id}/why", { query: { host, port } }); }
  /** New rules for its network, at once. */
  setNet(net) { return this._ask("PATCH", "/v1/sandboxes/{id}/net", { body: typeof net === "string" ? { mode: net } : net }); }
}
