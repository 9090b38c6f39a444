// What the API takes and gives, as types. Written by tools/sdk from its description. Do not edit.

/** Why a request failed (RFC 9457). A command's own failure is no problem but a result. */
export interface Problem {
  type?: string;
  code: "invalid" | "unauthorized" | "forbidden" | "not_found" | "exists" | "stale" | "is_directory" | "not_directory" | "permission_denied" | "not_text" | "too_large" | "no_match" | "ambiguous_match" | "conflict" | "busy" | "approval_required" | "denied" | "unenforceable" | "quota" | "sandbox_unavailable" | "backend_error" | "repo_auth" | "repo_unreachable" | "expired";
  status: number;
  title?: string;
  detail: string;
  retry_safe?: boolean;
  state?: string;
  made?: Array<string>;
  lines?: Array<number>;
}

/** Bytes, or a number with k, m, g or t behind it: powers of 1024. */
export type Size = number | string;

/** Seconds, or a number with ms, s, m, h or d behind it. */
export type Duration = number | string;

/** Nothing is said with it. */
export interface Nothing {
}

/** Whether the daemon lives and is ready. */
export interface Health {
  status: "ready" | "starting";
  live: boolean;
  ready: boolean;
  sandboxes?: number;
  version?: string;
}

/** What can be enforced here. */
export interface Backends {
  backends: Array<Backend>;
}

/** One maker of walls. */
export interface Backend {
  name: string;
  default: boolean;
  mode: "root" | "rootless";
  kernel: string;
  landlock_abi: number;
  cgroup_version: { [key: string]: number | null };
  pause: boolean;
}

/** What the tenant has, and may have. */
export interface Quota {
  most: QuotaSums;
  used: QuotaSums;
}

/** Sums over the sandboxes of one tenant. */
export interface QuotaSums {
  sandboxes: number | null;
  processes: number | null;
  cpu: number | null;
  mem: number | null;
  pids: number | null;
  disk: number | null;
  workspaces: number | null;
}

/** A token to be made. */
export interface TokenAsk {
  name?: string | null;
  scope?: "read" | "exec" | "manage" | "approve" | "admin" | Array<"read" | "exec" | "manage" | "approve" | "admin"> | null;
  ttl?: Duration | null;
  tenant?: string | null;
  form?: string | null;
}

/** A token with its text. */
export interface TokenMade {
  id: string;
  token: string;
  tenant: string;
  name: string;
  scope: string;
  expires_ms: number | null;
}

/** A token without its text. */
export interface Token {
  id: string;
  tenant: string;
  name: string;
  scope: string;
  created_ms: number;
  expires_ms: number | null;
  revoked_ms: number | null;
  last_used_ms: number | null;
}

/** A page of tokens. */
export interface TokenList {
  tokens: Array<Token>;
  next: string | null;
}

/** What a sandbox is. An unknown key is an error. */
export interface Spec {
  net?: string | { [key: string]: unknown } | Array<string>;
  fs?: string | { [key: string]: unknown } | Array<string | { [key: string]: unknown }>;
  creds?: null | string | { [key: string]: string | number } | Array<string | { [key: string]: string | number }>;
  limits?: { [key: string]: unknown };
  user?: string | number;
  image?: string | number;
  backend?: "native";
  workspace?: string | number;
  profile?: "default" | "rootful";
  env?: string | { [key: string]: string | number } | Array<string | { [key: string]: string | number }>;
  services?: string | Array<string>;
  setup?: string | Array<string>;
  gate?: { [key: string]: unknown };
  checkpoint?: "on" | "off" | "all" | boolean;
  allow_weaker?: string | Array<string>;
}

/** A spec, and what the daemon shall know besides. */
export interface SandboxAsk {
  net?: string | { [key: string]: unknown } | Array<string>;
  fs?: string | { [key: string]: unknown } | Array<string | { [key: string]: unknown }>;
  creds?: null | string | { [key: string]: string | number } | Array<string | { [key: string]: string | number }>;
  limits?: { [key: string]: unknown };
  user?: string | number;
  image?: string | number;
  backend?: "native";
  workspace?: string | number;
  profile?: "default" | "rootful";
  env?: string | { [key: string]: string | number } | Array<string | { [key: string]: string | number }>;
  services?: string | Array<string>;
  setup?: string | Array<string>;
  gate?: { [key: string]: unknown };
  checkpoint?: "on" | "off" | "all" | boolean;
  allow_weaker?: string | Array<string>;
  key?: string | null;
  labels?: { [key: string]: string } | null;
  ttl?: Duration | null;
  idle?: Duration | null;
}

