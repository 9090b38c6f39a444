// Caisson: a place where a coding agent works, behind walls.
/// <reference types="node" />
import type { Readable } from "node:stream";
import type * as models from "./models.js";

export type { models };
/** "10m", or seconds. */
export type Duration = string | number;
/** "4g", or bytes. */
export type Size = string | number;
/** A text goes to a shell, a list is run as it is. */
export type Command = string | readonly string[];
export type Bytes = string | Uint8Array;

// ---- the daemon

export interface ClientOptions {
  /** The path of its socket. */
  socket?: string;
  /** HOST:PORT, with a token. */
  host?: string;
  token?: string;
  /** The program `caisson`, which starts it. */
  program?: string;
}

export interface Parts {
  values?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  data?: Bytes | Readable;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface RunOptions {
  spec?: Spec;
  /** What is there before the command, by name. */
  files?: Record<string, Bytes>;
  /** Patterns of what is brought back: `result.files`. */
  collect?: string[];
  /** Patterns of files that come although they would execute on the host later; others of that kind stay and are in `missing`. */
  allow_exec?: string[];
  stdin?: string;
  cwd?: string;
  env?: Record<string, string>;
  user?: string;
  timeout?: Duration;
  output?: models.OutputAsk;
  label?: string;
  check?: boolean;
  signal?: AbortSignal;
}

/** What a secret is bound to, besides its hosts. */
export interface Binding {
  hosts: string[];
  inject?: string;
  format?: string;
  methods?: string[];
  paths?: string[];
  git?: string[];
  push?: string[];
  workspaces?: string[];
  env?: string;
  ttl?: Duration;
}

/** A daemon. Without options the one of the environment, else the user's own, which is started when it is needed. */
export class Client {
  constructor(options?: ClientOptions);
  close(): void;
  /** Any request of docs/api.md whose answer is JSON, or nothing. */
  call(method: string, template: string, parts?: Parts): Promise<any>;
  /** Any request whose answer is bytes. */
  bytes(method: string, template: string, parts?: Parts): Promise<Buffer>;
  /** A command of the program `caisson` on the same daemon. */
  cli(...words: string[]): Promise<{ status: number; stdout: string; stderr: string }>;

  health(): Promise<models.Health>;
  openapi(): Promise<Record<string, unknown>>;
  metrics(): Promise<string>;
  backends(): Promise<models.Backend[]>;
  quota(): Promise<models.Quota>;
  /** The ledger, oldest first. */
  events(options?: {
    after?: number; follow?: boolean; kind?: string; sandbox?: string; workspace?: string; process?: string; since?: number; limit?: number;
    signal?: AbortSignal;
  }): AsyncGenerator<models.Record>;
  gc(options?: { dryRun?: boolean }): Promise<models.Gc>;
  fsck(options?: { repair?: boolean }): Promise<models.Fsck>;

  createToken(options?: { name?: string; scope?: string | string[]; ttl?: Duration; tenant?: string }): Promise<models.TokenMade>;
  tokens(): Promise<models.Token[]>;
  revokeToken(id: string): Promise<void>;

  cache(): Promise<models.CacheEntry[]>;
  cacheGc(options?: { max?: Size; olderThan?: Duration }): Promise<models.CacheGc>;
  cacheVerify(): Promise<models.CacheVerified>;

  /** Seals the value here, to the gate's key, and stores it. */
  setSecret(name: string, value: Bytes, binding: Binding): Promise<models.Secret>;
  secrets(): Promise<models.Secret[]>;
  secret(name: string): Promise<models.Secret>;
  deleteSecret(name: string): Promise<void>;

  /** What waits for a person (`state: "pending"`), and what was decided, newest first. */
  approvals(options?: { state?: string; kind?: string; sandbox?: string; workspace?: string }): Promise<models.Approval[]>;
  /** Those that are there, then every change, as it comes. `after` is a `rev`. */
  followApprovals(options?: { after?: number; kind?: string; sandbox?: string; workspace?: string; signal?: AbortSignal }): AsyncGenerator<models.Approval>;
  /** One question; with `wait` when it is decided. */
  approval(id: string, options?: { wait?: Duration }): Promise<models.Approval>;
  decide(id: string, decision: "allow" | "deny", options?: { scope?: "once" | "sandbox" | "workspace"; lasts?: Duration; note?: string; seen?: string }): Promise<models.Approval>;

