"""What the API takes and gives, as types. Written by tools/sdk from its description. Do not edit."""
from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union


class _Problem(TypedDict):
    code: Literal["invalid", "unauthorized", "forbidden", "not_found", "exists", "stale", "is_directory", "not_directory", "permission_denied", "not_text", "too_large", "no_match", "ambiguous_match", "conflict", "busy", "approval_required", "denied", "unenforceable", "quota", "sandbox_unavailable", "backend_error", "repo_auth", "repo_unreachable", "expired"]
    status: int
    detail: str


class Problem(_Problem, total=False):
    """Why a request failed (RFC 9457). A command's own failure is no problem but a result."""
    type: str
    title: str
    retry_safe: bool
    state: str
    made: List[str]
    lines: List[int]


Size = Union[int, str]


Duration = Union[int, str]


class Nothing(TypedDict):
    """Nothing is said with it."""


class _Health(TypedDict):
    status: Literal["ready", "starting"]
    live: bool
    ready: bool


class Health(_Health, total=False):
    """Whether the daemon lives and is ready."""
    sandboxes: int
    version: str


class Backends(TypedDict):
    """What can be enforced here."""
    backends: List["Backend"]


class Backend(TypedDict):
    """One maker of walls."""
    name: str
    default: bool
    mode: Literal["root", "rootless"]
    kernel: str
    landlock_abi: int
    cgroup_version: Dict[str, Optional[int]]
    pause: bool


class Quota(TypedDict):
    """What the tenant has, and may have."""
    most: "QuotaSums"
    used: "QuotaSums"


class QuotaSums(TypedDict):
    """Sums over the sandboxes of one tenant."""
    sandboxes: Optional[int]
    processes: Optional[int]
    cpu: Optional[float]
    mem: Optional[int]
    pids: Optional[int]
    disk: Optional[int]
    workspaces: Optional[int]


class TokenAsk(TypedDict, total=False):
    """A token to be made."""
    name: Optional[str]
    scope: Optional[Union[Literal["read", "exec", "manage", "approve", "admin"], List[Literal["read", "exec", "manage", "approve", "admin"]]]]
    ttl: Optional["Duration"]
    tenant: Optional[str]
    form: Optional[str]


class TokenMade(TypedDict):
    """A token with its text."""
    id: str
    token: str
    tenant: str
    name: str
    scope: str
    expires_ms: Optional[int]


class Token(TypedDict):
    """A token without its text."""
    id: str
    tenant: str
    name: str
    scope: str
    created_ms: int
    expires_ms: Optional[int]
    revoked_ms: Optional[int]
    last_used_ms: Optional[int]


class TokenList(TypedDict):
    """A page of tokens."""
    tokens: List["Token"]
    next: Optional[str]


class Spec(TypedDict, total=False):
    """What a sandbox is. An unknown key is an error."""
    net: Union[Union[str, Dict[str, Any]], List[str]]
    fs: Union[Union[str, Dict[str, Any]], List[Union[str, Dict[str, Any]]]]
    creds: Optional[Union[Union[str, Dict[str, Union[str, int]]], List[Union[str, Dict[str, Union[str, int]]]]]]
    limits: Dict[str, Any]
    user: Union[str, int]
    image: Union[str, int]
    backend: Literal["native"]
    workspace: Union[str, int]
    profile: Literal["default", "rootful"]
    env: Union[Union[str, Dict[str, Union[str, int]]], List[Union[str, Dict[str, Union[str, int]]]]]
    services: Union[str, List[str]]
    setup: Union[str, List[str]]
    gate: Dict[str, Any]
    checkpoint: Union[Literal["on", "off", "all"], bool]
    allow_weaker: Union[str, List[str]]