/** A sandbox. */
export interface Sandbox {
  id: string;
  key: string | null;
  generation: number;
  state: "creating" | "running" | "paused" | "stopping" | "stopped" | "replacing" | "deleting" | "gone" | "failed" | "unreachable";
  reason: string | null;
  backend: string | null;
  labels: { [key: string]: string } | null;
  spec: Spec | null;
  enforced: { [key: string]: string } | null;
  created_ms: number | null;
  started_ms: number | null;
  ended_ms: number | null;
  expires_ms: number | null;
  workspace: string | null;
  processes?: number;
  ports?: Array<PortForwarded>;
}

/** A page of sandboxes. */
export interface SandboxList {
  sandboxes: Array<Sandbox>;
  next: string | null;
}

/** What a sandbox uses. */
export interface Usage {
  cpu_ms: number;
  mem: number;
  mem_peak: number;
  pids: number;
  disk: number;
  oom_kills: number;
  pids_denied: number;
}

/** A root file system that was imported. */
export interface Image {
  name: string;
  source: "tar" | "oci" | "snapshot";
  digest: string | null;
  point: string | null;
  bytes: number;
  files: number;
  layers: number;
  dropped: number;
  created_ms: number;
  settings: ImageSettings | null;
}

/** How the commands of an image are meant to begin. */
export interface ImageSettings {
  entrypoint?: Array<string>;
  cmd?: Array<string>;
  env?: { [key: string]: string };
  cwd?: string;
  user?: string;
}

/** An image of what a sandbox left in its root. */
export interface ImageAsk {
  name: string;
  workspace: string;
  point?: string | null;
  replace?: boolean | null;
}

/** A question for a person, and what became of it. */
export interface Approval {
  id: string;
  rev: number;
  state: "pending" | "allowed" | "denied" | "expired" | "withdrawn";
  kind: "net" | "policy" | "push" | "publish" | "apply" | "secret" | "command" | "wall";
  tenant: string;
  sandbox: string | null;
  workspace: string | null;
  process: string | null;
  what: string;
  why: string | null;
  suggestion: string | null;
  detail: { [key: string]: unknown };
  created_ms: number;
  until_ms: number;
  scope: "once" | "sandbox" | "workspace" | null;
  expires_ms: number | null;
  actor: string | null;
  note: string | null;
  reason: string | null;
  decided_ms: number | null;
  applied_ms: number | null;
}

/** A decision. */
export interface ApprovalDecision {
  decision: "allow" | "deny";
  scope?: "once" | "sandbox" | "workspace" | null;
  for?: Duration | null;
  note?: string | null;
  seen?: string | null;
}

/** A page of approvals. */
export interface ApprovalList {
  approvals: Array<Approval>;
  next: string | null;
  rev: number;
}

/** A person is asked. */
export interface Asked {
  approval: Approval;
}

/** How a value is sealed. */
export interface Sealing {
  key: string;
  tenant: string;
  info: string;
}

/** A secret. */
export interface SecretAsk {
  bind: string;
  sealed?: string;
}

/** What is known of a secret. */
export interface Secret {
  name: string;
  bind: { [key: string]: unknown };
  version: number;
  created_ms: number;
  changed_ms: number;
  last_used_ms: number | null;
  uses: number;
}

/** All secrets of the tenant. */
export interface SecretList {
  secrets: Array<Secret>;
}

/** All images of the tenant. */
export interface ImageList {
  images: Array<Image>;
}

/** What is mirrored. */
export interface RepoAsk {
  url: string;
  cred?: string | null;
  refs?: Array<string> | null;
  refresh?: string | null;
}

/** A mirror of a repository. */
export interface Repo {
  id: string;
  key: string;
  url: string;
  cred: string | null;
  refs: Array<string>;
  refresh: string;
  state: "cloning" | "ready" | "refreshing" | "failed" | "gone";
  reason: string | null;
  progress: string | null;
  head: string | null;
  fetches: number;
  created_ms: number;
  fetched_ms: number | null;
  old?: string | null;
  new?: string | null;
}

