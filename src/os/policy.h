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
 * the code of policy_args[n]. NOTIFY is a report, and allowed in a test build without a listener.
 */
#define ALLOW SECCOMP_RET_ALLOW
#define FAIL(error) (SECCOMP_RET_ERRNO | (error))
#define DENY FAIL(EPERM)
#define ABSENT FAIL(ENOSYS)
#define NOTIFY SECCOMP_RET_USER_NOTIF
#define ASK                                                                                        \
	(SECCOMP_RET_USER_NOTIF | 1) /* the monitor decides; the kernel does not look at the 1 */
#define BY_ARGS(n) (SECCOMP_RET_TRACE | (n))

struct policy_group {
	uint32_t verdict;
	const char *why;
	const char *calls; /* names; name@N where N is younger than the compiler's own list */
};

/* A switch over the low 32 bits of one argument, or with HIGH() over the high ones. A verdict
 * BY_ARGS looks at a further one. */
struct policy_args {
	uint32_t arg, mask;
	struct {
		uint32_t value, verdict; /* verdict 0: no more cases */
	} cases[12];
	uint32_t otherwise;
};

#define POLICY_HIGH 8u /* the kernel passes six arguments */
#define HIGH(arg) ((arg) | POLICY_HIGH)

#define LOW32 UINT32_MAX
#define SOCK_KIND 0xf /* the rest of `type` is SOCK_CLOEXEC and SOCK_NONBLOCK */