class SandboxAsk(TypedDict, total=False):
    """A spec, and what the daemon shall know besides."""
    net: Union[Union[str, Dict[str, Any]], List[str]]
    fs: Union[Union[str, Dict[str, Any]], List[Union[str, Dict[str, Any]]]]
    creds: Optional[Union[Union[str, Dict[str, Union[str, int]]], List[Union[str, Dict[str, Union[str, int]]]]]]
    limits: Dict[str, Any]
    user: Union[str, int]
    image: Union[str, int]
    backend: Literal["native"]
    workspace: Union[str, int]
    profile: Literal["default", "rootful"]
    env: Union[Union[str, Dict[str, Union[str, int]]], List[Union[str, Dict[str, Union[str, int]]]]]
    services: Union[str, List[str]]
    setup: Union[str, List[str]]
    gate: Dict[str, Any]
    checkpoint: Union[Literal["on", "off", "all"], bool]
    allow_weaker: Union[str, List[str]]
    key: Optional[str]
    labels: Optional[Dict[str, str]]
    ttl: Optional["Duration"]
    idle: Optional["Duration"]


class _Sandbox(TypedDict):
    id: str
    key: Optional[str]
    generation: int
    state: Literal["creating", "running", "paused", "stopping", "stopped", "replacing", "deleting", "gone", "failed", "unreachable"]
    reason: Optional[str]
    backend: Optional[str]
    labels: Optional[Dict[str, str]]
    spec: Optional["Spec"]
    enforced: Optional[Dict[str, str]]
    created_ms: Optional[int]
    started_ms: Optional[int]
    ended_ms: Optional[int]
    expires_ms: Optional[int]
    workspace: Optional[str]


class Sandbox(_Sandbox, total=False):
    """A sandbox."""
    processes: int
    ports: List["PortForwarded"]


class SandboxList(TypedDict):
    """A page of sandboxes."""
    sandboxes: List["Sandbox"]
    next: Optional[str]


class Usage(TypedDict):
    """What a sandbox uses."""
    cpu_ms: int
    mem: int
    mem_peak: int
    pids: int
    disk: int
    oom_kills: int
    pids_denied: int


class Image(TypedDict):
    """A root file system that was imported."""
    name: str
    source: Literal["tar", "oci", "snapshot"]
    digest: Optional[str]
    point: Optional[str]
    bytes: int
    files: int
    layers: int
    dropped: int
    created_ms: int
    settings: Optional["ImageSettings"]


class ImageSettings(TypedDict, total=False):
    """How the commands of an image are meant to begin."""
    entrypoint: List[str]
    cmd: List[str]
    env: Dict[str, str]
    cwd: str
    user: str


class _ImageAsk(TypedDict):
    name: str
    workspace: str


class ImageAsk(_ImageAsk, total=False):
    """An image of what a sandbox left in its root."""
    point: Optional[str]
    replace: Optional[bool]


class Approval(TypedDict):
    """A question for a person, and what became of it."""
    id: str
    rev: int
    state: Literal["pending", "allowed", "denied", "expired", "withdrawn"]
    kind: Literal["net", "policy", "push", "publish", "apply", "secret", "command", "wall"]
    tenant: str
    sandbox: Optional[str]
    workspace: Optional[str]
    process: Optional[str]
    what: str
    why: Optional[str]
    suggestion: Optional[str]
    detail: Dict[str, Any]
    created_ms: int
    until_ms: int
    scope: Optional[Literal["once", "sandbox", "workspace"]]
    expires_ms: Optional[int]
    actor: Optional[str]
    note: Optional[str]
    reason: Optional[str]
    decided_ms: Optional[int]
    applied_ms: Optional[int]


ApprovalDecision = TypedDict("ApprovalDecision", {"decision": Literal["allow", "deny"], "scope": Optional[Literal["once", "sandbox", "workspace"]], "for": Optional["Duration"], "note": Optional[str], "seen": Optional[str]}, total=False)


class ApprovalList(TypedDict):
    """A page of approvals."""
    approvals: List["Approval"]
    next: Optional[str]
    rev: int


class Asked(TypedDict):
    """A person is asked."""
    approval: "Approval"


class Sealing(TypedDict):
    """How a value is sealed."""
    key: str
    tenant: str
    info: str


class _SecretAsk(TypedDict):
    bind: str


class SecretAsk(_SecretAsk, total=False):
    """A secret."""
    sealed: str