/** A page of repositories. */
export interface RepoList {
  repos: Array<Repo>;
  next: string | null;
}

/** A workspace. */
export interface WorkspaceAsk {
  repo?: string | null;
  base?: string | null;
  branch?: string | null;
  mode?: "edit" | "read" | null;
  pin?: boolean | null;
  ttl?: Duration | null;
  spec?: Spec | null;
  disk?: Size | null;
  inodes?: number | null;
}

/** What to change. */
export interface WorkspaceChange {
  pin?: boolean | null;
  ttl?: Duration | null;
  spec?: Spec | null;
}

/** A durable tree. */
export interface Workspace {
  id: string;
  key: string | null;
  state: "making" | "ready" | "failed" | "trash" | "gone";
  reason: string | null;
  mode: "edit" | "read";
  repo: string | null;
  base: string | null;
  base_commit: string | null;
  branch: string | null;
  parent: string | null;
  rev: number;
  dirty: boolean;
  pin: boolean;
  ttl_ms: number | null;
  spec: Spec | null;
  disk: number | null;
  created_ms: number;
  used_ms: number;
  ended_ms: number | null;
  expires_ms: number | null;
  sandboxes?: Array<string>;
  usage?: WorkspaceUsage;
}

/** What it has on disk. */
export interface WorkspaceUsage {
  unique: number;
  shared: number;
  files: number | null;
}

/** A page of workspaces. */
export interface WorkspaceList {
  workspaces: Array<Workspace>;
  next?: string | null;
}

/** Make room. */
export interface GcAsk {
  dry_run?: boolean | null;
}

/** What was decided. */
export interface Gc {
  dry_run: boolean;
  bytes: number;
  freed_bytes: number;
  max: number | null;
  high: number | null;
  low: number | null;
  decisions: Array<GcDecision>;
}

/** One decision. */
export interface GcDecision {
  kind: "files" | "checkout" | "trash" | "points";
  id: string;
  key: string | null;
  bytes: number;
  action: "keep" | "remove" | "removed" | "failed";
  why: string;
}

/** Look at everything. */
export interface FsckAsk {
  repair?: boolean | null;
}

/** What was found. */
export interface Fsck {
  findings: Array<FsckFinding>;
  found: number;
  mended: number;
  workspaces: number;
  points: number;
  trees: number;
}

/** One finding. */
export interface FsckFinding {
  kind: "workspace" | "point" | "checkpoint" | "blob" | "tree" | "volume" | "store";
  id: string;
  problem: string;
  mended: boolean;
  points?: Array<number>;
}

/** What a command left in its workspace. */
export interface WorkspaceLeft {
  id: string;
  rev: number;
  dirty: boolean;
  checkpoint: string | null;
  files: number;
  reason?: string;
  at: number;
}

/** Which forks. */
export interface ForkAsk {
  n?: number | null;
  key?: string | null;
  at?: string | null;
}

/** A snapshot. */
export interface SnapshotAsk {
  label?: string | null;
}

/** How far back. */
export interface UndoAsk {
  steps?: number | null;
  to?: string | null;
  processes?: "keep" | "kill" | null;
}

/** How far forward. */
export interface RedoAsk {
  steps?: number | null;
  processes?: "keep" | "kill" | null;
}

/** Where to. */
export interface RestoreAsk {
  to?: string | null;
  snapshot?: string | null;
  processes?: "keep" | "kill" | null;
}

/** What became of it. */
export interface Restored {
  from: string | null;
  to: string | null;
  files: number;
  workspace: Workspace;
}

/** A state that was kept. */
export interface Point {
  id: string;
  workspace: string;
  kind: "auto" | "snapshot" | "undo";
  label: string | null;
  before: string | null;
  files: number;
  bytes: number;
  durable: boolean;
  created_ms: number;
  process: string | null;
  cmd?: Array<string> | null;
  process_state?: "queued" | "awaiting_approval" | "running" | "exited" | "signaled" | "timeout" | "oom" | "killed" | "expired" | "denied" | "lost";
  exit_code?: number | null;
  current?: boolean;
}

/** A page of points. */
export interface History {
  points: Array<Point>;
  head: string | null;
  origin: string | null;
  undo: number;
  redo: number;
  next: string | null;
}

