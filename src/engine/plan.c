#include "engine/plan.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "engine/hostpath.h"
#include "os/file.h"

#define IDS_INSIDE_MAX 65534 /* engine/box.h */
/* FS_ENTRIES_MAX entries with two paths each, and more than anybody has. */
#define PLAN_BYTES_MAX (2u * FS_ENTRIES_MAX * PATH_TEXT_MAX + PATH_TEXT_MAX)

static uint32_t add_text(struct plan *p, const char *text)
{
	uint32_t at = (uint32_t)p->text.len;

	str_addn(&p->text, text, strlen(text) + 1);
	return at;
}

/* A refused open is the caller's lack of rights, not ours: the sentence names the path. */
static int open_source(const char *path, struct err *e)
{
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, path, O_PATH, 0);

	if (fd < 0)
		return err_sys(e, -fd, "open %s", path);
	/* O_PATH opens what the caller may not read; access(2) asks with the real ids. */
	if (faccessat(fd, "", R_OK, AT_EMPTY_PATH) < 0)
		return err_sys(e, errno, "read %s", path);
	return fd_take(&fd);
}

static int check_source(const char *path, int fd, struct stat *st, struct err *e)
{
	int r = os_fstatat(fd, "", st, AT_EMPTY_PATH);

	if (r < 0)
		return err_sys(e, -r, "stat %s", path);
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return err_new(e, ERR_INVALID, "fs: %s is neither a folder nor a file", path);
	if (hostpath_is_kernels(fd))
		return err_new(e, ERR_INVALID, "fs: %s is a file system of the kernel", path);
	return 0;
}

static const enum plan_mount_kind mount_kinds[] = {
	[FS_EPHEMERAL] = PLAN_EPHEMERAL,
	[FS_RO] = PLAN_RO,
	[FS_OVERLAY] = PLAN_OVERLAY,
};

static int draft_fs(struct plan *p, const struct fs_entry *f, struct err *e)
{
	struct plan_mount *m = &p->mounts[p->n_mounts++];

	*m = (struct plan_mount){ .source_fd = -1, .is_dir = true };
	if (f->kind == FS_WORKSPACE)
		return err_new(e, ERR_UNENFORCEABLE,
		               "unenforceable: fs (workspace:%s needs the daemon's workspaces; "
		               "use ephemeral:%s or overlay:DIR:%s)",
		               f->at, f->at, f->at);
	m->kind = mount_kinds[f->kind];
	if (f->src)
		m->source = add_text(p, f->src);
	m->at = add_text(p, f->at);
	return 0;
}

