// For Mastra: a sandbox and a file system for its workspaces. `caissonFor(await import("@mastra/core/workspace"))` has both classes: they are
// made of Mastra's own base classes, of whichever version the program has.
import { StringDecoder } from "node:string_decoder";
import { CaissonError, Conflict, Exists, IsADirectory, NotADirectory, NotFound, PermissionDenied, Sandbox } from "../lib/index.js";
import { kill, listen } from "./run.js";

const APPEND = 'mkdir -p -- "$(dirname -- "$1")" && exec cat >>"$1"';
const PORT_WAIT = "20s", DEPTH_MAX = 64, LIST_MAX = 100000;

const milliseconds = (ms) => ms === undefined ? undefined : `${Math.ceil(ms)}ms`;
const texts = (env) => env && Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));

function processes({ ProcessHandle, SandboxProcessManager }) {
  class Handle extends ProcessHandle {
    exitCode = undefined;

    constructor(process, options) {
      super(options);
      this.process = process;
      this.pid = process.id;
      const decoders = { stdout: new StringDecoder(), stderr: new StringDecoder() };
      const emit = (name, text) => text && (name === "stdout" ? this.emitStdout(text) : this.emitStderr(text));
      this.ended = listen(process, { limit: 0, heard: (name, piece) => emit(name, decoders[name].write(piece)) }).then((done) => {
        for (const name of ["stdout", "stderr"]) emit(name, decoders[name].end());
        if (done.refusal) this.emitStderr(done.refusal);
        this.exitCode = done.status;
        return {
          success: done.result.ok, exitCode: done.status, stdout: this.stdout, stderr: this.stderr, executionTimeMs: done.result.ms,
          timedOut: done.result.state === "timeout", killed: done.result.state !== "exited",
        };
      });
      this.ended.catch(() => {}); // whoever waits hears it
    }

    wait() { return this.ended; }

    async kill() {
      if (this.exitCode !== undefined) return false;
      await kill(this.process);
      return true;
    }

    sendStdin(data) { return this.process.write(data); }
    closeStdin() { return this.process.closeStdin(); }
  }

  return class CaissonProcesses extends SandboxProcessManager {
    async spawn(command, { cwd, env, timeout, stdinMode, ...options } = {}) {
      const at = cwd === undefined || cwd.startsWith("/") ? cwd : `${this.sandbox.workingDirectory}/${cwd}`;
      const made = await this.sandbox.sandbox.spawn(command, {
        cwd: at, env: texts(env), timeout: milliseconds(timeout), stdin: stdinMode === "ignore" ? null : true,
      });
      const handle = new Handle(made, options);
      this._tracked.set(handle.pid, handle);
      return handle;
    }

    async list() {
      return [...this._tracked.values()].map(({ pid, command, exitCode }) => ({ pid, command, running: exitCode === undefined, exitCode }));
    }
  };
}

function sandboxOf(mastra) {
  const Processes = processes(mastra);
  let count = 0;
  return class CaissonSandbox extends mastra.MastraSandbox {
    name = "CaissonSandbox";
    provider = "caisson";
    status = "pending";

    /** What Sandbox() takes, and `id`, `env`, `onStart`, `onStop`, `onDestroy` of Mastra's. With a `key` the same one is found again. */
    constructor({ id = `caisson-${process.pid}-${++count}`, env, onStart, onStop, onDestroy, ...spec } = {}) {
      super({ name: "CaissonSandbox", env, onStart, onStop, onDestroy, processes: new Processes() });
      this.id = id;
      this.spec = spec;
      this.sandbox = undefined;
      this.networking = { getPortUrl: async (port) => (await this.port(port))?.openUrl ?? null };
    }

    async create() {
      this.sandbox = await Sandbox.create(this.spec);
      if (this.sandbox.record.state === "paused") await this.sandbox.resume();
      this.setWorkingDirectory((await this.sandbox.exec(["pwd"], { check: true })).stdout.trimEnd());
    }

    /** Frozen: what runs goes on with the next start. */
    async stop() {
      await this.sandbox?.pause();
      this.status = "stopped";
    }

    /** Ours, while it lives; else a new one is made. */
    async find() {
      const state = (await this.sandbox?.info().catch(() => undefined))?.state;
      return ["running", "paused"].includes(state) ? this.sandbox : undefined;
    }

    async connect(sandbox) { if (sandbox.record.state === "paused") await sandbox.resume(); }

    async destroy() {
      await this.sandbox?.close();
      this.sandbox = undefined;
      this.status = "destroyed";
    }

    /** A port with its URL and the headers that a request needs; null when nobody listens there. */
    async port(port) {
      const made = await this.sandbox?.port(port, { wait: PORT_WAIT });
      return made?.isReady ? made : null;
    }

    async writeFiles(files, { abortSignal } = {}) {
      await this.ensureRunning();
      for (const { path, content, mode } of files) {
        if (mode !== undefined) mastra.validateSandboxFileMode(mode);
        await this.sandbox.write(path, content, { mode: mode === undefined ? undefined : mode.toString(8).padStart(4, "0"), signal: abortSignal });
      }
    }

    getInstructions() {
      return `Commands run in a Linux sandbox behind walls, as an ordinary user, in ${this.workingDirectory ?? "its working folder"}.`;
    }

    getInfo() {
      return {
        id: this.id, name: this.name, provider: this.provider, status: this.status, createdAt: new Date(this.sandbox?.record?.created_ms ?? Date.now()),
        metadata: { sandboxId: this.sandbox?.record?.id, workingDirectory: this.workingDirectory },
      };
    }
  };
}