class Secret(TypedDict):
    """What is known of a secret."""
    name: str
    bind: Dict[str, Any]
    version: int
    created_ms: int
    changed_ms: int
    last_used_ms: Optional[int]
    uses: int


class SecretList(TypedDict):
    """All secrets of the tenant."""
    secrets: List["Secret"]


class ImageList(TypedDict):
    """All images of the tenant."""
    images: List["Image"]


class _RepoAsk(TypedDict):
    url: str


class RepoAsk(_RepoAsk, total=False):
    """What is mirrored."""
    cred: Optional[str]
    refs: Optional[List[str]]
    refresh: Optional[str]


class _Repo(TypedDict):
    id: str
    key: str
    url: str
    cred: Optional[str]
    refs: List[str]
    refresh: str
    state: Literal["cloning", "ready", "refreshing", "failed", "gone"]
    reason: Optional[str]
    progress: Optional[str]
    head: Optional[str]
    fetches: int
    created_ms: int
    fetched_ms: Optional[int]


class Repo(_Repo, total=False):
    """A mirror of a repository."""
    old: Optional[str]
    new: Optional[str]


class RepoList(TypedDict):
    """A page of repositories."""
    repos: List["Repo"]
    next: Optional[str]


class WorkspaceAsk(TypedDict, total=False):
    """A workspace."""
    repo: Optional[str]
    base: Optional[str]
    branch: Optional[str]
    mode: Optional[Literal["edit", "read"]]
    pin: Optional[bool]
    ttl: Optional["Duration"]
    spec: Optional["Spec"]
    disk: Optional["Size"]
    inodes: Optional[int]


class WorkspaceChange(TypedDict, total=False):
    """What to change."""
    pin: Optional[bool]
    ttl: Optional["Duration"]
    spec: Optional["Spec"]


class _Workspace(TypedDict):
    id: str
    key: Optional[str]
    state: Literal["making", "ready", "failed", "trash", "gone"]
    reason: Optional[str]
    mode: Literal["edit", "read"]
    repo: Optional[str]
    base: Optional[str]
    base_commit: Optional[str]
    branch: Optional[str]
    parent: Optional[str]
    rev: int
    dirty: bool
    pin: bool
    ttl_ms: Optional[int]
    spec: Optional["Spec"]
    disk: Optional[int]
    created_ms: int
    used_ms: int
    ended_ms: Optional[int]
    expires_ms: Optional[int]


class Workspace(_Workspace, total=False):
    """A durable tree."""
    sandboxes: List[str]
    usage: "WorkspaceUsage"


class WorkspaceUsage(TypedDict):
    """What it has on disk."""
    unique: int
    shared: int
    files: Optional[int]


class _WorkspaceList(TypedDict):
    workspaces: List["Workspace"]


class WorkspaceList(_WorkspaceList, total=False):
    """A page of workspaces."""
    next: Optional[str]


class GcAsk(TypedDict, total=False):
    """Make room."""
    dry_run: Optional[bool]


class Gc(TypedDict):
    """What was decided."""
    dry_run: bool
    bytes: int
    freed_bytes: int
    max: Optional[int]
    high: Optional[int]
    low: Optional[int]
    decisions: List["GcDecision"]


class GcDecision(TypedDict):
    """One decision."""
    kind: Literal["files", "checkout", "trash", "points"]
    id: str
    key: Optional[str]
    bytes: int
    action: Literal["keep", "remove", "removed", "failed"]
    why: str


class FsckAsk(TypedDict, total=False):
    """Look at everything."""
    repair: Optional[bool]


class Fsck(TypedDict):
    """What was found."""
    findings: List["FsckFinding"]
    found: int
    mended: int
    workspaces: int
    points: int
    trees: int


class _FsckFinding(TypedDict):
    kind: Literal["workspace", "point", "checkpoint", "blob", "tree", "volume", "store"]
    id: str
    problem: str
    mended: bool


class FsckFinding(_FsckFinding, total=False):
    """One finding."""
    points: List[int]


class _WorkspaceLeft(TypedDict):
    id: str
    rev: int
    dirty: bool
    checkpoint: Optional[str]
    files: int
    at: int


