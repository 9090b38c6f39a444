// A workspace: a durable tree. It outlives every sandbox, and what a command did to it can be undone.
import { defaultClient } from "./client.js";
import { given } from "./common.js";
import { Conflict, Denied, SandboxUnavailable } from "./errors.js";
import { Runs, Sandbox } from "./sandbox.js";

export class Workspace extends Runs {
  _at = "/v1/workspaces/{id}";

  constructor(client, record) {
    super();
    this.client = client;
    this.record = record;
  }

  /** The one with this key, or a new one. */
  static async open(key, { client = defaultClient(), ...options } = {}) {
    return new Workspace(client, await client.call("PUT", "/v1/workspaces/{id}", { values: { id: key }, body: given(options) }));
  }

  /** One that is there, by id or key. */
  static async get(id, { client = defaultClient() } = {}) {
    return new Workspace(client, await client.call("GET", "/v1/workspaces/{id}", { values: { id } }));
  }

  async _id() { return this.record.id; }
  get id() { return this.record.id; }
  get key() { return this.record.key; }

  async #keep(method, template, parts) { return (this.record = await this._ask(method, template, parts)); }

  info({ usage = false } = {}) { return this.#keep("GET", "/v1/workspaces/{id}", { query: { usage } }); }
  /** Pins it, or gives it another time to live or another spec. */
  update(options) { return this.#keep("PATCH", "/v1/workspaces/{id}", { body: given(options) }); }
  /** To the trash, for a day; with `force` also when it has changes or sandboxes. */
  async remove({ force = false } = {}) { await this._ask("DELETE", "/v1/workspaces/{id}", { query: { force } }); }
  restoreTrash() { return this.#keep("POST", "/v1/workspaces/{id}/restore-trash"); }

  _start(body, signal) { return this._ask("POST", "/v1/workspaces/{id}/exec", { body, signal }); }
  /** A sandbox of its own that works on it. */
  sandbox(spec = {}) { return new Sandbox({ fs: "workspace:/work", ...spec, workspace: this.id, client: this.client }); }

  // ---- history

  /** More workspaces that begin as this one is, or was at a point. */
  async fork(n, options = {}) {
    const made = await this._ask("POST", "/v1/workspaces/{id}/fork", { body: given({ n, ...options }) });
    return made.workspaces.map((one) => new Workspace(this.client, one));
  }

  snapshot(label) { return this._ask("POST", "/v1/workspaces/{id}/snapshots", { body: given({ label }) }); }

  async #turn(method, template, body) {
    const turned = await this._ask(method, template, { body: given(body) });
    this.record = turned.workspace;
    return turned;
  }

  /** Back to what it was before the last command, or before `to` (px_…). */
  undo(options = {}) { return this.#turn("POST", "/v1/workspaces/{id}/undo", options); }
  redo(options = {}) { return this.#turn("POST", "/v1/workspaces/{id}/redo", options); }
  /** To any point of its history: cp_…, sn_…, px_… or base. */
  restore(to, options = {}) { return this.#turn("POST", "/v1/workspaces/{id}/restore", { to, ...options }); }
  /** What changed it, newest first. */
  history() { return this.client.pages("GET", "/v1/workspaces/{id}/history", "points", { values: { id: this.id } }); }

  /** Which files differ between two points, to now unless given. */
  changes({ base, to, path, plain, root } = {}) {
    return this._ask("GET", "/v1/workspaces/{id}/changes", { query: { format: "json", base, to, path, plain, root } });
  }

  /** The same as a patch that git applies. */
  async diff({ base, to, path } = {}) {
    return (await this.client.bytes("GET", "/v1/workspaces/{id}/changes", { values: { id: this.id }, query: { format: "patch", base, to, path } })).toString();
  }

  // ---- results

  commit(message, options = {}) { return this._ask("POST", "/v1/workspaces/{id}/commits", { body: given({ message, ...options }) }); }
  /** What another workspace, or a branch or commit, has. Conflicts are named, and then nothing was changed. */
  merge(other) { return this._ask("POST", "/v1/workspaces/{id}/merge", { body: { from: other instanceof Workspace ? other.id : other } }); }
  push(options = {}) { return this._ask("POST", "/v1/workspaces/{id}/push", { body: given(options) }); }
  /** Opens a pull or merge request for a branch that was pushed. */
  pr(title, options = {}) { return this._ask("POST", "/v1/workspaces/{id}/pulls", { body: given({ title, ...options }) }); }
  /** Its commits as a file: `bundle` or `patch`. */
  export(format = "bundle", { base } = {}) { return this._bytes("GET", "/v1/workspaces/{id}/export", { query: { format, base } }); }
  /** What was promoted of it, as the ledger attests it: an in-toto statement in a DSSE envelope. */
  attest({ record } = {}) { return this._ask("GET", "/v1/workspaces/{id}/attestation", { query: { record } }); }
  /** Some of its files as they were at a point, as tar. */
  take(paths, { at } = {}) { return this._bytes("POST", "/v1/workspaces/{id}/take", { body: given({ at, paths }) }); }

  /** Three versions of a file made one, by git. */
  mergeFile(base, ours, theirs) {
    const [b, o, t] = [base, ours, theirs].map((one) => Buffer.from(one).toString("base64"));
    return this._ask("POST", "/v1/workspaces/{id}/merge-file", { body: { base: b, ours: o, theirs: t } });
  }

  /** Its change in a folder here, whole or not at all, by the program `caisson`. */
  async apply(to, { allowExec = [], dryRun = false, ask = false, from, at } = {}) {
    const done = await this.client.cli("apply", this.id, "--to", to, "--json", dryRun ? "--dry-run" : "--yes",
      ...allowExec.flatMap((one) => ["--allow-exec", one]), ...(ask ? ["--ask"] : []), ...(from ? ["--from", from] : []), ...(at ? ["--at", at] : []));
    let report;
    try {
      report = JSON.parse(done.stdout);
    } catch {
      throw new SandboxUnavailable(`apply: ${done.stderr.trim() || "nothing was said"}`);
    }
    if (dryRun || done.status === 0) return report;
    const names = (list) => (list ?? []).map((one) => one.path).join(", ");
    if (report.conflicts?.length) throw new Conflict(`apply: conflicts: ${names(report.conflicts)}`, { problem: { ...report, code: "conflict" } });
    if (report.refused?.length) throw new Denied(`apply: these execute later and were not allowed: ${names(report.refused)}`, { problem: { ...report, code: "denied" } });
    throw new SandboxUnavailable(`apply: ${done.stderr.trim() || "nothing was said"}`);
  }
}