/** A commit. */
export interface CommitAsk {
  message: string;
  paths?: Array<string> | null;
  author?: CommitAuthor | null;
  allow_empty?: boolean | null;
}

/** Who commits. */
export interface CommitAuthor {
  name?: string;
  email?: string;
}

/** What is merged. */
export interface MergeAsk {
  from: string;
}

/** Where to. */
export interface PushAsk {
  branch?: string | null;
  force_with_lease?: boolean | string | null;
  cred?: string | null;
}

/** A pull or merge request. */
export interface PullAsk {
  title: string;
  body?: string | null;
  branch?: string | null;
  base?: string | null;
  forge?: string | null;
  api?: string | null;
  cred?: string | null;
  draft?: boolean | null;
}

/** A pull or merge request at its forge. */
export interface Pull {
  url: string;
  number: number;
  forge: string;
  branch: string;
  base: string;
}

/** Which files. */
export interface TakeAsk {
  at?: string | null;
  paths?: Array<string> | null;
  paths_base64?: Array<string> | null;
}

/** What is about to be taken to a folder of the caller's. */
export interface ApplyAsk {
  to: string;
  at?: string;
  tree: string;
  files: Array<ApplyFile>;
  timeout?: string;
}

/** One file that executes later. */
export interface ApplyFile {
  path: string;
  why: string;
}

/** The file before two have changed it, and after. */
export interface JoinAsk {
  base: string;
  ours: string;
  theirs: string;
}

/** What is applied where. */
export interface AppliedAsk {
  at: string;
  to: string;
  state: "begun" | "done" | "failed";
  reason?: string | null;
  changes?: Array<AppliedChange>;
}

/** What is on record. */
export interface Applied {
  tree: string;
}

/** One file of it. */
export interface AppliedChange {
  path?: string;
  path_base64?: string;
  action: string;
  mode?: string;
  mode_before?: string;
  executes_later?: string;
}

/** What became of it. */
export interface Joined {
  merged?: string;
  conflicts?: number;
}

/** What became of it. */
export interface Committed {
  sha?: string;
  tree?: string;
  remote?: string;
  conflicts?: Array<Conflict>;
}

/** A file that both have changed. */
export interface Conflict {
  path: string;
  path_base64?: string;
}

/** An envelope (DSSE v1). */
export interface Attestation {
  payload: string;
  payloadType: string;
  signatures: Array<Signature>;
}

/** Of an envelope. */
export interface Signature {
  keyid: string;
  sig: string;
}

/** What differs. */
export interface Changes {
  counts: { [key: string]: number };
  files?: Array<Change>;
}

/** One file that differs. */
export interface Change {
  path: string;
  path_base64?: string;
  status: "A" | "M" | "D" | "R" | "T" | "mode" | "xattr";
  type: string;
  mode: string;
  bytes: number;
  from?: string;
  from_base64?: string;
}

/** Ports of a sandbox. */
export interface PortList {
  listeners: Array<PortListener>;
  forwarded: Array<PortForwarded>;
}

/** Where somebody waits for connections. */
export interface PortListener {
  port: number;
  address: string;
}

/** A forwarded port. */
export interface PortForwarded {
  port: number;
  local_port: number;
  url: string;
  created_ms: number;
  expires_ms: number | null;
}

/** Which port to forward. */
export interface PortAsk {
  port: number;
  local_port?: number | null;
  ttl?: Duration | null;
  wait?: Duration | null;
}

/** A forwarded port, with its token. */
export interface PortMade {
  port: number;
  local_port: number;
  url: string;
  headers: { [key: string]: string };
  open_url: string;
  ready: boolean;
  created_ms: number;
  expires_ms: number | null;
}

/** One connection, refused lookup or request. */
export interface Connection {
  seq: number;
  kind: "connection" | "request" | "lookup" | "connections" | "requests" | "lookups";
  sandbox: string;
  connection: number | null;
  request: number | null;
  ts_ms: number;
  process: string | null;
  name: string | null;
  dst: string | null;
  real: string | null;
  port: number | null;
  proto: string | null;
  sni: string | null;
  alpn: string | null;
  decision: "allow" | "deny" | "ask_deny" | "ask_allow";
  rule: string | null;
  reason: string | null;
  approval: string | null;
  secrets: Array<string>;
  rules: number;
  bytes_up: number;
  bytes_down: number;
  ms: number;
  close: "open" | "client" | "server" | "gate" | "lost" | null;
  method?: string | null;
  path?: string | null;
  status?: number | null;
  cache?: "hit" | "revalidated" | "miss" | "pass" | "absent" | null;
  count: number;
}

