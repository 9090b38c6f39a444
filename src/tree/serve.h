/*
 * serve.h - the loop of a tree worker.
 *
 * In the sandbox's namespaces, as its user, without capabilities, behind its seccomp filter and
 * Landlock rules, in its cgroup: what a worker can reach is what the sandbox can reach, and nothing
 * here is trusted by anybody outside.
 */
#pragma once

/* Answers requests (wire/tree.h) until the other end closes. Paths begin at root_fd. */
void tree_serve(int socket_fd, int root_fd);