class WorkspaceLeft(_WorkspaceLeft, total=False):
    """What a command left in its workspace."""
    reason: str


class ForkAsk(TypedDict, total=False):
    """Which forks."""
    n: Optional[int]
    key: Optional[str]
    at: Optional[str]


class SnapshotAsk(TypedDict, total=False):
    """A snapshot."""
    label: Optional[str]


class UndoAsk(TypedDict, total=False):
    """How far back."""
    steps: Optional[int]
    to: Optional[str]
    processes: Optional[Literal["keep", "kill"]]


class RedoAsk(TypedDict, total=False):
    """How far forward."""
    steps: Optional[int]
    processes: Optional[Literal["keep", "kill"]]


class RestoreAsk(TypedDict, total=False):
    """Where to."""
    to: Optional[str]
    snapshot: Optional[str]
    processes: Optional[Literal["keep", "kill"]]


Restored = TypedDict("Restored", {"from": Optional[str], "to": Optional[str], "files": int, "workspace": "Workspace"}, total=False)


class _Point(TypedDict):
    id: str
    workspace: str
    kind: Literal["auto", "snapshot", "undo"]
    label: Optional[str]
    before: Optional[str]
    files: int
    bytes: int
    durable: bool
    created_ms: int
    process: Optional[str]


class Point(_Point, total=False):
    """A state that was kept."""
    cmd: Optional[List[str]]
    process_state: Literal["queued", "awaiting_approval", "running", "exited", "signaled", "timeout", "oom", "killed", "expired", "denied", "lost"]
    exit_code: Optional[int]
    current: bool


class History(TypedDict):
    """A page of points."""
    points: List["Point"]
    head: Optional[str]
    origin: Optional[str]
    undo: int
    redo: int
    next: Optional[str]


class _CommitAsk(TypedDict):
    message: str


class CommitAsk(_CommitAsk, total=False):
    """A commit."""
    paths: Optional[List[str]]
    author: Optional["CommitAuthor"]
    allow_empty: Optional[bool]


class CommitAuthor(TypedDict, total=False):
    """Who commits."""
    name: str
    email: str


MergeAsk = TypedDict("MergeAsk", {"from": str}, total=False)


class PushAsk(TypedDict, total=False):
    """Where to."""
    branch: Optional[str]
    force_with_lease: Optional[Union[bool, str]]
    cred: Optional[str]


class _PullAsk(TypedDict):
    title: str


class PullAsk(_PullAsk, total=False):
    """A pull or merge request."""
    body: Optional[str]
    branch: Optional[str]
    base: Optional[str]
    forge: Optional[str]
    api: Optional[str]
    cred: Optional[str]
    draft: Optional[bool]


class Pull(TypedDict):
    """A pull or merge request at its forge."""
    url: str
    number: int
    forge: str
    branch: str
    base: str


class TakeAsk(TypedDict, total=False):
    """Which files."""
    at: Optional[str]
    paths: Optional[List[str]]
    paths_base64: Optional[List[str]]


class _ApplyAsk(TypedDict):
    to: str
    tree: str
    files: List["ApplyFile"]


class ApplyAsk(_ApplyAsk, total=False):
    """What is about to be taken to a folder of the caller's."""
    at: str
    timeout: str


class ApplyFile(TypedDict):
    """One file that executes later."""
    path: str
    why: str


class JoinAsk(TypedDict):
    """The file before two have changed it, and after."""
    base: str
    ours: str
    theirs: str


class _AppliedAsk(TypedDict):
    at: str
    to: str
    state: Literal["begun", "done", "failed"]


class AppliedAsk(_AppliedAsk, total=False):
    """What is applied where."""
    reason: Optional[str]
    changes: List["AppliedChange"]


class Applied(TypedDict):
    """What is on record."""
    tree: str


class _AppliedChange(TypedDict):
    action: str


class AppliedChange(_AppliedChange, total=False):
    """One file of it."""
    path: str
    path_base64: str
    mode: str
    mode_before: str
    executes_later: str


