// Files of a sandbox or a workspace. A path without a slash in front is taken from where commands start.
import { given, textOrBytes } from "./common.js";
import { linesOf } from "./client.js";
import { NotADirectory, NotFound } from "./errors.js";

const conditions = ({ ifHash, onlyNew } = {}) => ({ ...(ifHash ? { "If-Match": `"${ifHash}"` } : {}), ...(onlyNew ? { "If-None-Match": "*" } : {}) });

/** `{at}` stands for /v1/sandboxes/{id} or /v1/workspaces/{id}. */
export class Files {
  async _parts(template, { path, ...parts } = {}) {
    return [template.replace("{at}", this._at), { ...parts, values: { id: await this._id(), ...(path === undefined ? {} : { path }), ...parts.values } }];
  }

  async _ask(method, template, parts) { return this.client.call(method, ...await this._parts(template, parts)); }
  async _bytes(method, template, parts) { return this.client.bytes(method, ...await this._parts(template, parts)); }

  /** All of it, or the bytes FIRST to LAST. */
  readBytes(path, { first, last, signal } = {}) {
    const headers = first === undefined && last === undefined ? {} : { Range: `bytes=${first ?? 0}-${last ?? ""}` };
    return this._bytes("GET", "{at}/files/{path}", { path, query: { relative: true }, headers, signal });
  }

  async read(path, options) { return (await this.readBytes(path, options)).toString(); }

  /** Lines FIRST to LAST, with the hash of the file and where to go on. */
  readLines(path, first = 1, last = undefined) {
    return this._ask("GET", "{at}/files/{path}", { path, query: { relative: true, lines: `${first}-${last ?? ""}` } });
  }

  /** All of it, atomically; parents are made. `content` may be a Readable. */
  write(path, content, { mode, signal, ...options } = {}) {
    return this._ask("PUT", "{at}/files/{path}", { path, data: content, headers: conditions(options), query: { relative: true, mode }, signal });
  }

  /** Replaces what stands there exactly, once unless `all`; line ends may differ. */
  edit(path, old, text, { all = false, ...options } = {}) {
    return this.editMany(path, [{ ...textOrBytes("old", old), ...textOrBytes("new", text), ...(all ? { all } : {}) }], options);
  }

  /** Several replacements {old, new, all?}, one after the other. */
  editMany(path, edits, options) {
    return this._ask("PATCH", "{at}/files/{path}", { path, query: { relative: true }, headers: conditions(options), body: { edits } });
  }

  /** Whole lines behind this one; 0 is the top. */
  insert(path, line, text, options) {
    return this._ask("PATCH", "{at}/files/{path}", { path, query: { relative: true }, headers: conditions(options), body: { insert: { line, text } } });
  }

  delete(path, { recursive = false, ...options } = {}) {
    return this._ask("DELETE", "{at}/files/{path}", { path, query: { relative: true, recursive }, headers: conditions(options) });
  }

  stat(path, { hash = false } = {}) { return this._ask("GET", "{at}/files/{path}", { path, query: { relative: true, stat: true, hash } }); }

  async exists(path) {
    try {
      await this.stat(path);
      return true;
    } catch (error) {
      if (error instanceof NotFound || error instanceof NotADirectory) return false;
      throw error;
    }
  }

  async list(path = ".", { depth, hidden, max } = {}) {
    return (await this._ask("GET", "{at}/files/{path}", { path, query: { relative: true, list: true, depth, hidden, max } })).entries;
  }

  /** Changes below a folder, as they happen; the first event is `ready`. An event `overflow` means: look again. */
  async* watch(path = ".", { recursive = false, signal } = {}) {
    const parts = { path, query: { relative: true, watch: true, recursive }, signal };
    const response = await this.client.open("GET", ...await this._parts("{at}/files/{path}", parts));
    try {
      for await (const line of linesOf(response)) yield JSON.parse(line);
    } finally {
      response.destroy();
    }
  }

  move(from, to, { overwrite = false } = {}) {
    return this._ask("POST", "{at}/files:move", { body: { ...textOrBytes("from", from), ...textOrBytes("to", to), overwrite } });
  }

  copy(from, to, { overwrite = false } = {}) {
    return this._ask("POST", "{at}/files:copy", { body: { ...textOrBytes("from", from), ...textOrBytes("to", to), overwrite } });
  }

  mkdir(path, options = {}) { return this._ask("POST", "{at}/files:mkdir", { body: { path, ...given(options) } }); }

  /** Operations {op: read|write|edit|delete|stat, path, …} in order; each has a result or an error. */
  batch(operations, { atomic = false, path } = {}) {
    return this._ask("POST", "{at}/files:batch", { body: operations, query: { atomic, path } });
  }

  /** A unified diff or a V4A patch, whole or not at all. */
  patch(patch, { folder } = {}) {
    return this._ask("POST", "{at}/patch", { data: patch, query: { path: folder }, headers: { "Content-Type": "text/plain" } });
  }

  grep(pattern, { path, ...options } = {}) {
    return this._ask("POST", "{at}/grep", { body: { ...textOrBytes("pattern", pattern), ...given({ path, ...options }) } });
  }

  glob(pattern, { path, ...options } = {}) {
    return this._ask("POST", "{at}/glob", { body: { ...textOrBytes("pattern", pattern), ...given({ path, ...options }) } });
  }

  /** A folder as tar. */
  download(path = ".") { return this._bytes("GET", "{at}/archive", { query: { path, format: "tar" } }); }

  /** Unpacks a tar archive: bytes, or a Readable. */
  upload(archive, path = ".") {
    return this._ask("PUT", "{at}/archive", { query: { path }, data: archive, headers: { "Content-Type": "application/x-tar" } });
  }
}
