// The daemon: everything that is not of one sandbox, workspace or process.
import { setTimeout as pause } from "node:timers/promises";
import { findAddress, runCli } from "./address.js";
import { execBody, given, onceKey, Result, target } from "./common.js";
import { ApprovalRequired, Invalid } from "./errors.js";
import { seal } from "./seal.js";
import { readAll, readProblem, Wire } from "./wire.js";

const FOLLOW_PAUSE_MS = 100;

/** Lines of an answer as they come. */
export async function* linesOf(response) {
  let rest = "";
  response.setEncoding("utf8");
  for await (const piece of response) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.trim()) yield line;
  }
}

export class Client {
  constructor({ socket, host, token, program } = {}) {
    this.wire = new Wire(findAddress({ socket, host, token }), program);
  }

  close() { this.wire.close(); }

  /** Any request of docs/api.md. The answer is a good one; its body is still to be read. */
  async open(method, template, { values, query, body, data, headers, signal } = {}) {
    const sent = { ...headers };
    if (method === "POST") {
      sent["Idempotency-Key"] ??= onceKey();
      if (body === undefined && data === undefined) body = {};
    }
    if (body !== undefined) {
      data = Buffer.from(JSON.stringify(body));
      sent["Content-Type"] ??= "application/json";
    } else if (typeof data === "string" || (data instanceof Uint8Array && !Buffer.isBuffer(data))) {
      data = Buffer.from(data);
    }
    const isConditional = Object.keys(sent).some((name) => name.toLowerCase().startsWith("if-"));
    const response = await this.wire.ask(method, target(template, values, query), sent, data, method !== "PATCH" && !isConditional, signal);
    if (response.statusCode >= 400) throw await readProblem(response);
    return response;
  }

  /** Any request whose answer is bytes. */
  async bytes(method, template, parts) { return readAll(await this.open(method, template, parts)); }

  /** Any request whose answer is JSON, or nothing. */
  async call(method, template, parts) {
    const response = await this.open(method, template, parts);
    const text = (await readAll(response)).toString();
    const answer = text ? JSON.parse(text) : undefined;
    if (response.statusCode === 202 && answer?.approval) {
      throw new ApprovalRequired(`a person is asked: ${answer.approval.what}`, { status: 202, problem: { ...answer, code: "approval_required" } });
    }
    return answer;
  }

  /** All pages of a list. */
  async pages(method, template, member, { values, query } = {}) {
    const found = [];
    for (let cursor; ;) {
      const page = await this.call(method, template, { values, query: { ...query, cursor } });
      found.push(...page[member]);
      cursor = page.next;
      if (cursor === null || cursor === undefined) return found;
    }
  }

  /** Objects of a stream as they come. A connection that breaks is made again behind the last `seq` (or `rev`) that was seen. */
  async* follow(method, template, { values, query = {}, after = 0, isLast = () => false, signal } = {}) {
    for (;;) {
      let response;
      try {
        response = await this.open(method, template, { values, query: { ...query, after }, headers: { Accept: "application/x-ndjson" }, signal });
        for await (const line of linesOf(response)) {
          const one = JSON.parse(line);
          after = Math.max(after, one.seq ?? one.rev ?? 0);
          yield one;
          if (isLast(one)) return;
        }
        if (!query.follow) return;
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        if (!["ECONNRESET", "EPIPE"].includes(error.code)) throw error;
      } finally {
        response?.destroy();
      }
      await pause(FOLLOW_PAUSE_MS, undefined, { signal });
    }
  }

  socket(method, template, values, query) { return this.wire.socket(target(template, values, query)); }

  /** A command of the program `caisson` on the same daemon, for what is done on the caller's side. */
  cli(...words) { return runCli(this.wire.address, this.wire.program, words); }

  // ---- the daemon

  health() { return this.call("GET", "/v1/health"); }
  openapi() { return this.call("GET", "/v1/openapi.json"); }
  async metrics() { return (await this.bytes("GET", "/metrics")).toString(); }
  async backends() { return (await this.call("GET", "/v1/backends")).backends; }
  quota() { return this.call("GET", "/v1/quota"); }

  /** The ledger, oldest first. */
  events({ after = 0, follow, kind, sandbox, workspace, process, since, limit, signal } = {}) {
    return this.follow("GET", "/v1/events", { after, signal, query: given({ follow, kind, sandbox, workspace, process, since, limit }) });
  }

  gc({ dryRun = false } = {}) { return this.call("POST", "/v1/gc", { body: { dry_run: dryRun } }); }
  fsck({ repair = false } = {}) { return this.call("POST", "/v1/fsck", { body: { repair } }); }

  // ---- tokens

  createToken(options = {}) { return this.call("POST", "/v1/tokens", { body: given(options) }); }
  tokens() { return this.pages("GET", "/v1/tokens", "tokens"); }
  async revokeToken(id) { await this.call("DELETE", "/v1/tokens/{id}", { values: { id } }); }

  // ---- the package cache

