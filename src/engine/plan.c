#include "engine/plan.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/file.h"

#define IDS_INSIDE_MAX 65534 /* engine/box.h */

static uint32_t add_text(struct plan *p, const char *text)
{
	uint32_t at = (uint32_t)p->text.len;

	str_addn(&p->text, text, strlen(text) + 1);
	return at;
}

/* Whatever the path looks like: a link may lead there. */
static bool is_kernels(int fd)
{
	static const int64_t types[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
		DEBUGFS_MAGIC,      TRACEFS_MAGIC, SECURITYFS_MAGIC,   BPF_FS_MAGIC,
		DEVPTS_SUPER_MAGIC, NSFS_MAGIC,
	};
	int64_t type = 0;

	if (os_statfs_type(fd, NULL, &type) < 0)
		return true;
	for (size_t i = 0; i < COUNT(types); i++)
		if (type == types[i])
			return true;
	return false;
}

/* A refused open is the caller's lack of rights, not ours: the sentence names the path. */
static int open_source(const char *path, struct stat *st, struct err *e)
{
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, path, O_PATH, 0);

	if (fd < 0)
		return err_sys(e, -fd, "open %s", path);
	/* O_PATH opens what the caller may not read; access(2) asks with the real ids. */
	if (faccessat(fd, "", R_OK, AT_EMPTY_PATH) < 0)
		return err_sys(e, errno, "read %s", path);
	int r = os_fstatat(fd, "", st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "stat %s", path);
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return err_new(e, ERR_INVALID, "fs: %s is neither a folder nor a file", path);
	if (is_kernels(fd))
		return err_new(e, ERR_INVALID, "fs: %s is a file system of the kernel", path);
	return fd_take(&fd);
}

static const enum plan_mount_kind mount_kinds[] = {
	[FS_EPHEMERAL] = PLAN_EPHEMERAL,
	[FS_RO] = PLAN_RO,
	[FS_OVERLAY] = PLAN_OVERLAY,
};

static int plan_fs(struct plan *p, const struct fs_entry *f, struct err *e)
{
	struct plan_mount *m = &p->mounts[p->n_mounts];
	struct stat st;

	if (f->kind == FS_WORKSPACE)
		return err_new(e, ERR_UNENFORCEABLE,
		               "unenforceable: fs (workspace:%s needs the daemon's workspaces; "
		               "use ephemeral:%s or overlay:DIR:%s)",
		               f->at, f->at, f->at);
	*m = (struct plan_mount){ .kind = mount_kinds[f->kind], .source_fd = -1, .is_dir = true };
	if (f->src) {
		m->source_fd = open_source(f->src, &st, e);
		if (m->source_fd < 0)
			return -1;
		m->uid = st.st_uid;
		m->gid = st.st_gid;
		m->is_dir = S_ISDIR(st.st_mode);
	}
	p->n_mounts++; /* owned by the plan from here on */
	if (f->kind == FS_OVERLAY && !m->is_dir)
		return err_new(e, ERR_INVALID, "fs: overlay:%s is not a folder", f->src);
	m->at = add_text(p, f->at);
	return 0;
}

static int plan_image(struct plan *p, const char *image, struct err *e)
{
	struct stat st;

	if (strcmp(image, "host") == 0)
		return 0;
	if (strncmp(image, "dir:", 4) != 0)
		return err_new(e, ERR_INVALID, "image: %s: known are host and dir:PATH", image);
	p->image = IMAGE_DIR;
	p->image_fd = open_source(image + 4, &st, e);
	if (p->image_fd < 0)
		return err_wrap(e, "image");
	if (!S_ISDIR(st.st_mode))
		return err_new(e, ERR_INVALID, "image: %s is not a folder", image + 4);
	return 0;
}

/* "name:x:uid:gid:..." of this name. */
static bool passwd_line(const char *line, const char *name, uint32_t *uid, uint32_t *gid)
{
	size_t n = strlen(name);
	char ids[32];
	struct user_ref u;
	struct err e;

	if (strncmp(line, name, n) != 0 || line[n] != ':')
		return false;
	const char *at = strchr(line + n + 1, ':'); /* after the password */
	size_t len = at ? strcspn(at + 1, ":") : 0;
	if (len == 0 || at[1 + len] != ':')
		return false;
	len += 1 + strcspn(at + 2 + len, ":");
	if (at[1 + len] != ':' || len >= sizeof ids)
		return false;
	snprintf(ids, sizeof ids, "%.*s", (int)len, at + 1); /* "uid:gid": as strict as our own */
	if (user_parse(ids, &u, &e) < 0 || u.name || !u.has_gid)
		return false;
	*uid = u.uid;
	*gid = u.gid;
	return true;
}

static bool passwd_find(char *text, const char *name, uint32_t *uid, uint32_t *gid)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (passwd_line(line, name, uid, gid))
			return true;
	return false;
}

static bool image_user(const struct plan *p, const char *name, uint32_t *uid, uint32_t *gid)
{
	enum { PASSWD_BYTES_MAX = 256 * 1024 };
	AUTO(freep) char *text = mem_alloc(PASSWD_BYTES_MAX);
	AUTO(fd_close)
	int fd = os_openat2(p->image_fd, "etc/passwd", O_RDONLY | O_NONBLOCK, 0,
	                    0x10 /* RESOLVE_IN_ROOT */);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, PASSWD_BYTES_MAX - 1);
	return n > 0 && passwd_find(text, name, uid, gid);
}