/** A record of the ledger. */
export interface Record {
  seq: number;
  ts: number;
  kind: string;
  tenant?: string;
  sandbox?: string;
  link?: RecordLink;
  workspace?: string;
  process?: string;
  actor?: string;
  src?: string;
  data: unknown;
  prev: string;
  hash: string;
}

/** The chain of one sandbox. */
export interface RecordLink {
  seq: number;
  prev: string;
}

/** A page of connections. */
export interface ConnectionList {
  connections: Array<Connection>;
  next: number | null;
}

/** One thing in the package cache. */
export interface CacheEntry {
  kind: "pip" | "npm" | "cargo";
  type: "file" | "index";
  url: string;
  sha256: string;
  bytes: number;
  hits: number;
  used_ms: number;
}

/** A page of the package cache. */
export interface CacheList {
  entries: Array<CacheEntry>;
  count: number;
  bytes: number;
  max: number;
  next: string | null;
}

/** How much of the package cache may stay. */
export interface CacheGcAsk {
  max?: Size | null;
  older_than?: Duration | null;
}

/** What was removed. */
export interface CacheGc {
  removed: number;
  freed_bytes: number;
  bytes: number;
  count: number;
}

/** What was found. */
export interface CacheVerified {
  checked: number;
  bad: Array<CacheEntry>;
}

/** What the rules say about a host. */
export interface Why {
  host: string;
  port: number;
  decision: "allow" | "deny" | "ask";
  rule: string | null;
  reason: string | null;
  approval: Approval | null;
  would_allow: string | null;
}

/** The `net` of a spec, whole. */
export interface NetRules {
  mode?: "deny" | "allow" | "list";
  allow?: string | Array<string>;
  deny?: string | Array<string>;
  ask?: string | Array<string>;
  cidr?: string | Array<string>;
  deny_cidr?: string | Array<string>;
  headers?: string | Array<string>;
  mock?: { [key: string]: string | number };
  mocks?: { [key: string]: string | number };
  http?: { [key: string]: unknown } | Array<{ [key: string]: unknown }>;
  publish?: string | Array<string>;
  inspect?: string | Array<string>;
  tls_any?: string | Array<string>;
  cache?: string | Array<string>;
  offline?: boolean;
  rate?: { [key: string]: unknown };
}

/** What became of new rules. */
export interface NetChanged {
  generation: number | null;
  closed: number;
  loosened: boolean;
  net: { [key: string]: unknown };
}

/** More time. */
export interface ExtendAsk {
  wall?: Duration | null;
  ttl?: Duration | null;
  why?: string | null;
}

/** What becomes of output. */
export interface OutputAsk {
  inline?: Size | null;
  keep?: "head+tail" | null;
  merge?: boolean | null;
  max_log?: Size | null;
}

/** A command. */
export interface ExecAsk {
  cmd: string | Array<string>;
  cwd?: string | null;
  env?: { [key: string]: string } | null;
  stdin?: string | boolean | null;
  user?: string | null;
  timeout?: Duration | null;
  tty?: boolean | null;
  rows?: number | null;
  cols?: number | null;
  output?: OutputAsk | null;
  label?: string | null;
  wait?: Duration | null;
  on_disconnect?: "keep" | "kill" | null;
  shell?: string | null;
  background?: "keep" | "kill" | null;
  at_end?: "keep" | "stop" | "delete" | null;
}

/** A command with a sandbox of its own. */
export interface RunAsk {
  cmd: string | Array<string>;
  cwd?: string | null;
  env?: { [key: string]: string } | null;
  stdin?: string | boolean | null;
  user?: string | null;
  timeout?: Duration | null;
  tty?: boolean | null;
  rows?: number | null;
  cols?: number | null;
  output?: OutputAsk | null;
  label?: string | null;
  spec?: Spec;
  files?: { [key: string]: string | Coded } | null;
  collect?: Array<string> | null;
  allow_exec?: Array<string> | null;
  inline?: boolean | null;
  brief?: boolean | null;
}

