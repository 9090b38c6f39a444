// A process: everything that was executed, running or not.
import { setTimeout as pause } from "node:timers/promises";
import { defaultClient } from "./client.js";
import { ENDED, given, Result, STDIN_PIECE } from "./common.js";
import { Busy, CaissonError, Conflict } from "./errors.js";

const POLL = "20s";
const KILL_WAIT = "10s";

/** What an output event has written. */
export const eventBytes = (event) => ("base64" in event ? Buffer.from(event.base64, "base64") : Buffer.from(event.data ?? ""));

/** The terminal of a process: what is typed goes in, what is shown comes out. */
export class Terminal {
  constructor(process, socket) {
    this.process = process;
    this.result = undefined;
    this.socket = socket;
  }

  send(data) { return this.socket.send(typeof data === "string" ? Buffer.from(data) : data); }
  resize(rows, cols) { return this.socket.send(JSON.stringify({ resize: { rows, cols } }), 1); }
  eof() { return this.socket.send('{"eof":true}', 1); }

  /** Output as it comes; at the end `result` is known. */
  async* [Symbol.asyncIterator]() {
    for await (const message of this.socket.messages()) {
      if (typeof message === "string") this.result = new Result(JSON.parse(message));
      else yield message;
    }
  }

  /** Nobody looks any more; the process goes on. */
  close() { this.socket.close(); }
  async [Symbol.asyncDispose]() { this.close(); }
}

export class Process {
  constructor(client, record) {
    this.client = client;
    this.record = record;
  }

  static async get(id, { client = defaultClient() } = {}) {
    return new Process(client, await client.call("GET", "/v1/processes/{id}", { values: { id } }));
  }

  get id() { return this.record.id; }
  #ask(method, template, parts) { return this.client.call(method, template, { values: { id: this.id }, ...parts }); }

  /** What is known of it now, with the output so far. */
  async poll() {
    this.record = await this.#ask("GET", "/v1/processes/{id}");
    return new Result(this.record);
  }

  /** When it has ended, or after `timeout` as it is then: it goes on. */
  async wait(timeout, { signal } = {}) {
    for (;;) {
      this.record = await this.#ask("GET", "/v1/processes/{id}", { query: given({ wait: timeout ?? POLL }), signal });
      if (timeout !== undefined || ENDED.has(this.record.state)) return new Result(this.record);
    }
  }

  /** Ends it and all it started. */
  async kill() {
    this.record = await this.#ask("DELETE", "/v1/processes/{id}");
    return ENDED.has(this.record.state) ? new Result(this.record) : this.wait(KILL_WAIT);
  }

  async signal(sig, { tree = false } = {}) {
    return new Result(await this.#ask("POST", "/v1/processes/{id}/signal", { body: { sig, scope: tree ? "tree" : "process" } }));
  }

  async resize(rows, cols) { return new Result(await this.#ask("POST", "/v1/processes/{id}/resize", { body: { rows, cols } })); }

  /** Input, all of it, as fast as it is read. */
  async write(data, { eof = false, signal } = {}) {
    let rest = Buffer.from(data);
    while (rest.length > 0 || eof) {
      const piece = rest.subarray(0, STDIN_PIECE), more = rest.subarray(STDIN_PIECE);
      const body = { ...(piece.length ? { base64: piece.toString("base64") } : {}), ...(eof && more.length === 0 ? { eof: true } : {}) };
      try {
        await this.#ask("POST", "/v1/processes/{id}/stdin", { body, signal });
      } catch (error) {
        if (!(error instanceof Busy || error instanceof Conflict)) throw error;
        if ((await this.poll()).isOver) return;   // nobody reads it any more
        if (error instanceof Conflict) throw error;
        await pause(10, undefined, { signal });
        continue;
      }
      rest = more;
      if (rest.length === 0) return;
    }
  }

  closeStdin() { return this.write("", { eof: true }); }

  /** Its output as it comes, and its end. `after` is a `seq`: what comes behind it. */
  events({ after = 0, follow = true, signal } = {}) {
    const query = given({ follow: follow || undefined }), isLast = (event) => event.type === "end";
    return this.client.follow("GET", "/v1/processes/{id}/events", { values: { id: this.id }, after, query, isLast, signal });
  }

  /** Both streams, or one, as bytes, as they come. */
  async* output({ stream, ...options } = {}) {
    for await (const event of this.events(options)) {
      if (event.type === "output" && (!stream || event.stream === stream)) yield eventBytes(event);
    }
  }

  /** The same as a ReadableStream. */
  readable(stream, options = {}) {
    const pieces = this.output({ stream, ...options });
    return new ReadableStream({
      async pull(controller) {
        const { value, done } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(new Uint8Array(value));
      },
      async cancel() { await pieces.return(); },
    });
  }

  /** Its output as bytes: all of it, or FIRST to LAST. */
  log({ first, last } = {}) {
    const headers = first === undefined && last === undefined ? {} : { Range: `bytes=${first ?? 0}-${last ?? ""}` };
    return this.client.bytes("GET", "/v1/processes/{id}/log", { values: { id: this.id }, headers });
  }

  /** Of one that was started with a terminal; with all output so far, or what comes behind `after`. */
  async terminal({ after } = {}) {
    return new Terminal(this, await this.client.socket("GET", "/v1/processes/{id}/tty", { id: this.id }, { after }));
  }

  /** Hands out the output as it comes; returns at the end. */
  async pump({ onStdout, onStderr, signal }) {
    const heard = { stdout: onStdout, stderr: onStderr };
    for await (const event of this.events({ signal })) heard[event.stream]?.(eventBytes(event).toString());
    return this.poll();
  }

  async [Symbol.asyncDispose]() {
    try {
      await this.kill();
    } catch (error) {
      if (!(error instanceof CaissonError)) throw error; // it was over
    }
  }
}
