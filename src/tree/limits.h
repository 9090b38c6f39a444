/*
 * limits.h - every ceiling of the tree worker, with its reason. base/limits.h has the others.
 */
#pragma once

/* clang-format off */
#define TREE_WHOLE_MAX (64u << 20)     /* a file that is edited, patched or shown by lines: in memory */
#define TREE_STREAM_MAX (16ull << 30)  /* one READ, WRITE, COPY or archive; sparse files claim terabytes */
#define TREE_JSON_MAX (64u << 20)      /* the body of EDIT, BATCH, …, and any one answer in JSON */
#define TREE_HASH_WHOLE (1u << 20)     /* a file this small is read before its answer begins */
#define TREE_TEXT_MAX (4u << 20)       /* bytes of one LINES answer; the rest is at `next` */
#define TREE_LINES_DEFAULT 2000        /* what a model is shown when it does not say */
#define TREE_LINE_DEFAULT 2000         /* bytes of one line; minified files have one line */
#define TREE_LINE_MAX (1u << 20)
#define TREE_DIFF_MAX (64u << 10)      /* bytes of the diff in an answer; it is there to be looked at */
#define TREE_EDITS_MAX 1000            /* edits of one file in one call */
#define TREE_OPS_MAX 1000              /* operations of one batch */
#define TREE_PATCH_FILES_MAX 4096
#define TREE_PATCH_BYTES_MAX (256u << 20) /* of all files that one patch touches, in memory */
#define TREE_ENTRIES_DEFAULT 10000
#define TREE_ENTRIES_MAX 100000        /* entries of one list or glob */
#define TREE_NAMES_MAX (64u << 20)     /* bytes of names of one directory, or of one walk's open levels */
/* Levels of one walk. The kernel has no limit of its own, but Landlock asks every folder above for
 * each name that is opened: all of n levels cost n * n. No path that is deeper can be named. */
#define TREE_DEPTH_MAX 4096
#define TREE_WALK_PATH_MAX (16u << 20) /* bytes of a path in a walk, which PATH_MAX does not bound */
#define TREE_LINK_HOPS_MAX 40          /* as the kernel: MAXSYMLINKS */
#define TREE_MATCHES_DEFAULT 200
#define TREE_MATCHES_MAX 10000
#define TREE_CONTEXT_MAX 20
#define TREE_PATTERN_MAX (16u << 10)
#define TREE_GREP_WINDOW (1u << 20)    /* bytes of a file in memory; a longer line is searched in pieces */
#define TREE_MULTILINE_MAX (16u << 20) /* a file searched across lines is in memory whole */
#define TREE_MATCH_STEPS 40000000      /* of the matcher between two looks at the clock */
#define TREE_MATCH_STEPS_MIN 1000      /* at any one place of the text */
#define TREE_MATCH_SLICE 4096          /* places tried between two looks */
#define TREE_MATCH_SLICES 64           /* of one text, at most: each may look at all of it */
#define TREE_MATCH_HEAP_KIB (32u << 10)
#define TREE_GLOB_MAX 4096             /* bytes of a glob */
#define TREE_BRACES_MAX 64             /* what {a,b}{c,d} may unfold to */
#define TREE_IGNORE_BYTES_MAX (1u << 20)
#define TREE_IGNORE_RULES_MAX 4096     /* of all open levels of a walk */
#define TREE_IGNORE_RULE_MAX 512       /* bytes of one */
#define TREE_GLOB_PATH_MAX 16384       /* a longer path matches nothing: time is pattern times path */
#define TREE_WATCHES_MAX 8192          /* directories; the kernel's own limit is per user */
#define TREE_EVENTS_MAX 4096           /* waiting to be merged or sent; others wait in the kernel */
#define TREE_EVENT_WAIT_MS 20          /* events of one file within it are one */
#define TREE_ARCHIVE_ENTRIES_MAX 1000000
#define TREE_RATIO_FREE (64u << 20)    /* bytes that may be unpacked from anything */
#define TREE_RATIO_MAX 200             /* beyond: bytes from one; systems pack 3 to 20 times */
#define TREE_BLOBS_MAX 512             /* of an OCI layout: each is an open file */
#define TREE_PASSWD_MAX (64u << 10)    /* of an image, to find its users by name */
#define TREE_XATTR_MAX (64u << 10)     /* bytes of one attribute; the kernel's own limit */
#define TREE_FREE_EVERY (16u << 20)    /* bytes written between two looks at the disk */
#define TREE_DIFF_EDITS_MAX 1024       /* the diff algorithm needs the square of it */
/* clang-format on */
