/*
 * test_vault.h - a vault with a store of its own, the launcher and the daemon that talk to it, and
 * a shell that works in the workspace as a sandbox would.
 *
 * The test is in a mount namespace of its own. Root mode; the ids are behind the last slot.
 */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/vec.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/unix.h"
#include "test.h"
#include "vault/serve.h"
#include "wire/hash.h"
#include "wire/vault.h"

#define RIG_ID_BASE 0x7fff0000u
#define RIG_WORKSPACE 5

struct rig {
	char folder[64], work[96];
	int folder_fd, lock_fd;
	pid_t pid;
	int launcher, client;
	uint32_t tag;
	struct vault_open open;
	struct vault_packet answer;
	int fd; /* that came with it */
	struct str out;
	char *fault; /* another program, with this in its environment (os/fault.h) */
};

static const char *rig_place = "/var/tmp"; /* a disk */

static inline void rig_fold(struct rig *r, const char *name)
{
	int status = os_mkdirat(r->folder_fd, name, 0700);

	CHECK(status == 0 || status == -EEXIST);
}

/* What a shell says, as root of the host; `fmt` is its script. The exit status. */
static inline int rig_run(struct rig *r, uint32_t inside, const char *folder, const char *script)
{
	int fds[2], status;
	char buf[4096];

	CHECK(pipe(fds) == 0);
	str_clear(&r->out);
	r->out.max = 1u << 24;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		umask(022);
		if (chdir(folder) < 0)
			_exit(124);
		if (inside != UINT32_MAX) {
			unsigned int id = RIG_ID_BASE + inside;

			if (os_drop_groups() < 0 || os_set_ids(id, id) < 0)
				_exit(123);
		}
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(126);
	}
	close(fds[1]);
	for (ssize_t n; (n = read(fds[0], buf, sizeof buf)) > 0;)
		str_addn(&r->out, buf, (size_t)n);
	close(fds[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In the workspace, as the agent; must succeed. */
static inline const char *rig_do(struct rig *r, const char *script)
{
	if (rig_run(r, 1000, r->work, script) != 0) {
		printf("# %s\n", script);
		CHECK_STR(str_text(&r->out), "");
		CHECK(false);
	}
	return str_text(&r->out);
}

/* On the host, in the rig's folder; must succeed. */
static inline const char *rig_host(struct rig *r, const char *script)
{
	if (rig_run(r, UINT32_MAX, r->folder, script) != 0) {
		printf("# %s\n", script);
		CHECK_STR(str_text(&r->out), "");
		CHECK(false);
	}
	return str_text(&r->out);
}

static struct str rig_seen; /* of the walk below */
static size_t rig_root_len;

static inline void rig_see_content(const char *path, const struct stat *st)
{
	char buf[65536], text[TREE_HASH_TEXT], target[PATH_MAX];
	struct hash h;

	if (S_ISLNK(st->st_mode)) {
		ssize_t n = readlink(path, target, sizeof target);
		str_addf(&rig_seen, " -> %.*s", (int)n, target);
	}
	if (!S_ISREG(st->st_mode))
		return;
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	hash_init(&h);
	/* Files that are as good as empty: the beginning and the end say enough. */
	off_t end = st->st_size > (64 << 20) ? st->st_size - (64 << 10) : 0;
	for (ssize_t n; (n = pread(fd, buf, sizeof buf, end)) > 0; end += n)
		hash_add(&h, (struct span){ buf, (size_t)n });
	hash_text(&h, text);
	str_addf(&rig_seen, " %lld %.16s", (long long)st->st_size, text);
	/* Names of one file in the layers are two files once one of them was written. */
	if (strncmp(path + rig_root_len, "/new/", 5) == 0)
		str_addf(&rig_seen, " n%lu", (unsigned long)st->st_nlink);
}

static inline int rig_see(const char *path, const struct stat *st, int type, struct FTW *f)
{
	char names[1024], value[256];
	ssize_t n = llistxattr(path, names, sizeof names);

	(void)type;
	(void)f;
	str_addf(&rig_seen, "%s|%o %u:%u %lld.%09ld", path + rig_root_len, st->st_mode, st->st_uid,
	         st->st_gid, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	rig_see_content(path, st);
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t len = lgetxattr(path, names + at, value, sizeof value);
		if (strncmp(names + at, "user.", 5) == 0)
			str_addf(&rig_seen, " %s=%.*s", names + at, (int)len, value);
	}
	str_add(&rig_seen, "\n");
	return 0;
}

static inline int rig_by_line(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The lines of a text, sorted; it is cut at their ends. The caller frees it. */
static inline char *rig_sorted(char *text)
{
	VEC(char *) lines = { 0 };
	struct str out = { .max = 1u << 28 };

	for (char *rest = text, *line; (line = strsep(&rest, "\n")) && rest;)
		vec_push(&lines, line);
	if (lines.at)
		qsort(lines.at, lines.len, sizeof *lines.at, rig_by_line);
	for (size_t i = 0; i < lines.len; i++)
		str_addf(&out, "%s\n", lines.at[i]);
	vec_done(&lines);
	return out.data;
}

/* Everything that can be seen below a folder, one line for each, sorted. The caller frees it. */
static inline char *rig_view(const char *folder)
{
	str_done(&rig_seen);
	rig_seen = (struct str){ .max = 1u << 28 };
	rig_root_len = strlen(folder);
	CHECK_INT(nftw(folder, rig_see, 64, FTW_PHYS), 0);
	return rig_sorted(rig_seen.data);
}

static inline char *rig_look(const struct rig *r)
{
	return rig_view(r->work);
}

static inline int rig_userns(uint32_t base)
{
	char path[64], line[64];
	int status, pid = os_clone((struct clone_opts){ .flags = CLONE_NEWUSER });

	if (pid == 0) {
		pause();
		_exit(0);
	}
	CHECK(pid > 0);
	snprintf(line, sizeof line, "0 %u 65535\n", base);
	snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
	CHECK_INT(os_write_file(AT_FDCWD, path, line), 0);
	snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
	CHECK_INT(os_write_file(AT_FDCWD, path, line), 0);
	snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
	int fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CHECK(fd >= 0);
	return fd;
}

/* In the child: what the launcher gives to it, and nothing else. */
static inline _Noreturn void rig_become_vault(struct rig *r, int channel, int listener)
{
	static const char *const names[] = { "trees", "blobs", "vol" };
	int at[9] = { -1, -1, -1, channel, -1, -1, -1, listener, r->lock_fd };
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(names); i++)
		at[4 + i] = openat(r->folder_fd, names[i], O_RDONLY | O_DIRECTORY);
	for (size_t i = 3; i < COUNT(at); i++)
		at[i] = fcntl(at[i], F_DUPFD, 40);
	for (size_t i = 3; i < COUNT(at); i++)
		dup2(at[i], (int)i);
	close_range(COUNT(at), ~0u, 0);
	umask(0);
	if (r->fault) { /* caisson-vault-test lies where the test does */
		char path[PATH_MAX];
		char *const argv[] = { path, NULL }, *const env[] = { r->fault, NULL };

		CHECK(os_readlinkat(AT_FDCWD, "/proc/self/exe", path, sizeof path - 32) > 0);
		memcpy(strrchr(path, '/'), "/caisson-vault-test", sizeof "/caisson-vault-test");
		execve(path, argv, env);
		_exit(126);
	}
	if (vault_run(&e) < 0) {
		dprintf(2, "# the vault ended: %s\n", e.msg);
		_exit(1);
	}
	_exit(0);
}

static inline void rig_send(struct rig *r, int to, struct vault_packet *p, int fd)
{
	p->head.len = (uint32_t)(vault_size(p) - sizeof p->head);
	p->head.tag = ++r->tag;
	/* One that is about to die hears nothing, and then says nothing. */
	CHECK(os_send(to, p, vault_size(p), &fd, fd >= 0) > 0 || r->fault);
}

static inline enum vault_type rig_hear(struct rig *r, int from)
{
	size_t n_fds = 1;

	fd_close(&r->fd);
	int n = os_recv(from, &r->answer, sizeof r->answer, &r->fd, &n_fds);
	if (n_fds == 0)
		r->fd = -1;
	if (n <= 0) /* it is gone */
		return V_TYPES;
	CHECK(vault_check(&r->answer, (size_t)n, n_fds));
	CHECK_INT(r->answer.head.tag, r->tag);
	return r->answer.head.type;
}

/* A program of the vault, in a child; with `exe` another one is executed. */
static inline void rig_spawn(struct rig *r)
{
	int fds[2];

	CHECK_INT(os_socketpair(fds, SOCK_SEQPACKET), 0);
	(void)unlinkat(r->folder_fd, "5.sock", 0);
	int listener = os_listen_at(r->folder_fd, "5.sock", SOCK_SEQPACKET, 0600);
	CHECK(listener >= 0);
	fflush(NULL);
	r->pid = fork();
	CHECK(r->pid >= 0);
	if (r->pid == 0)
		rig_become_vault(r, fds[1], listener);
	close(fds[1]);
	close(listener);
	r->launcher = fds[0];
}

static inline void rig_connect(struct rig *r)
{
	struct vault_packet p = { .head = { .type = V_CLIENT } };
	int fds[2];

	fd_close(&r->client);
	CHECK_INT(os_socketpair(fds, SOCK_SEQPACKET), 0);
	rig_send(r, r->launcher, &p, fds[1]);
	close(fds[1]);
	r->client = fds[0];
}

static inline enum vault_type rig_try_open(struct rig *r)
{
	struct vault_packet p = { .head = { .type = V_OPEN } };
	AUTO(fd_close) int ns = rig_userns(RIG_ID_BASE);

	p.open = r->open;
	rig_send(r, r->launcher, &p, ns);
	return rig_hear(r, r->launcher);
}

static inline void rig_attach(struct rig *r)
{
	CHECK(r->fd >= 0);
	CHECK_INT(syscall(SYS_move_mount, r->fd, "", AT_FDCWD, r->work, 4 /* F_EMPTY_PATH */), 0);
	fd_close(&r->fd);
}

static inline void rig_open(struct rig *r)
{
	enum vault_type t = rig_try_open(r);

	if (t == V_FAILED)
		CHECK_STR(r->answer.err.msg, "");
	CHECK_INT(t, V_OPENED);
	if (r->open.workspace)
		rig_attach(r);
	rig_connect(r);
}

static inline enum vault_type rig_ask(struct rig *r, struct vault_packet p, int fd)
{
	rig_send(r, r->client, &p, fd);
	return rig_hear(r, r->client);
}

/* V_DONE, or the test ends. */
static inline struct vault_done rig_must(struct rig *r, struct vault_packet p, int fd)
{
	enum vault_type t = rig_ask(r, p, fd);

	if (t == V_FAILED)
		CHECK_STR(r->answer.err.msg, "");
	CHECK_INT(t, V_DONE);
	return r->answer.done;
}

static inline struct vault_packet rig_tree(enum vault_type type, uint64_t number)
{
	struct vault_packet p = { .head = { .type = type } };

	p.tree.number = number;
	return p;
}

/* Made, filled by a script that runs in its folder as the agent, and sealed. */
static inline void rig_layer(struct rig *r, uint64_t number, const char *script)
{
	struct vault_packet p = { .head = { .type = V_OPEN } };
	struct vault_open was = r->open;
	char folder[128];

	rig_spawn(r);
	r->open = (struct vault_open){ 0 };
	p.open = r->open;
	rig_send(r, r->launcher, &p, -1);
	CHECK_INT(rig_hear(r, r->launcher), V_OPENED);
	rig_connect(r);
	rig_must(r, rig_tree(V_MAKE_TREE, number), -1);
	snprintf(folder, sizeof folder, "%s/trees/%llu/d", r->folder, (unsigned long long)number);
	if (rig_run(r, UINT32_MAX, folder, script) != 0)
		CHECK_STR(str_text(&r->out), "");
	rig_must(r, rig_tree(V_SEAL_TREE, number), -1);
	rig_must(r, (struct vault_packet){ .head = { .type = V_CLOSE } }, -1);
	CHECK(waitpid(r->pid, NULL, 0) == r->pid);
	fd_close(&r->launcher);
	fd_close(&r->client);
	r->open = was;
}

static inline void rig_detach(struct rig *r)
{
	CHECK_INT(umount2(r->work, 0), 0);
}

/* kill -9, and nothing of it is left mounted here. */
static inline void rig_kill(struct rig *r)
{
	kill(r->pid, SIGKILL);
	CHECK(waitpid(r->pid, NULL, 0) == r->pid);
	fd_close(&r->launcher);
	fd_close(&r->client);
	(void)umount2(r->work, MNT_DETACH);
}

static inline void rig_init(struct rig *r)
{
	*r = (struct rig){ .launcher = -1, .client = -1, .fd = -1 };
	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_INT(unshare(CLONE_NEWNS), 0);
	CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	snprintf(r->folder, sizeof r->folder, "%s/caisson-vault-XXXXXX", rig_place);
	CHECK(mkdtemp(r->folder));
	CHECK_INT(chmod(r->folder, 0755), 0);
	snprintf(r->work, sizeof r->work, "%s/work", r->folder);
	r->folder_fd = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rig_fold(r, "trees");
	rig_fold(r, "blobs");
	rig_fold(r, "vol");
	rig_fold(r, "work");
	r->lock_fd = openat(r->folder_fd, "number", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(os_lock_shared(r->lock_fd, 0), 0);
	r->open = (struct vault_open){ .workspace = RIG_WORKSPACE,
		                       .top = 100,
		                       .id_base = RIG_ID_BASE,
		                       .n_ids = 65535,
		                       .n_layers = 1,
		                       .layers = { VAULT_EMPTY_TREE } };
}

/* A layer with some of everything, and a top with changes in it already. */
static const char rig_base[] __attribute__((unused)) =
    "umask 022; mkdir -p src/lib/deep docs bin empty; for i in 1 2 3 4 5; do echo file $i "
    ">src/f$i; "
    "echo deep $i >src/lib/deep/d$i; echo doc $i >docs/d$i; done; printf '#!/bin/sh\\necho hi\\n' "
    ">bin/run; "
    "chmod 755 bin/run; ln -s ../src/f1 docs/link; ln src/f2 src/f2-hard; : >zero; "
    "printf 'a\\nb' >\"$(printf 'odd\\376\\377name')\"; touch -d '2020-01-02 03:04:05.678' src/f1 "
    "docs; "
    "chown -hR 1000:1000 .";
static const char rig_first[] __attribute__((unused)) =
    "echo changed >>src/f1; mkdir new; echo n1 >new/n1; ln new/n1 new/n1-hard; rm docs/d1; "
    "mv src/lib src/moved; chmod 600 src/f3; ln -s nowhere new/dangling; mkfifo new/pipe; "
    "touch -d '2021-05-06 07:08:09' new/n1";

static inline void rig_begin(struct rig *r)
{
	rig_init(r);
	rig_layer(r, 10, rig_base);
	r->open.layers[0] = 10;
	rig_spawn(r);
	rig_open(r);
	rig_do(r, rig_first);
}

static inline struct vault_done rig_checkpoint(struct rig *r, uint64_t number, uint64_t before)
{
	struct vault_packet p = { .head = { .type = V_CHECKPOINT } };

	p.point = (struct vault_point){ .number = number, .before = before };
	return rig_must(r, p, -1);
}

static inline struct vault_done rig_restore(struct rig *r, uint64_t to, uint64_t now)
{
	struct vault_packet p = { .head = { .type = V_RESTORE } };

	p.restore = (struct vault_restore){ .to = to, .now = now };
	return rig_must(r, p, -1);
}

/* As a daemon does it that lets nobody write in between: how much is it, then it is done. */
static inline struct vault_done rig_restore_still(struct rig *r, uint64_t to, uint64_t now)
{
	struct vault_packet p = { .head = { .type = V_RESTORE } };

	p.restore =
	    (struct vault_restore){ .to = to, .now = now, .flags = VAULT_COUNT | VAULT_STILL };
	uint64_t files = rig_must(r, p, -1).files;
	p.restore.flags = VAULT_STILL;
	struct vault_done d = rig_must(r, p, -1);
	CHECK_INT(d.files > 0, files > 0);
	return d;
}

/* Frees what was got. */
static inline void rig_see_same(char *want, char *got, const char *what)
{
	if (strcmp(want, got) != 0) {
		size_t i = 0;

		while (want[i] == got[i])
			i++;
		while (i > 0 && want[i - 1] != '\n')
			i--;
		printf("# %s: wanted %.*s\n", what, (int)strcspn(want + i, "\n"), want + i);
		printf("# %s:    got %.*s\n", what, (int)strcspn(got + i, "\n"), got + i);
		CHECK(false);
	}
	free(got);
}

static inline char *rig_between(struct rig *r, struct vault_between between)
{
	struct vault_packet p = { .head = { .type = V_CHANGES }, .between = between };
	AUTO(fd_close) int fd = memfd_create("changes", MFD_CLOEXEC);
	char *text = mem_alloc(1u << 20);

	rig_must(r, p, fd);
	ssize_t n = pread(fd, text, (1u << 20) - 1, 0);
	CHECK(n >= 0);
	text[n] = '\0';
	return text;
}

static inline char *rig_changes(struct rig *r, uint64_t from, uint64_t to)
{
	return rig_between(r, (struct vault_between){ .from = from, .to = to });
}

static inline void rig_end(struct rig *r)
{
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		(void)waitpid(r->pid, NULL, 0);
	}
	(void)umount2(r->work, MNT_DETACH);
	char script[128];
	snprintf(script, sizeof script, "rm -rf %s", r->folder);
	(void)rig_run(r, UINT32_MAX, "/", script);
	fd_close(&r->launcher);
	fd_close(&r->client);
	fd_close(&r->fd);
	fd_close(&r->lock_fd);
	fd_close(&r->folder_fd);
	str_done(&r->out);
}