  /** A tar of a root file system, or with `oci` of an OCI layout. */
  importImage(name: string, archive: Uint8Array | Readable, options?: { oci?: boolean; ref?: string; replace?: boolean }): Promise<models.Image>;
  makeImage(name: string, workspace: string, options?: { point?: string; replace?: boolean }): Promise<models.Image>;
  images(): Promise<models.Image[]>;
  image(name: string): Promise<models.Image>;
  deleteImage(name: string): Promise<void>;

  addRepo(key: string, url: string, options?: { cred?: string; refs?: string[]; refresh?: string; wait?: Duration }): Promise<models.Repo>;
  repos(): Promise<models.Repo[]>;
  repo(id: string): Promise<models.Repo>;
  refreshRepo(id: string, options?: { wait?: Duration }): Promise<models.Repo>;
  deleteRepo(id: string): Promise<void>;

  sandboxes(options?: { label?: string }): Promise<models.Sandbox[]>;
  workspaces(options?: { parent?: string; trash?: boolean; usage?: boolean }): Promise<models.Workspace[]>;
  processes(options?: { sandbox?: string; label?: string; state?: string }): Promise<models.Process[]>;

  /** Makes a sandbox, runs one command in it, and removes it. */
  run(cmd: Command, options?: RunOptions): Promise<Result>;
}

/** The one that is used unless another is given. */
export function defaultClient(): Client;

// ---- commands

/** What a command left. `ok`: it ended by itself with status 0. */
export class Result {
  constructor(record: models.Process);
  readonly record: models.Process;
  readonly id: string;
  readonly sandbox: string;
  readonly state: models.Process["state"];
  readonly exitCode: number | null;
  readonly signal: number | null;
  readonly reason: string | null;
  readonly ok: boolean;
  readonly isOver: boolean;
  readonly stdout: string;
  readonly stderr: string;
  readonly stdoutBytes: Buffer;
  readonly stderrBytes: Buffer;
  /** Bytes of output that are in the log and not here. */
  readonly dropped: number;
  readonly cwd: string | null;
  readonly ms: number;
  readonly seq: number;
  readonly violations: models.Violation[];
  /** Of a run with `collect`: what was brought back, by name. */
  readonly files: Record<string, Buffer>;
  readonly missing: string[];
  describe(): string;
  /** Itself, when it is ok; else it throws CommandTimeout or CommandError. */
  check(): this;
}

export interface SpawnOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** All of its input; true: it comes later, by write(). */
  stdin?: Bytes | boolean | null;
  user?: string;
  /** Then it and all it started is killed. */
  timeout?: Duration;
  /** Run it in the shell of this name, which lives on. */
  shell?: string;
  background?: "keep" | "kill";
  /** What becomes of the sandbox when it has ended. */
  at_end?: "keep" | "stop" | "delete";
  label?: string;
  output?: models.OutputAsk;
  tty?: boolean;
  rows?: number;
  cols?: number;
}

export interface ExecOptions extends Omit<SpawnOptions, "tty" | "rows" | "cols"> {
  stdin?: Bytes | null;
  /** Returns after that long although it still runs. */
  wait?: Duration;
  /** Throws when it is not ok. */
  check?: boolean;
  /** Whoever aborts it ends the command. */
  signal?: AbortSignal;
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
}

