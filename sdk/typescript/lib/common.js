// What all parts share: words of a request, and the results of commands.
import crypto from "node:crypto";
import { CommandError, CommandTimeout } from "./errors.js";

export const ENDED = new Set(["exited", "signaled", "timeout", "oom", "killed", "expired", "denied", "lost"]);
export const STDIN_PIECE = 32 << 10;
const STDIN_INLINE_MAX = 60 << 10;

Symbol.asyncDispose ??= Symbol.for("Symbol.asyncDispose"); // before Node 20

/** Of a request that is done once, however often it is sent. */
export const onceKey = () => crypto.randomUUID();

/** Without what was not said; names as the API has them. A number with a fraction is a duration in seconds. */
export function given(values) {
  const out = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const word = name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);
    out[word] = typeof value === "number" && !Number.isInteger(value) ? `${Math.round(value * 1000)}ms` : value;
  }
  return out;
}

/** A leading slash is a part of it: without, it is taken from the working folder. */
const quotePath = (path) => (path.startsWith("/") ? "%2F" : "") + path.replace(/^\//, "").split("/").map(encodeURIComponent).join("/");

export function target(template, values = {}, query = {}) {
  const text = template.replace(/\{(\w+)\}/g, (_, name) => (name === "path" ? quotePath(String(values[name])) : encodeURIComponent(values[name])));
  const pairs = [];
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === false) continue;
    pairs.push(value === true ? encodeURIComponent(name) : `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
  }
  return pairs.length ? `${text}?${pairs.join("&")}` : text;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A member of a body that may be any bytes. */
export function textOrBytes(name, value) {
  if (typeof value === "string") return { [name]: value };
  try {
    return { [name]: utf8.decode(value) };
  } catch {
    return { [`${name}_base64`]: Buffer.from(value).toString("base64") };
  }
}

/** The body, and the input that is sent behind it. */
export function execBody(cmd, stdin, options) {
  const body = { cmd: typeof cmd === "string" ? cmd : [...cmd], ...given(options) };
  if (typeof stdin === "string" || stdin instanceof Uint8Array) {
    const data = Buffer.from(stdin), text = textOrBytes("stdin", data).stdin;
    if (text !== undefined && data.length <= STDIN_INLINE_MAX) return [{ ...body, stdin: text }, undefined];
    return [{ ...body, stdin: true }, data];
  }
  return [stdin === undefined || stdin === null ? body : { ...body, stdin }, undefined];
}

/** What a command left. `ok`: it ended by itself with status 0. */
export class Result {
  constructor(record) { this.record = record; }
  get id() { return this.record.id; }
  get sandbox() { return this.record.sandbox; }
  get state() { return this.record.state; }
  get exitCode() { return this.record.exit_code; }
  get signal() { return this.record.signal; }
  get reason() { return this.record.reason; }
  get ok() { return this.state === "exited" && this.exitCode === 0; }
  get isOver() { return ENDED.has(this.state); }
  #bytes(stream) { return Buffer.from(this.record[stream] ?? "", this.record.encoding === "base64" ? "base64" : "utf8"); }
  get stdout() { return this.#bytes("stdout").toString(); }
  get stderr() { return this.#bytes("stderr").toString(); }
  get stdoutBytes() { return this.#bytes("stdout"); }
  get stderrBytes() { return this.#bytes("stderr"); }
  /** Bytes of output that are in the log and not here. */
  get dropped() { return this.record.bytes.dropped; }
  get cwd() { return this.record.cwd; }
  get ms() { return this.record.ms; }
  get seq() { return this.record.seq ?? 0; }
  get violations() { return this.record.violations ?? []; }
  /** Of a run with `collect`: what was brought back, by name. */
  get files() {
    return Object.fromEntries((this.record.collected ?? []).filter((one) => one.base64 !== undefined).map((one) => [one.path, Buffer.from(one.base64, "base64")]));
  }

  /** Of a run with `collect`: what nothing matches, cannot be read or is too large. */
  get missing() { return [...(this.record.missing ?? []), ...(this.record.collected ?? []).filter((one) => one.base64 === undefined).map((one) => one.path)]; }

  describe() {
    const how = { exited: `exit status ${this.exitCode}`, signaled: `ended by signal ${this.signal}` }[this.state] ?? this.state;
    const said = (this.stderr || this.stdout).trim().split("\n").pop();
    return how + (this.reason ? `: ${this.reason}` : "") + (said ? `: ${said}` : "");
  }

  /** Itself, when it is ok; else it throws CommandTimeout or CommandError. */
  check() {
    if (this.ok) return this;
    throw new (["timeout", "expired"].includes(this.state) ? CommandTimeout : CommandError)(this);
  }
}