class Joined(TypedDict, total=False):
    """What became of it."""
    merged: str
    conflicts: int


class Committed(TypedDict, total=False):
    """What became of it."""
    sha: str
    tree: str
    remote: str
    conflicts: List["Conflict"]


class _Conflict(TypedDict):
    path: str


class Conflict(_Conflict, total=False):
    """A file that both have changed."""
    path_base64: str


class Attestation(TypedDict):
    """An envelope (DSSE v1)."""
    payload: str
    payloadType: str
    signatures: List["Signature"]


class Signature(TypedDict):
    """Of an envelope."""
    keyid: str
    sig: str


class _Changes(TypedDict):
    counts: Dict[str, int]


class Changes(_Changes, total=False):
    """What differs."""
    files: List["Change"]


Change = TypedDict("Change", {"path": str, "status": Literal["A", "M", "D", "R", "T", "mode", "xattr"], "type": str, "mode": str, "bytes": int, "path_base64": str, "from": str, "from_base64": str}, total=False)


class PortList(TypedDict):
    """Ports of a sandbox."""
    listeners: List["PortListener"]
    forwarded: List["PortForwarded"]


class PortListener(TypedDict):
    """Where somebody waits for connections."""
    port: int
    address: str


class PortForwarded(TypedDict):
    """A forwarded port."""
    port: int
    local_port: int
    url: str
    created_ms: int
    expires_ms: Optional[int]


class _PortAsk(TypedDict):
    port: int


class PortAsk(_PortAsk, total=False):
    """Which port to forward."""
    local_port: Optional[int]
    ttl: Optional["Duration"]
    wait: Optional["Duration"]


class PortMade(TypedDict):
    """A forwarded port, with its token."""
    port: int
    local_port: int
    url: str
    headers: Dict[str, str]
    open_url: str
    ready: bool
    created_ms: int
    expires_ms: Optional[int]


class _Connection(TypedDict):
    seq: int
    kind: Literal["connection", "request", "lookup", "connections", "requests", "lookups"]
    sandbox: str
    connection: Optional[int]
    request: Optional[int]
    ts_ms: int
    process: Optional[str]
    name: Optional[str]
    dst: Optional[str]
    real: Optional[str]
    port: Optional[int]
    proto: Optional[str]
    sni: Optional[str]
    alpn: Optional[str]
    decision: Literal["allow", "deny", "ask_deny", "ask_allow"]
    rule: Optional[str]
    reason: Optional[str]
    approval: Optional[str]
    secrets: List[str]
    rules: int
    bytes_up: int
    bytes_down: int
    ms: int
    close: Optional[Literal["open", "client", "server", "gate", "lost"]]
    count: int


class Connection(_Connection, total=False):
    """One connection, refused lookup or request."""
    method: Optional[str]
    path: Optional[str]
    status: Optional[int]
    cache: Optional[Literal["hit", "revalidated", "miss", "pass", "absent"]]


class _Record(TypedDict):
    seq: int
    ts: int
    kind: str
    data: Any
    prev: str
    hash: str


class Record(_Record, total=False):
    """A record of the ledger."""
    tenant: str
    sandbox: str
    link: "RecordLink"
    workspace: str
    process: str
    actor: str
    src: str


class RecordLink(TypedDict):
    """The chain of one sandbox."""
    seq: int
    prev: str


class ConnectionList(TypedDict):
    """A page of connections."""
    connections: List["Connection"]
    next: Optional[int]


class CacheEntry(TypedDict):
    """One thing in the package cache."""
    kind: Literal["pip", "npm", "cargo"]
    type: Literal["file", "index"]
    url: str
    sha256: str
    bytes: int
    hits: int
    used_ms: int


class CacheList(TypedDict):
    """A page of the package cache."""
    entries: List["CacheEntry"]
    count: int
    bytes: int
    max: int
    next: Optional[str]


class CacheGcAsk(TypedDict, total=False):
    """How much of the package cache may stay."""
    max: Optional["Size"]
    older_than: Optional["Duration"]


