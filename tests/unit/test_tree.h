/*
 * test_tree.h - a tree worker of a test's own, on a directory of its own, and how to ask it.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "test.h"
#include "tree/serve.h"
#include "wire/tree.h"

struct rig {
	char root[64]; /* the worker's root */
	int dir_fd;    /* of it */
	int socket_fd;
	pid_t pid;
	uint32_t id;
	bool is_confined; /* it will give up all files but those below its root */
};

struct reply {
	struct tree_answer first, last; /* of ANSWER and END; the same when there was one packet */
	struct str data;
	json_t *json;
};

static inline void reply_done(struct reply *r)
{
	str_done(&r->data);
	json_decref(r->json);
	r->json = NULL;
}

/* A worker of this user on this directory. */
static inline void rig_start(struct rig *r, const char *root, uid_t uid)
{
	int fds[2];

	r->dir_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(r->dir_fd >= 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	r->pid = fork();
	CHECK(r->pid >= 0);
	if (r->pid == 0) {
		close(fds[0]);
		umask(0);
		if (uid > 0 && (setgid(uid) < 0 || setuid(uid) < 0))
			_exit(1);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) <
		    0) /* as the launch does: Landlock asks for it */
			_exit(1);
		tree_serve(fds[1], r->dir_fd);
		if (r->is_confined)
			_exit(0);
		exit(0); /* ASan looks for leaks of the worker, in /proc */
	}
	close(fds[1]);
	r->socket_fd = fds[0];
}

static inline void rig_open(struct rig *r)
{
	*r = (struct rig){ 0 };
	snprintf(r->root, sizeof r->root, "/tmp/tree-test-XXXXXX");
	CHECK(mkdtemp(r->root));
	chmod(r->root, 0755);
	rig_start(r, r->root, 0);
}

/* The worker ends by itself, well, and its directory goes. */
static inline void rig_close(struct rig *r)
{
	int status = 0;

	close(r->socket_fd);
	CHECK_INT(waitpid(r->pid, &status, 0), r->pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(r->dir_fd);
	if (!r->root[0])
		return;
	pid_t pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", r->root, NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
}

static inline void rig_send(struct rig *r, const void *bytes, size_t n, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)bytes, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof control.bytes;
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	CHECK_INT(sendmsg(r->socket_fd, &msg, MSG_NOSIGNAL), (long long)n);
}

/* Sends a request with its whole body; `fd` goes along when it is not -1. */
static inline void rig_ask(struct rig *r, struct tree_ask ask, int fd)
{
	static unsigned char buf[TREE_PACKET_MAX];
	struct err e;
	size_t taken = 0;

	ask.id = ++r->id;
	ask.flags |= fd >= 0 ? TREE_FD : 0;
	int n = tree_ask_build(&ask, buf, &taken, &e);

	CHECK(n > 0);
	rig_send(r, buf, (size_t)n, fd);
	while (taken < ask.body.len) {
		size_t left = ask.body.len - taken;
		size_t piece = left < TREE_PIECE_MAX ? left : TREE_PIECE_MAX;
		struct tree_head head = { TREE_BODY, piece == left ? TREE_LAST : 0, ask.id,
			                  (uint32_t)piece };

		rig_send(r, buf, tree_piece_build(head, ask.body.at + taken, buf), -1);
		taken += piece;
	}
}

static inline void rig_cancel(struct rig *r)
{
	unsigned char buf[sizeof(struct tree_head)];
	struct tree_head head = { TREE_CANCEL, 0, r->id, 0 };

	rig_send(r, buf, tree_piece_build(head, NULL, buf), -1);
}

/* Something is asked of a verb that is at work. */
static inline void rig_prod(struct rig *r)
{
	unsigned char buf[sizeof(struct tree_head)];
	struct tree_head head = { TREE_BODY, 0, r->id, 0 };

	rig_send(r, buf, tree_piece_build(head, NULL, buf), -1);
}

/* One packet of the answer; false when it was the last. The error of a stream that broke takes the
 * place of what came before it. */
static inline bool rig_packet(struct rig *r, struct reply *out)
{
	static unsigned char buf[TREE_PACKET_MAX + 1];
	struct tree_packet p;
	struct err e = { 0 };
	ssize_t n = recv(r->socket_fd, buf, sizeof buf, 0);

	CHECK(n > 0);
	CHECK_INT(tree_packet_parse(buf, (size_t)n, &p, &e), 0);
	CHECK_INT(p.head.id, r->id);
	if (p.head.type == TREE_ANSWER)
		out->first = p.answer;
	if (p.head.type != TREE_DATA)
		out->last = p.answer;
	if (p.head.type == TREE_END && p.answer.code != TREE_OK)
		str_clear(&out->data);
	str_addn(&out->data, p.data.at, p.data.len);
	return !(p.head.flags & TREE_LAST);
}

static inline void rig_reply(struct rig *r, struct reply *out)
{
	json_error_t why;

	reply_done(out);
	*out = (struct reply){ .data = { .max = SIZE_MAX } };
	while (rig_packet(r, out))
		;
	if (out->last.content != TREE_JSON && out->last.code == TREE_OK)
		return;
	if (out->data.len == 0)
		return;
	out->json = json_loadb(out->data.data, out->data.len, JSON_ALLOW_NUL, &why);
	if (!out->json)
		printf("# %s\n", out->data.data);
	CHECK(out->json);
}

/* A verb on a path with a body that is text; returns the code. */
static inline enum tree_code rig_do(struct rig *r, enum tree_verb verb, uint32_t flags,
                                    const char *path, const char *body, struct reply *out)
{
	struct tree_ask ask = { .flags = flags,
		                .request = { .verb = verb },
		                .path = span_of(path),
		                .body = span_of(body) };

	rig_ask(r, ask, -1);
	rig_reply(r, out);
	return (enum tree_code)out->last.code;
}

#define CHECK_CODE(got, want) CHECK_STR(tree_code_name(got), tree_code_name(want))

static inline const char *reply_text(const struct reply *r, const char *key)
{
	return json_string_value(json_object_get(r->json, key));
}

static inline long long reply_number(const struct reply *r, const char *key)
{
	return json_integer_value(json_object_get(r->json, key));
}

/* Files of the rig, by hand. */
static inline void put_bytes(struct rig *r, const char *path, const void *bytes, size_t n)
{
	AUTO(fd_close)
	int fd = openat(r->dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, bytes, n), (long long)n);
}

static inline void put(struct rig *r, const char *path, const char *text)
{
	put_bytes(r, path, text, strlen(text));
}

/* What a file holds; valid until the next call. NULL when there is none. */
static inline const char *got(struct rig *r, const char *path)
{
	static char buf[1 << 20];
	AUTO(fd_close) int fd = openat(r->dir_fd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	ssize_t n = read(fd, buf, sizeof buf - 1);

	CHECK(n >= 0);
	buf[n] = '\0';
	return buf;
}

static inline bool is_there(struct rig *r, const char *path)
{
	struct stat st;

	return fstatat(r->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* How many entries a directory has; not asked of the worker, which hides its own. */
static inline int entries_of(struct rig *r, const char *path)
{
	int n = 0, fd = openat(r->dir_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);

	CHECK(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return n;
}
