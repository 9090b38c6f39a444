/*
 * policy.h - the words in which a table of system calls is written.
 *
 * Pure data: tools/gen-filters.c compiles such tables into filters.h while we build. Nothing reads
 * them at run time.
 */
#pragma once

#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>

/* Verdicts are the kernel's own words. BY_ARGS(n) never reaches the kernel: it becomes a jump to
 * the code of policy_args[n]. */
#define ALLOW SECCOMP_RET_ALLOW
#define FAIL(error) (SECCOMP_RET_ERRNO | (error))
#define DENY FAIL(EPERM)
#define ABSENT FAIL(ENOSYS)
#define NOTIFY SECCOMP_RET_USER_NOTIF
#define BY_ARGS(n) (SECCOMP_RET_TRACE | (n))

struct policy_group {
	uint32_t verdict;
	const char *why;
	const char *calls; /* names; name@N where N is younger than the compiler's own list */
};

/* A switch over one argument. A verdict BY_ARGS looks at a further one. */
struct policy_args {
	uint32_t arg, mask;
	struct {
		uint32_t value, verdict; /* verdict 0: no more cases */
	} cases[8];
	uint32_t otherwise;
};

#define LOW32 UINT32_MAX
#define SOCK_KIND 0xf /* the rest of `type` is SOCK_CLOEXEC and SOCK_NONBLOCK */
