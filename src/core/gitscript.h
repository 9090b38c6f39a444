/*
 * gitscript.h - what git is told to do, as scripts for service.h. Nothing else here knows git.
 *
 * Each begins with a configuration of ours that is the only one: no hooks, filters, attributes of
 * the system, pagers, editors, helpers, submodules; two transports; what is fetched is checked. In
 * a workspace git works with a folder of ours, and only objects, refs and the index are the
 * workspace's: its configuration, hooks and attributes are never read. Names and texts are
 * arguments or standard input, never part of a script.
 */
#pragma once

#include "core/service.h"

/* Where a mirror is seen: in services, and read-only in every sandbox of a workspace of it. */
#define GIT_MIRROR "/run/caisson/repo"
#define GIT_HEAD_LAYER "/run/caisson/head"
#define GIT_REPO_BYTES_MAX                                                                         \
	(20ull << 30) /* of one pack, of a checkout: what is larger is refused                     \
	               */

/* With which a script ends, besides 0 and what git has. */
enum git_exit {
	GIT_EXIT_REMOTE = 10,   /* it cannot be asked, or says no */
	GIT_EXIT_FETCH = 11,    /* it was asked, and what came is no good */
	GIT_EXIT_NO_REF = 12,   /* there is no such name */
	GIT_EXIT_NO_REPO = 13,  /* the workspace has no git folder of its own */
	GIT_EXIT_BUSY = 14,     /* somebody has locked the index */
	GIT_EXIT_NOTHING = 15,  /* there is nothing to commit */
	GIT_EXIT_CONFLICT = 16, /* of a merge: the names follow */
	GIT_EXIT_STALE = 17,    /* a push was refused: something else is there */
	GIT_EXIT_MERGING = 18,  /* a merge or the like of the workspace's own is under way */
	GIT_EXIT_CHANGED = 19,  /* somebody else committed meanwhile */
	GIT_EXIT_LARGE = 20,    /* the files of a commit are too many, or have no room */
};

/* URL, then patterns ("refs/heads/ *"): the mirror is made or brought up to date. Prints three
 * lines: the branch that HEAD is, its commit before and after; "-" for none. */
extern const char git_script_fetch[];
/* A name: prints its commit, then "-" or the branch that it is. */
extern const char git_script_resolve[];
/* COMMIT ORIGIN: fills /work, an empty tree, with files and a git folder. */
extern const char git_script_checkout[];
/* COMMIT BRANCH ORIGIN UPSTREAM ("" for none): fills GIT_HEAD_LAYER with what makes that a branch.
 */
extern const char git_script_head[];

/* ---- in a workspace, which is at /work: gitscript_work.c ---- */

/* NAME EMAIL IS_EMPTY_FINE(0,1) [PATH...], the message on standard input: prints the new commit,
 * and its tree. */
extern const char git_script_commit[];
/* BASE ("": nothing; "-": what git_script_point printed is on standard input) [PATH...]: prints the
 * patch from that commit to the files as they are. */
extern const char git_script_patch[];
/* BASE ("": nothing): prints a line, a commit of all files as they are; and a pack of what is new
 * in it since BASE. */
extern const char git_script_point[];
/* BASE ("": nothing): prints "-", and the tree of all files as they are. */
extern const char git_script_tree[];
/* BASE: prints three lines, HEAD, a commit of all files as they are, "-"; and a pack of what is new
 * since BASE. With the same of another workspace on standard input, that one's files are in the
 * pack too, and named in the third line. */
extern const char git_script_pack[];
/* What git_script_pack printed is on standard input; or three lines, a commit, "-", "-": merged
 * into the workspace. The files of the third line are what both began with. Prints HEAD; of a
 * conflict: names, each with a NUL. */
extern const char git_script_merge[];
/* URL BRANCH LEASE ("": none; "-": it must not be there; a commit): prints HEAD. */
extern const char git_script_push[];
/* BASE: prints a bundle, or a mailbox of patches, of the commits since. */
extern const char git_script_bundle[];
extern const char git_script_between[];
extern const char git_script_mails[];

/* BASE ("": nothing): prints what is new since, as bytes and for nobody to apply: in the files as
 * they are, or commit by commit, with what was said of each. */
extern const char git_script_look_files[];
extern const char git_script_look_commits[];

/* Names below /work, each with a NUL, are on standard input: prints a tar of them, each as
 * "./NAME", without what is in a folder and those that are not there. Its first member, "ignored",
 * has the names that git ignores, each with a NUL; a folder that it ignores as a whole ends with a
 * slash. */
extern const char git_script_take[];
/* BASE_BYTES OURS_BYTES, the three files one after the other on standard input: prints what both
 * sides have made of it; of a conflict how often they meet, 0 when it is no text. */
extern const char git_script_join[];

/* Why it did not work, of one of these; FAIL_NONE when it did. */
void git_explain(const struct service_end *end, const char *what, struct fail *f);