/** Everything that is executed has one of these, for good. */
export interface Process {
  id: string;
  sandbox: string;
  state: "queued" | "awaiting_approval" | "running" | "exited" | "signaled" | "timeout" | "oom" | "killed" | "expired" | "denied" | "lost";
  exit_code: number | null;
  signal: number | null;
  reason: string | null;
  cmd: Array<string> | null;
  cwd: string | null;
  label: string | null;
  created_ms: number | null;
  started_ms: number | null;
  ended_ms: number | null;
  ms: number;
  usage: ProcessUsage;
  bytes: OutputBytes;
  log: string;
  stdout?: string;
  stderr?: string;
  encoding?: "utf-8" | "base64";
  seq?: number;
  tty?: boolean;
  waiting_for_input?: boolean;
  children?: Array<Child>;
  shell?: ShellUsed;
  violations?: Array<Violation>;
  execs?: Execs;
  collected?: Array<Collected>;
  missing?: Array<string>;
  workspace?: WorkspaceLeft;
}

/** What a process used. */
export interface ProcessUsage {
  cpu_ms: number;
  mem_peak: number;
  io: number;
}

/** How much a process wrote. */
export interface OutputBytes {
  stdout: number;
  stderr: number;
  dropped: number;
}

/** A process that was left running. */
export interface Child {
  pid: number;
  name: string;
}

/** Something was refused. */
export interface Violation {
  kind: string;
  target: string;
  rule?: string;
  reason?: string;
  approval?: string;
  certain?: boolean;
  count?: number;
}

/** Programs that were started. */
export interface Execs {
  count: number;
  first: Array<string>;
}

/** A file that a run left. */
export interface Collected {
  path: string;
  path_base64?: string;
  mode: string;
  bytes: number;
  base64?: string;
  skipped?: boolean;
  executes_later?: string;
}

/** What is no text. */
export interface Coded {
  base64: string;
}

/** A page of processes. */
export interface ProcessList {
  processes: Array<Process>;
  next: string | null;
}

/** The named shell that a command ran in. */
export interface ShellUsed {
  name: string;
  restarted?: boolean;
  reason?: string;
}

/** A named shell: one process that serves one command after the other. */
export interface Shell {
  name: string;
  state: "busy" | "idle" | "ended";
  process: string | null;
  cwd: string | null;
  restarts: number;
}

/** The named shells of a sandbox. */
export interface ShellList {
  shells: Array<Shell>;
}

/** Input: `data` or `base64`, or only `eof`. */
export interface StdinAsk {
  data?: string;
  base64?: string;
  eof?: boolean | null;
  wait?: Duration | null;
}

/** A signal. */
export interface SignalAsk {
  sig: string | number;
  scope?: "process" | "tree" | null;
}

/** The size of a terminal. */
export interface ResizeAsk {
  rows: number;
  cols: number;
}

/** What happened to a process. */
export type Event = OutputEvent | EndEvent;

/** It wrote. */
export interface OutputEvent {
  seq: number;
  type: "output";
  stream: "stdout" | "stderr";
  ms: number;
  data?: string;
  base64?: string;
  skipped?: number;
}

/** It ended; the last event. */
export interface EndEvent {
  seq: number;
  type: "end";
  process: Process;
}

/** One entry of a folder. */
export interface FileStat {
  path: string;
  path_base64?: string;
  type: "file" | "directory" | "symlink" | "fifo" | "socket" | "device" | "unknown";
  bytes: number;
  mode: string;
  mtime_ms: number;
  uid: number;
  gid: number;
  target?: string;
  target_base64?: string;
  hash?: string;
}

/** Entries of a folder. */
export interface FileList {
  entries: Array<FileStat>;
  truncated: boolean;
  unreadable: number;
}

/** Lines of a file. */
export interface FileLines {
  path: string;
  path_base64?: string;
  text?: string;
  base64?: string;
  encoding: "utf-8" | "base64";
  hash: string;
  first: number;
  lines: number;
  total_lines: number;
  next: number | null;
  bytes: number;
  eol: "lf" | "crlf" | "mixed" | "none";
  bom: boolean;
  cut: Array<number>;
}

/** A file that was written. */
export interface FileWritten {
  path: string;
  path_base64?: string;
  hash: string;
  bytes: number;
  created: boolean;
}

