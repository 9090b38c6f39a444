/*
 * gates.h - the gate's program, caisson-gate: started when the first sandbox with a network is
 * made, one process for all of them. It forks a child for every socket that it is sent and does
 * nothing else; what it finds at its start is descriptor 3, where they come, 4, the way to the
 * package cache, and 5, the key that secrets are sealed to. It ends with its launcher.
 */
#pragma once

#include <sys/types.h>

#include "engine/cgroup.h"
#include "launcher/helper.h"

struct gates {
	bool is_root; /* root mode: it gets an id of its own */
	uid_t id;
	const char *ca;              /* file of more certificates that it trusts; or NULL */
	const struct cgroup *cgroup; /* that the launcher lives in, and it does not; or NULL */
	int cache_fd;                /* the way to the package cache, which it gets; -1: none */
	int state_fd;                /* of the folder that its key lies in; -1: it has none */
	const char *key_source;      /* of another key (launcher/sealkey.h); or NULL */
	pid_t pid;                   /* 0: not running */
	int channel_fd;              /* -1: the same */
	uint64_t started_ms, again_ms;
	unsigned int backoff_ms;
	char reason[HELPER_REASON_MAX]; /* why the last one never ran; empty: not known */
};

/* A socket whose other end a new child has. The program is started if it does not run; not at once
 * when it has just died. */
int gates_ask(struct gates *g, uint64_t now_ms, struct err *e) MUST_USE;
void gates_ended(struct gates *g, uint64_t now_ms); /* it was waited for */
void gates_done(struct gates *g);