class CacheGc(TypedDict):
    """What was removed."""
    removed: int
    freed_bytes: int
    bytes: int
    count: int


class CacheVerified(TypedDict):
    """What was found."""
    checked: int
    bad: List["CacheEntry"]


class Why(TypedDict):
    """What the rules say about a host."""
    host: str
    port: int
    decision: Literal["allow", "deny", "ask"]
    rule: Optional[str]
    reason: Optional[str]
    approval: Optional["Approval"]
    would_allow: Optional[str]


class NetRules(TypedDict, total=False):
    """The `net` of a spec, whole."""
    mode: Literal["deny", "allow", "list"]
    allow: Union[str, List[str]]
    deny: Union[str, List[str]]
    ask: Union[str, List[str]]
    cidr: Union[str, List[str]]
    deny_cidr: Union[str, List[str]]
    headers: Union[str, List[str]]
    mock: Dict[str, Union[str, int]]
    mocks: Dict[str, Union[str, int]]
    http: Union[Dict[str, Any], List[Dict[str, Any]]]
    publish: Union[str, List[str]]
    inspect: Union[str, List[str]]
    tls_any: Union[str, List[str]]
    cache: Union[str, List[str]]
    offline: bool
    rate: Dict[str, Any]


class NetChanged(TypedDict):
    """What became of new rules."""
    generation: Optional[int]
    closed: int
    loosened: bool
    net: Dict[str, Any]


class ExtendAsk(TypedDict, total=False):
    """More time."""
    wall: Optional["Duration"]
    ttl: Optional["Duration"]
    why: Optional[str]


class OutputAsk(TypedDict, total=False):
    """What becomes of output."""
    inline: Optional["Size"]
    keep: Optional[Literal["head+tail"]]
    merge: Optional[bool]
    max_log: Optional["Size"]


class _ExecAsk(TypedDict):
    cmd: Union[str, List[str]]


class ExecAsk(_ExecAsk, total=False):
    """A command."""
    cwd: Optional[str]
    env: Optional[Dict[str, str]]
    stdin: Optional[Union[str, bool]]
    user: Optional[str]
    timeout: Optional["Duration"]
    tty: Optional[bool]
    rows: Optional[int]
    cols: Optional[int]
    output: Optional["OutputAsk"]
    label: Optional[str]
    wait: Optional["Duration"]
    on_disconnect: Optional[Literal["keep", "kill"]]
    shell: Optional[str]
    background: Optional[Literal["keep", "kill"]]
    at_end: Optional[Literal["keep", "stop", "delete"]]


class _RunAsk(TypedDict):
    cmd: Union[str, List[str]]


class RunAsk(_RunAsk, total=False):
    """A command with a sandbox of its own."""
    cwd: Optional[str]
    env: Optional[Dict[str, str]]
    stdin: Optional[Union[str, bool]]
    user: Optional[str]
    timeout: Optional["Duration"]
    tty: Optional[bool]
    rows: Optional[int]
    cols: Optional[int]
    output: Optional["OutputAsk"]
    label: Optional[str]
    spec: "Spec"
    files: Optional[Dict[str, Union[str, "Coded"]]]
    collect: Optional[List[str]]
    allow_exec: Optional[List[str]]
    inline: Optional[bool]
    brief: Optional[bool]


class _Process(TypedDict):
    id: str
    sandbox: str
    state: Literal["queued", "awaiting_approval", "running", "exited", "signaled", "timeout", "oom", "killed", "expired", "denied", "lost"]
    exit_code: Optional[int]
    signal: Optional[int]
    reason: Optional[str]
    cmd: Optional[List[str]]
    cwd: Optional[str]
    label: Optional[str]
    created_ms: Optional[int]
    started_ms: Optional[int]
    ended_ms: Optional[int]
    ms: int
    usage: "ProcessUsage"
    bytes: "OutputBytes"
    log: str


class Process(_Process, total=False):
    """Everything that is executed has one of these, for good."""
    stdout: str
    stderr: str
    encoding: Literal["utf-8", "base64"]
    seq: int
    tty: bool
    waiting_for_input: bool
    children: List["Child"]
    shell: "ShellUsed"
    violations: List["Violation"]
    execs: "Execs"
    collected: List["Collected"]
    missing: List[str]
    workspace: "WorkspaceLeft"