static int plan_user(struct plan *p, const char *text, struct err *e)
{
	struct user_ref u;

	if (user_parse(text, &u, e) < 0)
		return -1;
	if (!u.name) {
		p->uid = u.uid;
		p->gid = u.has_gid ? u.gid : u.uid;
		if (p->uid > IDS_INSIDE_MAX || p->gid > IDS_INSIDE_MAX)
			return err_new(e, ERR_INVALID, "user: %s: ids inside are 0 to %d", text,
			               IDS_INSIDE_MAX);
	} else if (p->image == IMAGE_DIR && image_user(p, u.name, &p->uid, &p->gid)) {
		return 0;
	} else if (strcmp(u.name, "agent") == 0) {
		p->uid = p->gid = 1000;
	} else if (strcmp(u.name, "root") == 0) {
		p->uid = p->gid = 0;
	} else {
		return err_new(e, ERR_INVALID,
		               "user: %s is not in the image; known are agent and root", text);
	}
	return 0;
}

static bool env_named(const struct spec *s, const char *name)
{
	for (size_t i = 0; i < s->env.len; i++)
		if (strcmp(s->env.at[i].key, name) == 0)
			return true;
	return false;
}

static void add_env(struct plan *p, const char *name, const char *value)
{
	str_addf(&p->text, "%s=", name);
	add_text(p, value);
	p->env.count++;
}

/* The caller's PATH, HOME, tokens and sockets stay outside: only this list and what was named. */
static void plan_env(struct plan *p, const struct spec *s, bool is_tty)
{
	const struct text_pair ours[] = {
		{ "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
		{ "HOME", p->uid == 0 ? "/root" : "/home/agent" },
		{ "USER", p->uid == 0 ? "root" : "agent" },
		{ "LANG", "C.UTF-8" },
		{ "TMPDIR", "/tmp" },
		{ "CAISSON", "1" },
		{ "TERM", is_tty ? "xterm-256color" : "dumb" },
	};
	/* Nobody is there to answer: programs that would ask, page or edit are told so. */
	static const struct text_pair unattended[] = {
		{ "CI", "1" },
		{ "DEBIAN_FRONTEND", "noninteractive" },
		{ "PAGER", "cat" },
		{ "GIT_PAGER", "cat" },
		{ "GIT_EDITOR", "true" },
		{ "GIT_TERMINAL_PROMPT", "0" },
	};

	p->env.first = (uint32_t)p->text.len;
	for (size_t i = 0; i < COUNT(ours); i++)
		if (!env_named(s, ours[i].key))
			add_env(p, ours[i].key, ours[i].value);
	for (size_t i = 0; i < COUNT(unattended) && !is_tty; i++)
		if (!env_named(s, unattended[i].key))
			add_env(p, unattended[i].key, unattended[i].value);
	for (size_t i = 0; i < s->env.len; i++)
		add_env(p, s->env.at[i].key, s->env.at[i].value);
}

static int plan_text_fields(struct plan *p, const struct spec *s, struct plan_command c,
                            struct err *e)
{
	const char *cwd = c.cwd ? c.cwd : "/work";

	if (!c.cwd) {
		bool found = false;

		for (size_t i = 0; i < s->fs.len; i++)
			found |= strcmp(s->fs.at[i].at, cwd) == 0;
		if (!found)
			cwd = s->fs.len > 0 && s->fs.at[0].kind != FS_RO ? s->fs.at[0].at : "/";
	}
	if (cwd[0] != '/')
		return err_new(e, ERR_INVALID, "cwd: %s is not an absolute path", cwd);
	p->cwd = add_text(p, cwd);
	p->argv.first = (uint32_t)p->text.len;
	for (; c.argv[p->argv.count]; p->argv.count++)
		add_text(p, c.argv[p->argv.count]);
	plan_env(p, s, c.is_tty);
	if (p->text.overflow || p->argv.count + p->env.count > ARGV_COUNT_MAX)
		return err_new(e, ERR_LIMIT, "command and environment exceed %u bytes",
		               ARGV_BYTES_MAX);
	return 0;
}

/* What lies in another mount is mounted after it, whatever the order they were written in. */
static void sort_mounts(struct plan *p)
{
	for (size_t i = 1; i < p->n_mounts; i++)
		for (size_t j = i; j > 0; j--) {
			struct plan_mount *a = &p->mounts[j - 1], *b = &p->mounts[j];
			struct plan_mount swap = *a;

			if (strcmp(plan_text(p, a->at), plan_text(p, b->at)) <= 0)
				break;
			*a = *b;
			*b = swap;
		}
}

int plan_make(struct plan *p, const struct spec *s, struct plan_command c, struct err *e)
{
	*p = (struct plan){ .image_fd = -1,
		            .rootful = s->profile == PROFILE_ROOTFUL,
		            .is_tty = c.is_tty,
		            .has_stdin = c.has_stdin,
		            .wants_usage = c.wants_usage,
		            .timeout_ms = c.timeout_ms,
		            .rows = c.rows,
		            .cols = c.cols,
		            .text = { .max = ARGV_BYTES_MAX } };
	for (enum limit_id i = 0; i < LIMIT_COUNT; i++) {
		p->limits[i] = s->limits[i].value;
		p->named[i] = s->limits[i].named;
		p->weaker[i] = spec_weaker(s, limit_name(i));
	}
	if (plan_image(p, s->image, e) < 0 || plan_user(p, s->user, e) < 0)
		return -1;
	for (size_t i = 0; i < s->fs.len; i++)
		if (plan_fs(p, &s->fs.at[i], e) < 0)
			return -1;
	sort_mounts(p);
	return plan_text_fields(p, s, c, e);
}

void plan_strings(const struct plan *p, struct plan_list list, char **out)
{
	char *at = p->text.data + list.first;

	for (uint32_t i = 0; i < list.count; i++) {
		out[i] = at;
		at += strlen(at) + 1;
	}
	out[list.count] = NULL;
}

void plan_done(struct plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		fd_close(&p->mounts[i].source_fd);
	fd_close(&p->image_fd);
	str_done(&p->text);
}