  cache() { return this.pages("GET", "/v1/cache", "entries"); }
  cacheGc(options = {}) { return this.call("POST", "/v1/cache/gc", { body: given(options) }); }
  cacheVerify() { return this.call("POST", "/v1/cache/verify"); }

  // ---- secrets

  /** Seals the value here, to the gate's key, and stores it. */
  async setSecret(name, value, { hosts, ...binding }) {
    const sealing = await this.call("GET", "/v1/sealing");
    const bind = JSON.stringify({ hosts, ...given(binding) });
    const aad = Buffer.from([sealing.tenant, name, bind].join("\0"));
    const sealed = seal(Buffer.from(sealing.key, "base64"), Buffer.from(sealing.info), aad, Buffer.from(value)).toString("base64");
    return this.call("PUT", "/v1/secrets/{name}", { values: { name }, body: { bind, sealed } });
  }

  async secrets() { return (await this.call("GET", "/v1/secrets")).secrets; }
  secret(name) { return this.call("GET", "/v1/secrets/{name}", { values: { name } }); }
  async deleteSecret(name) { await this.call("DELETE", "/v1/secrets/{name}", { values: { name } }); }

  // ---- approvals

  /** What waits for a person (`state: "pending"`), and what was decided, newest first. */
  approvals({ state, kind, sandbox, workspace } = {}) {
    return this.pages("GET", "/v1/approvals", "approvals", { query: { state, kind, sandbox, workspace } });
  }

  /** Those that are there, then every change, as it comes. `after` is a `rev`. */
  followApprovals({ after = 0, kind, sandbox, workspace, signal } = {}) {
    return this.follow("GET", "/v1/approvals", { after, signal, query: given({ follow: true, kind, sandbox, workspace }) });
  }

  /** One question; with `wait` when it is decided. */
  approval(id, { wait } = {}) { return this.call("GET", "/v1/approvals/{id}", { values: { id }, query: given({ wait }) }); }

  /** `allow` or `deny`, for this once, or for the sandbox or workspace and so long. A question whose `detail` has `cut`
   * is allowed only with `seen`, the SHA-256 of `detail.what` as it was shown to who decides. */
  decide(id, decision, { scope, lasts, note, seen } = {}) {
    return this.call("POST", "/v1/approvals/{id}", { values: { id }, body: given({ decision, scope, note, seen, for: lasts }) });
  }

  // ---- images

  /** A tar of a root file system, or with `oci` of an OCI layout: bytes, or a Readable. */
  importImage(name, archive, { oci = false, ref, replace } = {}) {
    const type = oci ? "application/vnd.oci.image.layout.v1+tar" : "application/x-tar";
    return this.call("PUT", "/v1/images/{name}", { values: { name }, data: archive, query: { ref, replace }, headers: { "Content-Type": type } });
  }

  /** Of the root that a workspace keeps (checkpoint: all). */
  makeImage(name, workspace, options = {}) { return this.call("POST", "/v1/images", { body: given({ name, workspace, ...options }) }); }
  async images() { return (await this.call("GET", "/v1/images")).images; }
  image(name) { return this.call("GET", "/v1/images/{name}", { values: { name } }); }
  async deleteImage(name) { await this.call("DELETE", "/v1/images/{name}", { values: { name } }); }

  // ---- repositories

  addRepo(key, url, { wait, ...options } = {}) {
    return this.call("PUT", "/v1/repos/{id}", { values: { id: key }, query: given({ wait }), body: given({ url, ...options }) });
  }

  repos() { return this.pages("GET", "/v1/repos", "repos"); }
  repo(id) { return this.call("GET", "/v1/repos/{id}", { values: { id } }); }
  refreshRepo(id, { wait } = {}) { return this.call("POST", "/v1/repos/{id}/refresh", { values: { id }, query: given({ wait }) }); }
  async deleteRepo(id) { await this.call("DELETE", "/v1/repos/{id}", { values: { id } }); }

  // ---- lists

  sandboxes({ label } = {}) { return this.pages("GET", "/v1/sandboxes", "sandboxes", { query: { label } }); }
  workspaces({ parent, trash, usage } = {}) { return this.pages("GET", "/v1/workspaces", "workspaces", { query: { parent, trash, usage } }); }
  processes({ sandbox, label, state } = {}) { return this.pages("GET", "/v1/processes", "processes", { query: { sandbox, label, state } }); }

  // ---- one shot

  /** Makes a sandbox, runs one command in it, and removes it; `files` are there before it, what `collect` matches is brought back. */
  async run(cmd, { stdin, check = false, signal, files, ...options } = {}) {
    const given_ = files && Object.fromEntries(Object.entries(files).map(([path, data]) =>
      [path, typeof data === "string" ? data : { base64: Buffer.from(data).toString("base64") }]));
    const [body, later] = execBody(cmd, stdin, { ...options, files: given_ });
    if (later) throw new Invalid("stdin: text of at most 60 KiB here; a Sandbox takes more");
    const result = new Result(await this.call("POST", "/v1/run", { body, signal }));
    return check ? result.check() : result;
  }
}

let shared;
/** The one that is used unless another is given. */
export const defaultClient = () => (shared ??= new Client());
