/*
 * schemas-workspace-internal.h - a part of the tables of schemas.c: repositories, workspaces, git.
 */
#pragma once

#include "api/schemas.h"

/* clang-format off */
static const struct member repo_ask_of[] = {
	{ "url",     NEEDED, "text",        "https://HOST[:PORT]/PATH, or a folder of the caller's: file:///PATH, /PATH" },
	{ "cred",    0,      "text|null",   "the secret that goes with its requests, by name" },
	{ "refs",    0,      "[text]|null", "what is mirrored; branches and tags unless given" },
	{ "refresh", 0,      "text|null",   "before a branch is used: always, manual, or when the last fetch is older than this duration; always unless given" },
};
static const struct member repo_of[] = {
	{ "id",         NEEDED, "text",       "rp_…" },
	{ "key",        NEEDED, "text",       "as given" },
	{ "url",        NEEDED, "text",       "in canonical form" },
	{ "cred",       NEEDED, "text|null",  "as given" },
	{ "refs",       NEEDED, "[text]",     "what is mirrored" },
	{ "refresh",    NEEDED, "text",       "always, manual or milliseconds" },
	{ "state",      NEEDED, "repo_state", "one that is refreshing can be used" },
	{ "reason",     NEEDED, "text|null",  "why it failed, or why the last refresh did" },
	{ "progress",   NEEDED, "text|null",  "the last word of a clone or fetch that is under way" },
	{ "head",       NEEDED, "text|null",  "its main branch" },
	{ "fetches",    NEEDED, "count",      "that worked" },
	{ "created_ms", NEEDED, "time",       "when it was asked for" },
	{ "fetched_ms", NEEDED, "time|null",  "when it was last brought up to date" },
	{ "old",        0,      "text|null",  "of a refresh: the commit of the main branch before" },
	{ "new",        0,      "text|null",  "and after" },
};
static const struct member repo_list_of[] = {
	{ "repos", NEEDED, "[Repo]",    "newest first" },
	{ "next",  NEEDED, "text|null", "the cursor of the next page; null: this was the last" },
};
static const struct member workspace_ask[] = {
	{ "repo",   0, "text|null",        "the key, id or URL of a repository that it begins with; a URL that is new is mirrored first" },
	{ "base",   0, "text|null",        "of it: a branch, a tag or a commit; its main branch unless given" },
	{ "branch", 0, "text|null",        "the name of a new branch for its commits; the base unless given" },
	{ "mode",   0, "=edit|=read|null", "read: nobody can write to it, the mount holds that; edit unless given" },
	{ "pin",    0, "bool|null",        "it never expires" },
	{ "ttl",    0, "Duration|null",    "to the trash after this long without use" },
	{ "spec",   0, "Spec|null",        "of the sandbox that its commands run in by default" },
	{ "disk",   0, "Size|null",        "the most that its own files may need" },
	{ "inodes", 0, "count|null",       "how many files of its own it may have" },
};
static const struct member workspace_change_of[] = {
	{ "pin",  0, "bool|null",     "it never expires" },
	{ "ttl",  0, "Duration|null", "to the trash after this long without use; 0: never" },
	{ "spec", 0, "Spec|null",     "of the sandbox that its commands run in by default; the one that runs stays as it is" },
};
static const struct member workspace[] = {
	{ "id",          NEEDED, "text",            "ws_…" },
	{ "key",         NEEDED, "text|null",       "as given" },
	{ "state",       NEEDED, "workspace_state", "in the trash it can be had back for a day" },
	{ "reason",      NEEDED, "text|null",       "why it is in that state" },
	{ "mode",        NEEDED, "=edit|=read",     "as given" },
	{ "repo",        NEEDED, "text|null",       "the repository that it is of" },
	{ "base",        NEEDED, "text|null",       "what was asked for: a branch, a tag, a commit" },
	{ "base_commit", NEEDED, "text|null",       "what that was" },
	{ "branch",      NEEDED, "text|null",       "that it works on" },
	{ "parent",      NEEDED, "text|null",       "the one that it is a fork of" },
	{ "rev",         NEEDED, "count",           "grows with every change that was noticed" },
	{ "dirty",       NEEDED, "bool",            "it is not what it began as" },
	{ "pin",         NEEDED, "bool",            "it never expires" },
	{ "ttl_ms",      NEEDED, "count|null",      "without use; null: for ever" },
	{ "spec",        NEEDED, "Spec|null",       "of its default sandbox" },
	{ "disk",        NEEDED, "count|null",      "bound of its own files; null: none" },
	{ "created_ms",  NEEDED, "time",            "when it was made" },
	{ "used_ms",     NEEDED, "time",            "when it was last opened" },
	{ "ended_ms",    NEEDED, "time|null",       "since when it is in the trash" },
	{ "expires_ms",  NEEDED, "time|null",       "when it goes there by itself" },
	{ "sandboxes",   0,      "[text]",          "that work on it now" },
	{ "usage",       0,      "WorkspaceUsage",  "when it was asked for" },
};
static const struct member workspace_usage[] = {
	{ "unique", NEEDED, "count", "bytes that are its own: files and what its points keep" },
	{ "shared", NEEDED, "count", "bytes that others may have too: of its points, and the layers that it stands on" },
	{ "files",  NEEDED, "count|null", "of its own, besides what it began with; null: in a list, of one with a volume" },
};
static const struct member gc_ask[] = {
	{ "dry_run", 0, "bool|null", "only say what would be done" },
};
static const struct member gc_of[] = {
	{ "dry_run",     NEEDED, "bool",         "nothing was done" },
	{ "bytes",       NEEDED, "count",        "in the store before it" },
	{ "freed_bytes", NEEDED, "count",        "what went, or would go" },
	{ "max",         NEEDED, "count|null",   "store.max of the config; null: no bound" },
	{ "high",        NEEDED, "count|null",   "above it room is made" },
	{ "low",         NEEDED, "count|null",   "until no more than this is left" },
	{ "decisions",   NEEDED, "[GcDecision]", "one for each thing that could go" },
};
static const struct member gc_decision[] = {
	{ "kind",   NEEDED, "=files|=checkout|=trash|=points",  "files: of a workspace, which stays; trash: a workspace with all it has" },
	{ "id",     NEEDED, "text",                             "of the workspace or the repository; of points how many" },
	{ "key",    NEEDED, "text|null",                        "of the workspace, or what was checked out" },
	{ "bytes",  NEEDED, "count",                            "that it takes" },
	{ "action", NEEDED, "=keep|=remove|=removed|=failed",   "remove: by a dry run" },
	{ "why",    NEEDED, "text",                             "the reason" },
};
static const struct member fsck_ask[] = {
	{ "repair", 0, "bool|null", "mend what can be mended without a loss" },
};
static const struct member fsck_of[] = {
	{ "findings",   NEEDED, "[FsckFinding]", "what is not as it should be" },
	{ "found",      NEEDED, "count",         "how many" },
	{ "mended",     NEEDED, "count",         "how many of these are mended" },
	{ "workspaces", NEEDED, "count",         "that were looked at" },
	{ "points",     NEEDED, "count",         "that were looked at" },
	{ "trees",      NEEDED, "count",         "that were looked at" },
};
static const struct member fsck_finding[] = {
	{ "kind",    NEEDED, "=workspace|=point|=checkpoint|=blob|=tree|=volume|=store", "what it is about" },
	{ "id",      NEEDED, "text",    "of that; of what no row names its number on disk" },
	{ "problem", NEEDED, "text",    "what is wrong" },
	{ "mended",  NEEDED, "bool",    "it is as it should be now" },
	{ "points",  0,      "[count]", "of a blob: checkpoints that hold it" },
};
static const struct member workspace_list_of[] = {
	{ "workspaces", NEEDED, "[Workspace]", "newest first" },
	{ "next",       0,      "text|null",   "the cursor of the next page; null: this was the last" },
};
static const struct member fork_ask[] = {
	{ "n",   0, "count|null", "how many; 1 unless given, at most 1000" },
	{ "key", 0, "text|null",  "of the only one; of several KEY-1, KEY-2 and so on" },
	{ "at",  0, "text|null",  "the point that they begin with; as it is now unless given" },
};
static const struct member snapshot_ask[] = {
	{ "label", 0, "text|null", "to know it by" },
};
static const struct member undo_ask[] = {
	{ "steps",     0, "count|null",           "1 unless given" },
	{ "to",        0, "text|null",            "px_…: that command and all after it" },
	{ "processes", 0, "=keep|=kill|null",     "kill: end those that are in the way of a large change; else it is `busy`" },
};
static const struct member redo_ask[] = {
	{ "steps",     0, "count|null",           "1 unless given" },
	{ "processes", 0, "=keep|=kill|null",     "as of undo" },
};
static const struct member restore_ask[] = {
	{ "to",        0, "text|null",            "a point: cp_…, sn_…, px_… or `base`" },
	{ "snapshot",  0, "text|null",            "the same" },
	{ "processes", 0, "=keep|=kill|null",     "as of undo" },
};
static const struct member restored_of[] = {
	{ "from",      NEEDED, "text|null", "the point that it was at" },
	{ "to",        NEEDED, "text|null", "the point that it is at" },
	{ "files",     NEEDED, "count",     "that were different" },
	{ "workspace", NEEDED, "Workspace", "as it is now" },
};
static const struct member point[] = {
	{ "id",            NEEDED, "text",                   "cp_…, of a snapshot sn_…" },
	{ "workspace",     NEEDED, "text",                   "whose it is" },
	{ "kind",          NEEDED, "=auto|=snapshot|=undo",  "undo: what was there before one" },
	{ "label",         NEEDED, "text|null",              "as given, or what made it" },
	{ "before",        NEEDED, "text|null",              "the point that it follows" },
	{ "files",         NEEDED, "count",                  "that differ from that" },
	{ "bytes",         NEEDED, "count",                  "that were kept for it" },
	{ "durable",       NEEDED, "bool",                   "it would survive a loss of power" },
	{ "created_ms",    NEEDED, "time",                   "when it was kept" },
	{ "process",       NEEDED, "text|null",              "the command whose end it is" },
	{ "cmd",           0,      "[text]|null",            "of that" },
	{ "process_state", 0,      "process_state",          "of that" },
	{ "exit_code",     0,      "integer|null",           "of that" },
	{ "current",       0,      "bool",                   "it leads to what is there now; else it was undone" },
};
static const struct member history_of[] = {
	{ "points", NEEDED, "[Point]",   "newest first" },
	{ "head",   NEEDED, "text|null", "the last point, which it is at or has changed since" },
	{ "origin", NEEDED, "text|null", "the point that it began with; of a fork one of its parent's" },
	{ "undo",   NEEDED, "count",     "steps that can be undone, a thousand at most" },
	{ "redo",   NEEDED, "count",     "steps that can be done again" },
	{ "next",   NEEDED, "text|null", "the cursor of the next page; null: this was the last" },
};
static const struct member commit_ask[] = {
	{ "message",     NEEDED, "text",             "at most 64 KiB" },
	{ "paths",       0,      "[text]|null",      "only these, from the workspace's root; everything that is not ignored unless given" },
	{ "author",      0,      "CommitAuthor|null", "agent unless given" },
	{ "allow_empty", 0,      "bool|null",        "also when nothing has changed" },
};
static const struct member take_ask[] = {
	{ "at",           0, "text|null",   "a point: cp_…, sn_…, px_…, `base` or `head`; as it is now unless given" },
	{ "paths",        0, "[text]|null", "names from the workspace's root" },
	{ "paths_base64", 0, "[text]|null", "those that are no text" },
};
static const struct member apply_ask[] = {
	{ "to",      NEEDED, "text",        "the folder, absolute" },
	{ "at",      0,      "text",        "the point of the workspace that is taken" },
	{ "tree",    NEEDED, "text",        "SHA-256 of all that would be written: a decision is about that" },
	{ "files",   NEEDED, "[ApplyFile]", "those that execute later" },
	{ "timeout", 0,      "duration",    "until no answer is a no" },
};
static const struct member apply_file[] = {
	{ "path", NEEDED, "text", "its name below the folder" },
	{ "why",  NEEDED, "text", "how it executes" },
};
static const struct member join_ask[] = {
	{ "base",   NEEDED, "text", "base64" },
	{ "ours",   NEEDED, "text", "base64" },
	{ "theirs", NEEDED, "text", "base64" },
};
static const struct member joined_of[] = {
	{ "merged",    0, "text",  "base64" },
	{ "conflicts", 0, "count", "how often both have changed the same lines; 0: it is no text" },
};
static const struct member commit_author[] = {
	{ "name",  0, "text", "on one line" },
	{ "email", 0, "text", "on one line" },
};
static const struct member merge_ask[] = {
	{ "from", NEEDED, "text", "a workspace, or a branch, tag or commit of its repository" },
};
static const struct member push_ask[] = {
	{ "branch",           0, "text|null",      "its own unless given, or caisson/KEY" },
	{ "force_with_lease", 0, "bool|text|null", "true: over what was last seen there; a commit: over that; \"\": only when it is not there" },
	{ "cred",             0, "text|null",      "the secret that goes with it, by name; that of the repository unless given" },
};
static const struct member pull_ask[] = {
	{ "title",  NEEDED, "text",   "a line" },
	{ "body",   0,      "text|null", "what it is about" },
	{ "branch", 0,      "text|null", "that was pushed: that of the workspace unless given, or `caisson/KEY`" },
	{ "base",   0,      "text|null", "where it is to go: what HEAD of the repository is unless given" },
	{ "forge",  0,      "text|null", "`github` or `gitlab`: by the host's name unless given" },
	{ "api",    0,      "text|null", "the base of its API; `https://api.HOST`, of GitLab `https://HOST/api/v4`, unless given" },
	{ "cred",   0,      "text|null", "the name of the secret that goes there; that of the repository unless given" },
	{ "draft",  0,      "bool|null", "it is not ready" },
};
static const struct member pull_of[] = {
	{ "url",    NEEDED, "text",   "for people" },
	{ "number", NEEDED, "count",  "its number at the forge" },
	{ "forge",  NEEDED, "text",   "`github` or `gitlab`" },
	{ "branch", NEEDED, "text",   "what it has" },
	{ "base",   NEEDED, "text",   "where it is to go" },
};
static const struct member committed_of[] = {
	{ "sha",       0, "text",       "HEAD of the workspace" },
	{ "tree",      0, "text",       "of that commit" },
	{ "remote",    0, "text",       "the branch that it was pushed to" },
	{ "conflicts", 0, "[Conflict]", "nothing was changed" },
};
static const struct member applied_ask[] = {
	{ "at",      NEEDED, "text",            "the point that is applied" },
	{ "to",      NEEDED, "text",            "where: the folder of the caller's" },
	{ "state",   NEEDED, "=begun|=done|=failed", "begun: before the first file is written there" },
	{ "reason",  0,      "text|null",       "why it failed" },
	{ "changes", 0,      "[AppliedChange]", "what is taken; the ledger has the first of them" },
};
static const struct member applied_change[] = {
	{ "path",           NEEDED | BYTES, "text", "from the folder" },
	{ "action",         NEEDED, "text", "what is done to it there" },
	{ "mode",           0,      "text", "octal digits" },
	{ "mode_before",    0,      "text", "octal digits" },
	{ "executes_later", 0,      "text", "that it does, and why" },
};
static const struct member applied_of[] = {
	{ "tree", NEEDED, "text", "what git calls the files of that point" },
};
static const struct member conflict_of[] = {
	{ "path", NEEDED | BYTES, "text", "from the workspace's root" },
};
static const struct member attestation_of[] = {
	{ "payload",     NEEDED, "text",        "the statement, base64" },
	{ "payloadType", NEEDED, "text",        "application/vnd.in-toto+json" },
	{ "signatures",  NEEDED, "[Signature]", "by the ledger's key" },
};
static const struct member signature_of[] = {
	{ "keyid", NEEDED, "text", "what the ledger calls its key" },
	{ "sig",   NEEDED, "text", "Ed25519, base64" },
};
static const struct member changes_of[] = {
	{ "counts", NEEDED, "{count}",   "files by their status" },
	{ "files",  0,      "[Change]",  "unless only `stat` was asked for" },
};
static const struct member change_of[] = {
	{ "path",   NEEDED | BYTES, "text", "from the workspace's root" },
	{ "status", NEEDED,         "=A|=M|=D|=R|=T|=mode|=xattr", "A added, M content, D deleted, R renamed, T another type; mode: mode or owner, xattr: attributes" },
	{ "type",   NEEDED,         "text",  "file, dir, symlink, fifo, socket" },
	{ "mode",   NEEDED,         "text",  "octal digits; of a deleted one what it had" },
	{ "bytes",  NEEDED,         "count", "of a file" },
	{ "from",   BYTES,          "text",  "of a renamed one: what it was; what else changed in it has entries of its own" },
};
static const struct member workspace_left[] = {
	{ "id",         NEEDED, "text",      "ws_…" },
	{ "rev",        NEEDED, "count",     "of it then" },
	{ "dirty",      NEEDED, "bool",      "it was not what it began as" },
	{ "checkpoint", NEEDED, "text|null", "the point; null: nothing had changed" },
	{ "files",      NEEDED, "count",     "that differed" },
	{ "reason",     0,      "text",      "why there is no point" },
	{ "at",         NEEDED, "count",     "the number of the point that it was at then" },
};
/* clang-format on */