function filesystemOf(mastra) {
  const kinds = [[NotFound, "FileNotFoundError"], [IsADirectory, "IsDirectoryError"], [NotADirectory, "NotDirectoryError"], [Exists, "FileExistsError"]];
  function translate(error, path, operation) {
    if (!(error instanceof CaissonError)) return error;
    if (error instanceof PermissionDenied) return new mastra.PermissionError(path, operation);
    const kind = kinds.find(([one]) => error instanceof one);
    return kind ? new mastra[kind[1]](path) : error;
  }

  return class CaissonFilesystem extends mastra.MastraFilesystem {
    id;
    name = "CaissonFilesystem";
    provider = "caisson";
    status = "pending";

    /** The files of a CaissonSandbox: a relative path is taken from where its commands start. */
    constructor(sandbox, options = {}) {
      super({ ...options, name: "CaissonFilesystem" });
      this.id = `${sandbox.id}-files`;
      this.of = sandbox;
    }

    async init() { await this.of.ensureRunning(); }
    get basePath() { return this.of.workingDirectory; }
    resolveAbsolutePath(path) { return path.startsWith("/") ? path : `${this.basePath}/${path}`; }

    /** What `act` does with the sandbox; its errors as Mastra has them. */
    async #do(path, operation, act) {
      await this.ensureReady();
      await this.of.ensureRunning();
      try {
        return await act(this.of.sandbox);
      } catch (error) {
        throw translate(error, path, operation);
      }
    }

    readFile(path, { encoding } = {}) {
      return this.#do(path, "read", async (s) => { const data = await s.readBytes(path); return encoding ? data.toString(encoding) : data; });
    }

    writeFile(path, content, { recursive = true, overwrite = true, expectedMtime } = {}) {
      return this.#do(path, "write", async (s) => {
        const parent = path.replace(/\/?[^/]*$/, "") || (path.startsWith("/") ? "/" : ".");
        if (!recursive && !await s.exists(parent)) throw new mastra.DirectoryNotFoundError(parent);
        if (expectedMtime && await s.exists(path)) {
          const actual = new Date((await s.stat(path)).mtime_ms);
          if (actual.getTime() !== expectedMtime.getTime()) throw new mastra.StaleFileError(path, expectedMtime, actual);
        }
        await s.write(path, content, { onlyNew: !overwrite });
      });
    }

    appendFile(path, content) {
      return this.#do(path, "write", async (s) => {
        const done = await s.exec(["sh", "-c", APPEND, "sh", this.resolveAbsolutePath(path)], { stdin: Buffer.from(content) });
        const known = [[/is a directory/i, mastra.IsDirectoryError], [/not a directory|file exists/i, mastra.NotDirectoryError]];
        const kind = known.find(([words]) => words.test(done.stderr));
        if (!done.ok) throw kind ? new kind[1](path) : new mastra.PermissionError(path, "append");
      });
    }

    deleteFile(path, { force = false } = {}) {
      return this.#do(path, "delete", async (s) => {
        if (force && !await s.exists(path)) return;
        if ((await s.stat(path)).type === "directory") throw new mastra.IsDirectoryError(path);
        await s.delete(path);
      });
    }

    copyFile(from, to, { overwrite = true } = {}) { return this.#do(from, "copy", async (s) => { await s.copy(from, to, { overwrite }); }); }
    moveFile(from, to, { overwrite = true } = {}) { return this.#do(from, "move", async (s) => { await s.move(from, to, { overwrite }); }); }

    mkdir(path, { recursive = true } = {}) {
      return this.#do(path, "mkdir", async (s) => {
        if (!(await s.mkdir(path)).created && !recursive) throw new mastra.FileExistsError(path);
      });
    }

    rmdir(path, { recursive = false, force = false } = {}) {
      return this.#do(path, "rmdir", async (s) => {
        if (force && !await s.exists(path)) return;
        if ((await s.stat(path)).type !== "directory") throw new mastra.NotDirectoryError(path);
        await s.delete(path, { recursive }).catch((error) => { throw error instanceof Conflict ? new mastra.DirectoryNotEmptyError(path) : error; });
      });
    }

    readdir(path, { recursive = false, extension, maxDepth } = {}) {
      return this.#do(path, "read", async (s) => {
        const ends = extension && [extension].flat().map((one) => one.startsWith(".") ? one : `.${one}`);
        const found = await s.list(path, { depth: recursive ? maxDepth ?? DEPTH_MAX : 1, hidden: true, max: LIST_MAX });
        return found.filter((one) => one.type === "directory" || !ends || ends.some((end) => one.path.endsWith(end))).map((one) => ({
          name: one.path, type: one.type === "directory" ? "directory" : "file", size: one.type === "file" ? one.bytes : undefined,
          ...(one.type === "symlink" ? { isSymlink: true, symlinkTarget: one.target } : {}),
        }));
      });
    }

    exists(path) { return this.#do(path, "read", (s) => s.exists(path)); }

    stat(path) {
      return this.#do(path, "read", async (s) => {
        const one = await s.stat(path), at = new Date(one.mtime_ms);
        return { name: one.path.split("/").at(-1), path: one.path, type: one.type === "directory" ? "directory" : "file", size: one.bytes, createdAt: at, modifiedAt: at };
      });
    }
  };
}

/** CaissonSandbox and CaissonFilesystem, for the `@mastra/core/workspace` of the program. */
export function caissonFor(mastra) {
  return { CaissonSandbox: sandboxOf(mastra), CaissonFilesystem: filesystemOf(mastra) };
}
