/*
 * limits.h - every ceiling on what comes from outside, with its reason.
 */
#pragma once

/* clang-format off */
#define SPEC_BYTES_MAX (4u << 20)     /* the files of its mocks are in it, as base64 */
#define MOCK_FILES_MAX 1000           /* of one folder that a host is played from */
#define MOCK_BYTES_MAX (2u << 20)     /* of these together; kept with the sandbox, and by its gate */
#define SPEC_DEPTH_MAX 16             /* nesting of a YAML or JSON spec */
#define FS_ENTRIES_MAX 64             /* mounts of one sandbox; the kernel allows 100,000 */
#define ENV_ENTRIES_MAX 1024          /* variables of one command */
#define ARGV_BYTES_MAX (3u << 19)     /* argv + env of one command; the kernel takes 2 MiB, pointers and all */
#define ARGV_COUNT_MAX 65536          /* strings in argv + env */
#define PATH_TEXT_MAX 4096            /* PATH_MAX, with the NUL */
#define NAME_TEXT_MAX 256             /* users, images, secrets, hosts (a DNS name has 253) */
#define INLINE_OUTPUT_MAX (48ul << 10)/* bytes of one stream in a result, head + tail */
/* clang-format on */