class ProcessUsage(TypedDict):
    """What a process used."""
    cpu_ms: int
    mem_peak: int
    io: int


class OutputBytes(TypedDict):
    """How much a process wrote."""
    stdout: int
    stderr: int
    dropped: int


class Child(TypedDict):
    """A process that was left running."""
    pid: int
    name: str


class _Violation(TypedDict):
    kind: str
    target: str


class Violation(_Violation, total=False):
    """Something was refused."""
    rule: str
    reason: str
    approval: str
    certain: bool
    count: int


class Execs(TypedDict):
    """Programs that were started."""
    count: int
    first: List[str]


class _Collected(TypedDict):
    path: str
    mode: str
    bytes: int


class Collected(_Collected, total=False):
    """A file that a run left."""
    path_base64: str
    base64: str
    skipped: bool
    executes_later: str


class Coded(TypedDict):
    """What is no text."""
    base64: str


class ProcessList(TypedDict):
    """A page of processes."""
    processes: List["Process"]
    next: Optional[str]


class _ShellUsed(TypedDict):
    name: str


class ShellUsed(_ShellUsed, total=False):
    """The named shell that a command ran in."""
    restarted: bool
    reason: str


class Shell(TypedDict):
    """A named shell: one process that serves one command after the other."""
    name: str
    state: Literal["busy", "idle", "ended"]
    process: Optional[str]
    cwd: Optional[str]
    restarts: int


class ShellList(TypedDict):
    """The named shells of a sandbox."""
    shells: List["Shell"]


class StdinAsk(TypedDict, total=False):
    """Input: `data` or `base64`, or only `eof`."""
    data: str
    base64: str
    eof: Optional[bool]
    wait: Optional["Duration"]


class _SignalAsk(TypedDict):
    sig: Union[str, int]


class SignalAsk(_SignalAsk, total=False):
    """A signal."""
    scope: Optional[Literal["process", "tree"]]


class ResizeAsk(TypedDict):
    """The size of a terminal."""
    rows: int
    cols: int


Event = Union["OutputEvent", "EndEvent"]


class _OutputEvent(TypedDict):
    seq: int
    type: Literal["output"]
    stream: Literal["stdout", "stderr"]
    ms: int


class OutputEvent(_OutputEvent, total=False):
    """It wrote."""
    data: str
    base64: str
    skipped: int


class EndEvent(TypedDict):
    """It ended; the last event."""
    seq: int
    type: Literal["end"]
    process: "Process"


class _FileStat(TypedDict):
    path: str
    type: Literal["file", "directory", "symlink", "fifo", "socket", "device", "unknown"]
    bytes: int
    mode: str
    mtime_ms: int
    uid: int
    gid: int


class FileStat(_FileStat, total=False):
    """One entry of a folder."""
    path_base64: str
    target: str
    target_base64: str
    hash: str


class FileList(TypedDict):
    """Entries of a folder."""
    entries: List["FileStat"]
    truncated: bool
    unreadable: int


class _FileLines(TypedDict):
    path: str
    encoding: Literal["utf-8", "base64"]
    hash: str
    first: int
    lines: int
    total_lines: int
    next: Optional[int]
    bytes: int
    eol: Literal["lf", "crlf", "mixed", "none"]
    bom: bool
    cut: List[int]


class FileLines(_FileLines, total=False):
    """Lines of a file."""
    path_base64: str
    text: str
    base64: str


class _FileWritten(TypedDict):
    path: str
    hash: str
    bytes: int
    created: bool


class FileWritten(_FileWritten, total=False):
    """A file that was written."""
    path_base64: str


class Edit(TypedDict, total=False):
    """One replacement."""
    old: str
    old_base64: str
    new: str
    new_base64: str
    all: bool


class _Insertion(TypedDict):
    line: int


class Insertion(_Insertion, total=False):
    """New lines."""
    text: str
    text_base64: str


