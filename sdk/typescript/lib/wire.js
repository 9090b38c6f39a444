// HTTP as the daemon speaks it, over its socket or TCP: connections that are kept, requests that are repeated when that does no harm.
import crypto from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { hostText, mayStart, startDaemon } from "./address.js";
import { errorOf, SandboxUnavailable } from "./errors.js";
import { lend } from "./lend.js";

const REPEAT_MS = 15000; // as long as a daemon needs to come back
const PAUSE_MAX_MS = 1000;
const BROKEN = new Set(["ECONNRESET", "ECONNREFUSED", "EPIPE", "ENOENT", "ECONNABORTED"]);

export async function readAll(response) {
  const pieces = [];
  try {
    for await (const piece of response) pieces.push(piece);
  } catch (error) {
    if (!BROKEN.has(error.code)) throw error;
    throw new SandboxUnavailable(`the connection ends in the middle of an answer: ${error.message}`, { cause: error });
  }
  return Buffer.concat(pieces);
}

export async function readProblem(response) {
  let problem = {};
  try {
    problem = JSON.parse((await readAll(response)).toString()) ?? {};
  } catch { /* an answer of somebody between us */ }
  return errorOf(response.statusCode, problem);
}

export class Wire {
  constructor(address, program) {
    this.address = address;
    this.program = program;
    this.agent = new http.Agent({ keepAlive: true, maxFreeSockets: 8 });
  }

  close() { this.agent.destroy(); }

  options(method, path, headers) {
    const { tcp, token } = this.address;
    return {
      ...(tcp ? { host: tcp.host, port: tcp.port } : { socketPath: this.address.path }), method, path, agent: this.agent,
      headers: { Host: tcp ? hostText(tcp) : "localhost", ...(token ? { Authorization: `Bearer ${token}` } : {}), ...headers },
    };
  }

  once(method, path, headers, body, signal) {
    return new Promise((resolve, reject) => {
      const isStream = body !== undefined && !Buffer.isBuffer(body);
      const length = isStream ? {} : body ? { "Content-Length": body.length } : method === "GET" || method === "DELETE" ? {} : { "Content-Length": 0 };
      const request = http.request({ ...this.options(method, path, { ...headers, ...length }), signal });
      let isAnswered = false;
      request.on("response", (response) => {
        isAnswered = true;
        resolve(response);
      });
      request.on("error", (error) => {
        if (!isAnswered) reject(Object.assign(error, { isReused: request.reusedSocket }));
      });
      if (isStream) {
        body.on("error", (error) => request.destroy(error));
        body.pipe(request);
      } else {
        request.end(body);
      }
    });
  }

  /** The answer to a request, its body unread. Repeated when nobody answers and twice does no harm. */
  async ask(method, path, headers, body, canRepeat, signal) {
    const until = Date.now() + REPEAT_MS;
    const isWhole = body === undefined || Buffer.isBuffer(body);
    for (let ms = 20; ; ms = Math.min(ms * 2, PAUSE_MAX_MS)) {
      signal?.throwIfAborted();
      let isSent = true;
      try {
        const lent = await lend(this.address, path, body);
        let response;
        try {
          response = await this.once(method, path, headers, body, signal);
        } finally {
          lent?.destroy();
        }
        if (response.statusCode !== 503 || Date.now() > until || !isWhole) return response;
        const said = await readProblem(response);
        if (!said.retrySafe) throw said;
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        if (!BROKEN.has(error.code)) throw error;
        isSent = error.syscall !== "connect";
        const isAbsent = !isSent && (error.code === "ENOENT" || error.code === "ECONNREFUSED");
        if (isAbsent && mayStart(this.address) && Date.now() <= until) {
          await startDaemon(this.address, this.program);
          continue;
        }
        const isHopeless = isAbsent && this.address.isNamed && this.address.path && !fs.existsSync(this.address.path);
        if (!isWhole || (isSent && !canRepeat) || Date.now() > until || isHopeless) {
          throw new SandboxUnavailable(`the daemon does not answer: ${error.message}`, { problem: { retry_safe: !isSent }, cause: error });
        }
        if (error.isReused) continue; // it was closed while nobody looked
      }
      await pause(ms, undefined, { signal });
    }
  }

  /** A WebSocket of the daemon's; the first request of the program may have to start it. */
  async socket(path) {
    await readAll(await this.ask("GET", "/v1/health", {}, undefined, true));
    return new Promise((resolve, reject) => {
      const request = http.request({ ...this.options("GET", path, {
        Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": crypto.randomBytes(16).toString("base64"),
      }), agent: false });
      request.on("upgrade", (response, socket, head) => resolve(new WebSocket(socket, head)));
      request.on("response", (response) => readProblem(response).then(reject, reject));
      request.on("error", reject);
      request.end();
    });
  }
}

/** The first frame of these bytes, when all of it is there. */
function frameOf(have) {
  if (have.length < 2) return undefined;
  const short = have[1] & 127, at = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (have.length < at) return undefined;
  const n = short === 126 ? have.readUInt16BE(2) : short === 127 ? Number(have.readBigUInt64BE(2)) : short;
  return have.length < at + n ? undefined : { opcode: have[0] & 15, data: have.subarray(at, at + n), end: at + n };
}

/** RFC 6455, the client's half: bytes are input and output, texts are JSON. */
class WebSocket {
  constructor(socket, head) {
    this.socket = socket;
    this.have = head;
    this.pieces = undefined;
    socket.on("error", () => {}); // whoever reads or sends is told; nobody else needs to be there for it
  }

  send(data, opcode = 2) {
    const body = Buffer.from(data);
    const mask = crypto.randomBytes(4);
    const size = body.length < 126 ? Buffer.from([0x80 | body.length]) : body.length < 65536 ? Buffer.alloc(3) : Buffer.alloc(9);
    if (size.length === 3) {
      size[0] = 0xfe;
      size.writeUInt16BE(body.length, 1);
    } else if (size.length === 9) {
      size[0] = 0xff;
      size.writeBigUInt64BE(BigInt(body.length), 1);
    }
    const masked = Buffer.from(body.map((byte, i) => byte ^ mask[i & 3]));
    return new Promise((resolve, reject) => {
      this.socket.write(Buffer.concat([Buffer.from([0x80 | opcode]), size, mask, masked]), (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Messages: a Buffer, or a string. Whoever stops and asks again goes on where he was. */
  async* messages() {
    for (this.pieces ??= this.socket[Symbol.asyncIterator](); ;) {
      for (let frame = frameOf(this.have); frame; frame = frameOf(this.have)) {
        this.have = this.have.subarray(frame.end);
        if (frame.opcode === 8) return;
        if (frame.opcode === 9) await this.send(frame.data, 10);
        else if (frame.opcode === 2) yield frame.data;
        else if (frame.opcode === 1) yield frame.data.toString();
      }
      const { value, done } = await this.pieces.next();
      if (done) return;
      this.have = Buffer.concat([this.have, value]);
    }
  }

  close() { this.socket.destroy(); }
}