static int draft_image(struct plan *p, const char *image, struct err *e)
{
	if (strcmp(image, "host") == 0)
		return 0;
	if (strncmp(image, "dir:", 4) != 0)
		return err_new(e, ERR_INVALID,
		               "image: %s: without a daemon there are host and dir:PATH", image);
	p->image = IMAGE_DIR;
	p->image_source = add_text(p, image + 4);
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

static bool passwd_find(const char *passwd, const char *name, uint32_t *uid, uint32_t *gid)
{
	AUTO(freep) char *text = mem_strdup(passwd);
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (passwd_line(line, name, uid, gid))
			return true;
	return false;
}

int plan_ids_in(const char *user, const char *passwd, uint32_t *uid, uint32_t *gid, struct err *e)
{
	struct user_ref u;

	if (user_parse(user, &u, e) < 0)
		return -1;
	if (!u.name) {
		if (u.uid > IDS_INSIDE_MAX || (u.has_gid && u.gid > IDS_INSIDE_MAX))
			return err_new(e, ERR_INVALID, "user: %s: ids inside are 0 to %d", user,
			               IDS_INSIDE_MAX);
		*uid = u.uid;
		*gid = u.has_gid ? u.gid : u.uid;
	} else if (passwd && passwd_find(passwd, u.name, uid, gid)) {
		return 0;
	} else if (strcmp(u.name, "agent") == 0) {
		*uid = *gid = 1000;
	} else if (strcmp(u.name, "root") == 0) {
		*uid = *gid = 0;
	} else {
		return err_new(e, ERR_INVALID,
		               "user: %s is not in the image; known are agent and root", user);
	}
	return 0;
}

int plan_ids(const char *user, int image_fd, uint32_t *uid, uint32_t *gid, struct err *e)
{
	enum { PASSWD_BYTES_MAX = 256 * 1024 };

	if (image_fd < 0)
		return plan_ids_in(user, NULL, uid, gid, e);
	AUTO(freep) char *text = mem_alloc(PASSWD_BYTES_MAX);
	AUTO(fd_close)
	int fd = os_openat2(image_fd, "etc/passwd", O_RDONLY | O_NONBLOCK, 0,
	                    0x10 /* RESOLVE_IN_ROOT */);
	ssize_t n = fd < 0 ? -1 : read(fd, text, PASSWD_BYTES_MAX - 1);

	return plan_ids_in(user, n > 0 ? text : NULL, uid, gid, e);
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

int plan_draft(struct plan *p, const struct spec *s, struct err *e)
{
	*p = (struct plan){ .image_fd = -1,
		            .rootful = s->profile == PROFILE_ROOTFUL,
		            .has_net = s->net.mode != NET_DENY,
		            .text = { .max = PLAN_BYTES_MAX } };
	add_text(p, ""); /* offset 0 is no text */
	for (enum limit_id i = 0; i < LIMIT_COUNT; i++) {
		p->limits[i] = s->limits[i].value;
		p->named[i] = s->limits[i].named;
		p->weaker[i] = spec_weaker(s, limit_name(i));
	}
	if (draft_image(p, s->image, e) < 0)
		return -1;
	for (size_t i = 0; i < s->fs.len; i++)
		if (draft_fs(p, &s->fs.at[i], e) < 0)
			return -1;
	if (p->text.overflow)
		return err_new(e, ERR_LIMIT, "the paths of fs exceed %u bytes", PLAN_BYTES_MAX);
	sort_mounts(p);
	return 0;
}

/* 0 is the image, the mounts follow. */
const char *plan_missing(const struct plan *p, size_t *which)
{
	*which = 0;
	if (p->image == IMAGE_DIR && p->image_fd < 0)
		return plan_text(p, p->image_source);
	for (size_t i = 0; i < p->n_mounts; i++) {
		*which = i + 1;
		if (p->mounts[i].source && p->mounts[i].source_fd < 0)
			return plan_text(p, p->mounts[i].source);
	}
	return NULL;
}

static int give_image(struct plan *p, int fd, struct err *e)
{
	const char *path = plan_text(p, p->image_source);
	struct stat st;

	p->image_fd = fd;
	if (check_source(path, fd, &st, e) < 0)
		return err_wrap(e, "image");
	if (!S_ISDIR(st.st_mode))
		return err_new(e, ERR_INVALID, "image: %s is not a folder", path);
	return 0;
}

int plan_give(struct plan *p, size_t which, int fd, struct err *e)
{
	struct stat st;

	if (which == 0)
		return give_image(p, fd, e);
	struct plan_mount *m = &p->mounts[which - 1];
	const char *path = plan_text(p, m->source);

	m->source_fd = fd;
	if (check_source(path, fd, &st, e) < 0)
		return -1;
	m->uid = st.st_uid;
	m->gid = st.st_gid;
	m->is_dir = S_ISDIR(st.st_mode);
	if (m->kind == PLAN_OVERLAY && !m->is_dir)
		return err_new(e, ERR_INVALID, "fs: overlay:%s is not a folder", path);
	return 0;
}

int plan_finish(struct plan *p, const struct spec *s, struct err *e)
{
	return plan_ids(s->user, p->image_fd, &p->uid, &p->gid, e);
}

static int open_missing(struct plan *p, struct err *e)
{
	size_t which;

	for (const char *path = plan_missing(p, &which); path; path = plan_missing(p, &which)) {
		int fd = open_source(path, e);

		if (fd < 0)
			return which == 0 ? err_wrap(e, "image") : -1;
		if (plan_give(p, which, fd, e) < 0)
			return -1;
	}
	return 0;
}

int plan_make(struct plan *p, const struct spec *s, struct err *e)
{
	if (plan_draft(p, s, e) < 0 || open_missing(p, e) < 0)
		return -1;
	return plan_finish(p, s, e);
}

void plan_done(struct plan *p)
{
	for (size_t i = 0; i < p->n_mounts; i++)
		fd_close(&p->mounts[i].source_fd);
	p->n_mounts = 0;
	if (p->image != IMAGE_HOST) /* in { 0 } there is none */
		fd_close(&p->image_fd);
	str_done(&p->text);
}