export class Process {
  constructor(client: Client, record: models.Process);
  static get(id: string, options?: { client?: Client }): Promise<Process>;
  record: models.Process;
  readonly id: string;
  poll(): Promise<Result>;
  /** When it has ended, or after `timeout` as it is then: it goes on. */
  wait(timeout?: Duration, options?: { signal?: AbortSignal }): Promise<Result>;
  kill(): Promise<Result>;
  signal(sig: string | number, options?: { tree?: boolean }): Promise<Result>;
  resize(rows: number, cols: number): Promise<Result>;
  write(data: Bytes, options?: { eof?: boolean; signal?: AbortSignal }): Promise<void>;
  closeStdin(): Promise<void>;
  /** Its output as it comes, and its end. `after` is a `seq`: what comes behind it. */
  events(options?: { after?: number; follow?: boolean; signal?: AbortSignal }): AsyncGenerator<models.Event>;
  output(options?: { stream?: "stdout" | "stderr"; after?: number; follow?: boolean; signal?: AbortSignal }): AsyncGenerator<Buffer>;
  readable(stream?: "stdout" | "stderr", options?: { after?: number; signal?: AbortSignal }): ReadableStream<Uint8Array>;
  log(options?: { first?: number; last?: number }): Promise<Buffer>;
  terminal(options?: { after?: number }): Promise<Terminal>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The terminal of a process: what is typed goes in, what is shown comes out. */
export class Terminal implements AsyncIterable<Buffer> {
  readonly process: Process;
  /** At the end. */
  result: Result | undefined;
  send(data: Bytes): Promise<void>;
  resize(rows: number, cols: number): Promise<void>;
  eof(): Promise<void>;
  close(): void;
  [Symbol.asyncIterator](): AsyncGenerator<Buffer>;
  [Symbol.asyncDispose](): Promise<void>;
}

// ---- files

export interface Condition {
  /** Only when the file has this hash. */
  ifHash?: string;
}

/** A path without a slash in front is taken from where commands start. */
declare abstract class Files {
  read(path: string, options?: { signal?: AbortSignal }): Promise<string>;
  readBytes(path: string, options?: { first?: number; last?: number; signal?: AbortSignal }): Promise<Buffer>;
  readLines(path: string, first?: number, last?: number): Promise<models.FileLines>;
  write(path: string, content: Bytes | Readable, options?: Condition & { mode?: string; onlyNew?: boolean; signal?: AbortSignal }): Promise<models.FileWritten>;
  edit(path: string, old: Bytes, text: Bytes, options?: Condition & { all?: boolean }): Promise<models.FileEdited>;
  editMany(path: string, edits: models.Edit[], options?: Condition): Promise<models.FileEdited>;
  insert(path: string, line: number, text: string, options?: Condition): Promise<models.FileEdited>;
  delete(path: string, options?: Condition & { recursive?: boolean }): Promise<models.FileDeleted>;
  stat(path: string, options?: { hash?: boolean }): Promise<models.FileStat>;
  exists(path: string): Promise<boolean>;
  list(path?: string, options?: { depth?: number; hidden?: boolean; max?: number }): Promise<models.FileStat[]>;
  watch(path?: string, options?: { recursive?: boolean; signal?: AbortSignal }): AsyncGenerator<models.WatchEvent>;
  move(from: Bytes, to: Bytes, options?: { overwrite?: boolean }): Promise<models.Transferred>;
  copy(from: Bytes, to: Bytes, options?: { overwrite?: boolean }): Promise<models.Transferred>;
  mkdir(path: string, options?: { mode?: string }): Promise<models.FolderMade>;
  batch(operations: models.BatchOp[], options?: { atomic?: boolean; path?: string }): Promise<models.BatchResult[]>;
  patch(patch: Bytes, options?: { folder?: string }): Promise<models.Patched>;
  grep(pattern: Bytes, options?: {
    path?: string; literal?: boolean; ignoreCase?: boolean; multiline?: boolean; ignored?: boolean; glob?: string | string[]; context?: number;
    max?: number;
  }): Promise<models.GrepFound>;
  glob(pattern: Bytes, options?: { path?: string; max?: number; sort?: "path" | "mtime"; ignored?: boolean }): Promise<models.GlobFound>;
  /** A folder as tar. */
  download(path?: string): Promise<Buffer>;
  upload(archive: Uint8Array | Readable, path?: string): Promise<models.Unpacked>;
}

declare abstract class Runs extends Files {
  /** Runs a command and returns what it left. That it fails, is killed or runs out of time is a result. */
  exec(cmd: Command, options?: ExecOptions): Promise<Result>;
  /** The same. */
  run(cmd: Command, options?: ExecOptions): Promise<Result>;
  /** Starts a command and returns at once. */
  spawn(cmd: Command, options?: SpawnOptions): Promise<Process>;
  /** Starts a command with a terminal, and looks at it. */
  pty(cmd?: Command, options?: Omit<SpawnOptions, "tty" | "stdin">): Promise<Terminal>;
  /** bash, read, write, edit, glob and grep, in the shapes that models and frameworks take. */
  tools(): Tools;
}

// ---- sandboxes

export type Spec = Partial<Omit<models.Spec, "limits">> & { limits?: models.Spec["limits"] };

export interface SandboxOptions extends Spec {
  /** The same key gives the same sandbox, which is stopped, not deleted, at the end. */
  key?: string;
  labels?: Record<string, string>;
  ttl?: Duration;
  idle?: Duration;
  client?: Client;
}

export class Port {
  readonly port: number;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly localPort: number;
  readonly openUrl: string;
  readonly isReady: boolean;
  close(): Promise<void>;
}

/** Nothing is done until the first use or `start()`. `await using` deletes it; without, it is deleted when the program ends. */
export class Sandbox extends Runs {
  constructor(options?: SandboxOptions);
  static create(options?: SandboxOptions): Promise<Sandbox>;
  /** One that is there, by id or key. It is not deleted at the end. */
  static get(id: string, options?: { client?: Client }): Promise<Sandbox>;
  record: models.Sandbox | undefined;
  readonly id: string;
  start(): Promise<this>;
  stop(): Promise<this>;
  pause(): Promise<this>;
  resume(): Promise<this>;
  replace(): Promise<this>;
  extend(options: { wall?: Duration; ttl?: Duration }): Promise<this>;
  info(): Promise<models.Sandbox>;
  usage(): Promise<models.Usage>;
  close(): Promise<void>;
  processes(): Promise<models.Process[]>;
  shells(): Promise<models.Shell[]>;
  deleteShell(name: string): Promise<void>;
  ports(): Promise<models.PortList>;
  port(port: number, options?: { wait?: Duration; ttl?: Duration; localPort?: number }): Promise<Port>;
  closePort(port: number): Promise<void>;
  connections(options?: { after?: number; follow?: boolean; decision?: string; name?: string; signal?: AbortSignal }): AsyncGenerator<models.Connection>;
  why(host: string, port?: number): Promise<models.Why>;
  setNet(net: models.NetRules | string): Promise<models.NetChanged>;
  [Symbol.asyncDispose](): Promise<void>;
}

// ---- workspaces

export interface WorkspaceOptions {
  repo?: string;
  base?: string;
  branch?: string;
  mode?: "edit" | "read";
  pin?: boolean;
  ttl?: Duration;
  spec?: Spec;
  disk?: Size;
  inodes?: number;
  client?: Client;
}

/** A durable tree: it outlives every sandbox, and what a command did to it can be undone. */
export class Workspace extends Runs {
  constructor(client: Client, record: models.Workspace);
  static open(key: string, options?: WorkspaceOptions): Promise<Workspace>;
  static get(id: string, options?: { client?: Client }): Promise<Workspace>;
  record: models.Workspace;
  readonly id: string;
  readonly key: string | null;
  info(options?: { usage?: boolean }): Promise<models.Workspace>;
  update(options: { pin?: boolean; ttl?: Duration; spec?: Spec }): Promise<models.Workspace>;
  remove(options?: { force?: boolean }): Promise<void>;
  restoreTrash(): Promise<models.Workspace>;
  sandbox(spec?: SandboxOptions): Sandbox;
  fork(n?: number, options?: { key?: string; at?: string }): Promise<Workspace[]>;
  snapshot(label?: string): Promise<models.Point>;
  undo(options?: { steps?: number; to?: string; processes?: "keep" | "kill" }): Promise<models.Restored>;
  redo(options?: { steps?: number; processes?: "keep" | "kill" }): Promise<models.Restored>;
  restore(to: string, options?: { processes?: "keep" | "kill" }): Promise<models.Restored>;
  history(): Promise<models.Point[]>;
  changes(options?: { base?: string; to?: string; path?: string; plain?: boolean; root?: boolean }): Promise<models.Changes>;
  diff(options?: { base?: string; to?: string; path?: string }): Promise<string>;
  commit(message: string, options?: { paths?: string[]; author?: models.CommitAuthor; allowEmpty?: boolean }): Promise<models.Committed>;
  merge(other: Workspace | string): Promise<models.Committed>;
  push(options?: { branch?: string; forceWithLease?: boolean | string; cred?: string }): Promise<models.Committed>;
  pr(title: string, options?: {
    body?: string; base?: string; branch?: string; draft?: boolean; cred?: string; forge?: "github" | "gitlab"; api?: string;
  }): Promise<models.Pull>;
  export(format?: "bundle" | "patch", options?: { base?: string }): Promise<Buffer>;
  attest(options?: { record?: number }): Promise<models.Attestation>;
  take(paths: string[], options?: { at?: string }): Promise<Buffer>;
  mergeFile(base: Bytes, ours: Bytes, theirs: Bytes): Promise<models.Joined>;
  /** Its change in a folder here, whole or not at all, by the program `caisson`. */
  apply(to: string, options?: { allowExec?: string[]; dryRun?: boolean; ask?: boolean; from?: string; at?: string }): Promise<Record<string, any>>;
}

// ---- tools for agents

export interface PlainTool {
  name: string;
  description: string;
  schema: Record<string, unknown>;
}

export interface ToolFunction {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  execute(given: Record<string, unknown>): Promise<string>;
}

export class Tools {
  specs(kind: "plain"): PlainTool[];
  specs(kind?: "anthropic" | "openai" | "openai-responses"): Record<string, any>[];
  functions(): Record<"bash" | "read" | "write" | "edit" | "glob" | "grep", ToolFunction>;
  /** What a model asked for, answered in words; only our own failure throws. */
  call(name: string, given: Record<string, unknown> | string): Promise<string>;
}

/** HPKE of RFC 9180 as secrets are sealed. */
export function seal(to: Buffer, info: Buffer, aad: Buffer, plain: Buffer, ephemeral?: Buffer): Buffer;

// ---- errors

export class CaissonError extends Error {
  readonly code: string;
  readonly status: number;
  readonly problem: Record<string, any>;
}
export class Invalid extends CaissonError {}
export class Unauthorized extends CaissonError {}
export class Forbidden extends CaissonError {}
export class NotFound extends CaissonError {}
export class Exists extends CaissonError {}
export class Stale extends CaissonError {}
export class IsADirectory extends CaissonError {}
export class NotADirectory extends CaissonError {}
export class PermissionDenied extends CaissonError {}
export class NotText extends CaissonError {}
export class TooLarge extends CaissonError {}
export class NoMatch extends CaissonError {}
export class AmbiguousMatch extends CaissonError {}
export class Conflict extends CaissonError {}
export class Busy extends CaissonError {}
/** A person is asked; `approval` is the id of the question. */
export class ApprovalRequired extends CaissonError {
  readonly approval: string | undefined;
}
export class Denied extends CaissonError {}
export class Unenforceable extends CaissonError {}
export class QuotaExceeded extends CaissonError {}
/** Our own failure, never the command's. */
export class SandboxUnavailable extends CaissonError {
  /** Nothing was done, ask again. */
  readonly retrySafe: boolean;
}
export class BackendError extends SandboxUnavailable {}
export class RepoAuth extends CaissonError {}
export class RepoUnreachable extends CaissonError {}
export class Expired extends CaissonError {}
export class CommandError extends CaissonError {
  readonly result: Result;
}
export class CommandTimeout extends CommandError {}
export const byCode: Map<string, typeof CaissonError>;
export function errorOf(status: number, problem: Record<string, any>): CaissonError;