class FileEdit(TypedDict, total=False):
    """Exactly one of the three."""
    edits: List["Edit"]
    insert: "Insertion"
    unified: str
    unified_base64: str


class _FileEdited(TypedDict):
    path: str
    hash: str
    bytes: int
    replaced: int
    match: Literal["exact", "eol"]


class FileEdited(_FileEdited, total=False):
    """A file that was edited."""
    path_base64: str
    diff: str
    diff_base64: str


class _FileDeleted(TypedDict):
    path: str
    deleted: int


class FileDeleted(_FileDeleted, total=False):
    """What is gone."""
    path_base64: str


TransferAsk = TypedDict("TransferAsk", {"from": str, "from_base64": str, "to": str, "to_base64": str, "overwrite": bool}, total=False)


Transferred = TypedDict("Transferred", {"from": str, "to": str, "from_base64": str, "to_base64": str, "files": int, "bytes": int, "skipped": int}, total=False)


class FolderAsk(TypedDict, total=False):
    """A folder to be made."""
    path: str
    path_base64: str
    mode: Union[str, int]


class _FolderMade(TypedDict):
    path: str
    created: bool


class FolderMade(_FolderMade, total=False):
    """A folder that is there now."""
    path_base64: str


class _BatchOp(TypedDict):
    op: Literal["read", "write", "edit", "delete", "stat"]


class BatchOp(_BatchOp, total=False):
    """One operation; what it takes depends on `op`."""
    path: str
    path_base64: str
    if_match: str
    first: int
    count: int
    line_max: int
    text: str
    text_base64: str
    mode: Union[str, int]
    only_new: bool
    edits: List["Edit"]
    insert: "Insertion"
    unified: str
    unified_base64: str
    recursive: bool
    hash: bool


BatchAsk = List["BatchOp"]


class BatchResult(TypedDict, total=False):
    """What came of one operation: `ok` or `error`."""
    ok: Union["FileLines", "FileWritten", "FileEdited", "FileDeleted", "FileStat"]
    error: "Problem"


BatchResults = List["BatchResult"]


class Patched(TypedDict):
    """What a patch did."""
    format: Literal["unified", "v4a"]
    files: List["PatchedFile"]


PatchedFile = TypedDict("PatchedFile", {"path": str, "status": Literal["modified", "added", "deleted", "renamed", "copied"], "hunks": int, "path_base64": str, "from": str, "from_base64": str, "hash": str, "bytes": int, "match": Literal["exact", "eol"]}, total=False)


class GrepAsk(TypedDict, total=False):
    """What to search for, and where."""
    pattern: str
    pattern_base64: str
    literal: bool
    ignore_case: bool
    multiline: bool
    ignored: bool
    path: str
    path_base64: str
    glob: Union[str, List[str]]
    context: int
    max: int


class GrepFound(TypedDict):
    """What a search found."""
    matches: List["Match"]
    truncated: bool
    why: Optional[str]
    scanned: int
    scanned_bytes: int
    skipped: Dict[str, int]


class _Match(TypedDict):
    path: str
    line: int
    col: int
    text: str


class Match(_Match, total=False):
    """One place."""
    path_base64: str
    cut: bool
    before: List[str]
    after: List[str]


class GlobAsk(TypedDict, total=False):
    """Which names to look for."""
    pattern: str
    pattern_base64: str
    path: str
    path_base64: str
    max: int
    sort: Literal["path", "mtime"]
    ignored: bool


class GlobFound(TypedDict):
    """Names that were found."""
    paths: List[Union[str, "Path"]]
    truncated: bool


class _Path(TypedDict):
    path: str


class Path(_Path, total=False):
    """A name that is not UTF-8."""
    path_base64: str


class _Unpacked(TypedDict):
    path: str
    files: int
    bytes: int


class Unpacked(_Unpacked, total=False):
    """What was unpacked."""
    path_base64: str


class _WatchEvent(TypedDict):
    event: str


class WatchEvent(_WatchEvent, total=False):
    """A change below a folder."""
    path: str
    path_base64: str
    dir: bool
    why: str