/** One replacement. */
export interface Edit {
  old?: string;
  old_base64?: string;
  new?: string;
  new_base64?: string;
  all?: boolean;
}

/** New lines. */
export interface Insertion {
  line: number;
  text?: string;
  text_base64?: string;
}

/** Exactly one of the three. */
export interface FileEdit {
  edits?: Array<Edit>;
  insert?: Insertion;
  unified?: string;
  unified_base64?: string;
}

/** A file that was edited. */
export interface FileEdited {
  path: string;
  path_base64?: string;
  hash: string;
  bytes: number;
  replaced: number;
  match: "exact" | "eol";
  diff?: string;
  diff_base64?: string;
}

/** What is gone. */
export interface FileDeleted {
  path: string;
  path_base64?: string;
  deleted: number;
}

/** What to move or copy. */
export interface TransferAsk {
  from?: string;
  from_base64?: string;
  to?: string;
  to_base64?: string;
  overwrite?: boolean;
}

/** What was moved or copied. */
export interface Transferred {
  from: string;
  from_base64?: string;
  to: string;
  to_base64?: string;
  files?: number;
  bytes?: number;
  skipped?: number;
}

/** A folder to be made. */
export interface FolderAsk {
  path?: string;
  path_base64?: string;
  mode?: string | number;
}

/** A folder that is there now. */
export interface FolderMade {
  path: string;
  path_base64?: string;
  created: boolean;
}

/** One operation; what it takes depends on `op`. */
export interface BatchOp {
  op: "read" | "write" | "edit" | "delete" | "stat";
  path?: string;
  path_base64?: string;
  if_match?: string;
  first?: number;
  count?: number;
  line_max?: number;
  text?: string;
  text_base64?: string;
  mode?: string | number;
  only_new?: boolean;
  edits?: Array<Edit>;
  insert?: Insertion;
  unified?: string;
  unified_base64?: string;
  recursive?: boolean;
  hash?: boolean;
}

/** Operations, in order. */
export type BatchAsk = Array<BatchOp>;

/** What came of one operation: `ok` or `error`. */
export interface BatchResult {
  ok?: FileLines | FileWritten | FileEdited | FileDeleted | FileStat;
  error?: Problem;
}

/** One result for each operation, in the same order. */
export type BatchResults = Array<BatchResult>;

/** What a patch did. */
export interface Patched {
  format: "unified" | "v4a";
  files: Array<PatchedFile>;
}

/** What a patch did to one file. */
export interface PatchedFile {
  path: string;
  path_base64?: string;
  status: "modified" | "added" | "deleted" | "renamed" | "copied";
  from?: string;
  from_base64?: string;
  hunks: number;
  hash?: string;
  bytes?: number;
  match?: "exact" | "eol";
}

/** What to search for, and where. */
export interface GrepAsk {
  pattern?: string;
  pattern_base64?: string;
  literal?: boolean;
  ignore_case?: boolean;
  multiline?: boolean;
  ignored?: boolean;
  path?: string;
  path_base64?: string;
  glob?: string | Array<string>;
  context?: number;
  max?: number;
}

/** What a search found. */
export interface GrepFound {
  matches: Array<Match>;
  truncated: boolean;
  why: string | null;
  scanned: number;
  scanned_bytes: number;
  skipped: { [key: string]: number };
}

/** One place. */
export interface Match {
  path: string;
  path_base64?: string;
  line: number;
  col: number;
  text: string;
  cut?: boolean;
  before?: Array<string>;
  after?: Array<string>;
}

/** Which names to look for. */
export interface GlobAsk {
  pattern?: string;
  pattern_base64?: string;
  path?: string;
  path_base64?: string;
  max?: number;
  sort?: "path" | "mtime";
  ignored?: boolean;
}

/** Names that were found. */
export interface GlobFound {
  paths: Array<string | Path>;
  truncated: boolean;
}

/** A name that is not UTF-8. */
export interface Path {
  path: string;
  path_base64?: string;
}

/** What was unpacked. */
export interface Unpacked {
  path: string;
  path_base64?: string;
  files: number;
  bytes: number;
}

/** A change below a folder. */
export interface WatchEvent {
  event: string;
  path?: string;
  path_base64?: string;
  dir?: boolean;
  why?: string;
}
