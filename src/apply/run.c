#include "apply/run.h"

#include <linux/openat2.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "apply/host.h"
#include "base/fd.h"
#include "base/str.h"
#include "os/file.h"
#include "os/node.h"

#define STAGE_RESOLVE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV)

struct stage_name {
	char text[16];
};

/* 'n': what is new, and after an exchange what was there; 'o': what was removed. */
static struct stage_name stage_name(char kind, uint32_t number)
{
	struct stage_name n;

	snprintf(n.text, sizeof n.text, "%c%u", kind, number);
	return n;
}

void apply_init(struct apply_run *r)
{
	*r = (struct apply_run){ .root_fd = -1, .journals_fd = -1, .lock_fd = -1, .stage_fd = -1 };
}

void apply_done(struct apply_run *r)
{
	fd_close(&r->stage_fd);
	fd_close(&r->lock_fd);
	fd_close(&r->journals_fd);
	fd_close(&r->root_fd);
	apply_ops_done(&r->ops);
}

/* ---- forwards ------------------------------------------------------------------------ */

static int changed(const struct apply_op *op, struct err *e)
{
	return err_new(e, ERR_DENIED, "%s was changed meanwhile", op->path);
}

/* It is what was compared; of a folder only that it is one. */
static int check_same(int dir_fd, const char *name, const struct apply_op *op, struct err *e)
{
	struct stat st;
	int r = os_fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "look at %s", op->path);
	return r < 0 || !op->entry || !host_is_same(&op->entry->was, &st) ? changed(op, e) : 0;
}

static int do_remove(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name,
                     struct err *e)
{
	struct stage_name old = stage_name('o', op->number);

	if (check_same(dir_fd, name, op, e) < 0)
		return -1;
	int n = os_renameat2((struct os_names){ dir_fd, name, r->stage_fd, old.text },
	                     RENAME_NOREPLACE);
	if (n < 0)
		return err_sys(e, -n, "remove %s", op->path);
	return check_same(r->stage_fd, old.text, op, e);
}

static int do_rmdir(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name,
                    struct err *e)
{
	int n = os_rmdirat(dir_fd, name);
	bool is_full = n == -ENOTEMPTY || n == -EEXIST;

	(void)r;
	return n < 0 && (op->is_needed || !is_full) && n != -ENOENT
	           ? err_sys(e, -n, "remove the folder %s", op->path)
	           : 0;
}

static int do_mkdir(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name,
                    struct err *e)
{
	int n = os_mkdirat(dir_fd, name, op->after);

	(void)r;
	return n < 0 ? err_sys(e, -n, "make the folder %s", op->path) : 0;
}

static int do_create(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name,
                     struct err *e)
{
	struct stage_name new = stage_name('n', op->number);
	int n = os_renameat2((struct os_names){ r->stage_fd, new.text, dir_fd, name },
	                     RENAME_NOREPLACE);

	if (n == -EEXIST)
		return changed(op, e);
	return n < 0 ? err_sys(e, -n, "create %s", op->path) : 0;
}

static int do_replace(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name,
                      struct err *e)
{
	struct stage_name new = stage_name('n', op->number);

	if (check_same(dir_fd, name, op, e) < 0)
		return -1;
	int n =
	    os_renameat2((struct os_names){ r->stage_fd, new.text, dir_fd, name }, RENAME_EXCHANGE);
	if (n == -EINVAL)
		return err_new(e, ERR_UNENFORCEABLE,
		               "the file system of the folder cannot exchange two files");
	if (n < 0)
		return err_sys(e, -n, "write %s", op->path);
	return check_same(r->stage_fd, new.text, op, e);
}

/* The mode of that file, whatever its name leads to by now. */
static int set_mode(int dir_fd, const char *name, const struct apply_op *op, mode_t mode)
{
	AUTO(fd_close) int fd = os_openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;

	int n = fd < 0 ? fd : os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	if (n < 0)
		return n;
	return st.st_ino == op->ino_old && S_ISREG(st.st_mode) ? os_fchmod(fd, mode) : -ESTALE;
}

static int do_mode(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name,
                   struct err *e)
{
	(void)r;
	if (check_same(dir_fd, name, op, e) < 0)
		return -1;
	int n = set_mode(dir_fd, name, op, op->after);
	return n < 0 ? err_sys(e, -n, "change the mode of %s", op->path) : 0;
}

/* ---- backwards: whether or not it was done ------------------------------------------- */

/* 1: it is that file; 0: another one, or none; -errno. */
static int is_ino(int dir_fd, const char *name, uint64_t ino)
{
	struct stat st;
	int n = os_fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	return n == -ENOENT ? 0 : n < 0 ? n : st.st_ino == ino;
}

static int undo_remove(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name)
{
	struct stage_name old = stage_name('o', op->number);
	int n = os_renameat2((struct os_names){ r->stage_fd, old.text, dir_fd, name },
	                     RENAME_NOREPLACE);

	return n == -ENOENT ? 0 : n;
}

static int undo_rmdir(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name)
{
	int n = os_mkdirat(dir_fd, name, op->before);

	(void)r;
	if (n < 0 && n != -EEXIST)
		return n;
	int is_there = n < 0 ? is_ino(dir_fd, name, op->ino_old) : 0;
	if (is_there != 0) /* it was not removed */
		return is_there < 0 ? is_there : 0;
	return os_fchmodat(dir_fd, name, op->before);
}

static int undo_mkdir(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name)
{
	int n = os_rmdirat(dir_fd, name);

	(void)r;
	(void)op;
	/* Somebody else has put something there, or it was never made. */
	return n == -ENOTEMPTY || n == -EEXIST || n == -ENOENT || n == -ENOTDIR ? 0 : n;
}

static int undo_create(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name)
{
	struct stage_name new = stage_name('n', op->number);

	int n = is_ino(dir_fd, name, op->ino_new);

	if (n <= 0)
		return n;
	return os_renameat2((struct os_names){ dir_fd, name, r->stage_fd, new.text },
	                    RENAME_NOREPLACE);
}

static int undo_replace(struct apply_run *r, const struct apply_op *op, int dir_fd,
                        const char *name)
{
	struct stage_name new = stage_name('n', op->number);

	int n = is_ino(dir_fd, name, op->ino_new);

	if (n <= 0)
		return n;
	return os_renameat2((struct os_names){ r->stage_fd, new.text, dir_fd, name },
	                    RENAME_EXCHANGE);
}

static int undo_mode(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name)
{
	int n = set_mode(dir_fd, name, op, op->before);

	(void)r;
	return n == -ESTALE || n == -ENOENT ? 0 : n; /* it is another file by now */
}

static const struct {
	int (*go)(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name,
	          struct err *e);
	int (*undo)(struct apply_run *r, const struct apply_op *op, int dir_fd, const char *name);
} kinds[] = {
	[OP_REMOVE] = { do_remove, undo_remove },    [OP_RMDIR] = { do_rmdir, undo_rmdir },
	[OP_MKDIR] = { do_mkdir, undo_mkdir },       [OP_CREATE] = { do_create, undo_create },
	[OP_REPLACE] = { do_replace, undo_replace }, [OP_MODE] = { do_mode, undo_mode },
};
_Static_assert(COUNT(kinds) == OP_KINDS, "a kind of step is missing");

static int go_forward(struct apply_run *r, struct err *e)
{
	for (size_t i = 0; i < r->ops.list.len; i++) {
		const struct apply_op *op = &r->ops.list.at[i];
		const char *name;
		AUTO(fd_close) int dir_fd = host_parent(r->root_fd, op->path, &name);

		if (dir_fd == -ENOENT && op->kind == OP_RMDIR)
			continue;
		if (dir_fd < 0)
			return err_sys(e, -dir_fd, "open the folder of %s", op->path);
		if (kinds[op->kind].go(r, op, dir_fd, name, e) < 0)
			return -1;
	}
	return 0;
}

/* What was there is still with us: 1, 0, -errno. */
static int holds_old(struct apply_run *r, const struct apply_op *op)
{
	if (op->kind != OP_REMOVE && op->kind != OP_REPLACE)
		return 0;
	return is_ino(r->stage_fd, stage_name(op->kind == OP_REMOVE ? 'o' : 'n', op->number).text,
	              op->ino_old);
}

static int undo_one(struct apply_run *r, const struct apply_op *op)
{
	const char *name;
	AUTO(fd_close) int dir_fd = host_parent(r->root_fd, op->path, &name);
	/* Its folder was not made yet, or somebody has put something else there. */
	bool has_no_folder = dir_fd == -ENOENT || dir_fd == -ENOTDIR || dir_fd == -ELOOP;
	int n = has_no_folder ? 0 : dir_fd;

	if (dir_fd >= 0)
		n = kinds[op->kind].undo(r, op, dir_fd, name);
	if (n >= 0)
		n = holds_old(r, op);
	return n > 0 ? -EEXIST : n;
}

/* As far as it goes; 0 only when nothing is left to be brought back. */
static int go_back(struct apply_run *r, struct err *e)
{
	int worst = 0;

	for (size_t i = r->ops.list.len; i-- > 0;) {
		const struct apply_op *op = &r->ops.list.at[i];
		int n = undo_one(r, op);

		if (n == -EEXIST)
			worst = err_new(e, ERR_DENIED,
			                "something else is in the place of %s; what was there is "
			                "in %s, to be removed when you need it no more",
			                op->path, r->journal.stage);
		else if (n < 0)
			worst = err_sys(e, -n, "bring back %s", op->path);
	}
	return worst;
}

/* ---- our folder ---------------------------------------------------------------------- */

struct entry_head { /* linux_dirent64 */
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

/* One look at it: how many were removed. */
static int empty_once(int stage_fd)
{
	_Alignas(8) char buf[32768];
	int n, removed = 0;

	if (lseek(stage_fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = os_getdents(stage_fd, buf, sizeof buf)) > 0) {
		for (int at = 0; at < n;) {
			const struct entry_head *d = (const void *)(buf + at);

			at += d->len;
			if (strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0)
				continue;
			int r = os_unlinkat(stage_fd, d->name);
			if (r < 0)
				return r;
			removed++;
		}
	}
	return n < 0 ? n : removed;
}

/* Files and links; there is nothing else in it. Some file systems lose their place when they lose
 * an entry. */
static int empty_stage(int stage_fd)
{
	int n;

	do
		n = empty_once(stage_fd);
	while (n > 0);
	return n;
}

/* What was moved into it is no longer needed. */
static int clear(struct apply_run *r, struct err *e)
{
	int n = r->stage_fd < 0 ? 0 : empty_stage(r->stage_fd);

	fd_close(&r->stage_fd);
	if (n >= 0)
		n = os_rmdirat(r->root_fd, r->journal.stage);
	if (n < 0 && n != -ENOENT)
		return err_sys(e, -n, "remove %s", r->journal.stage);
	return journal_remove(r->journals_fd, &r->journal, e);
}

/* ---- what was interrupted ------------------------------------------------------------ */

static int settle(struct apply_run *r, struct err *e)
{
	if (r->journal.state == JOURNAL_READY && go_back(r, e) < 0)
		return err_wrap(e, "undo what was interrupted");
	int n = os_syncfs(r->root_fd);
	if (n < 0)
		return err_sys(e, -n, "sync");
	return clear(r, e);
}

/* `name` is a journal. That of another folder is left alone. */
static int recover_one(struct apply_run *r, const char *name, bool is_dry, struct err *e)
{
	char folder[JOURNAL_FOLDER_SIZE];

	memcpy(folder, r->journal.folder, sizeof folder);
	int fd = os_openat2(r->root_fd, name, O_RDONLY | O_DIRECTORY, 0, STAGE_RESOLVE);
	if (fd < 0 && fd != -ENOENT)
		return err_sys(e, -fd, "open %s", name);
	if (fd >= 0)
		r->stage_fd = fd;
	int n = journal_read(r->journals_fd, name, &r->journal, &r->ops, e);
	if (n == 0 && fd >= 0 && is_dry)
		n = err_new(e, ERR_DENIED,
		            "an apply was interrupted here: the next one without --dry-run undoes "
		            "it first");
	else if (n == 0 && fd >= 0)
		n = settle(r, e);
	else if (n == 0 && strcmp(r->journal.folder, folder) == 0 && !is_dry)
		n = journal_remove(r->journals_fd, &r->journal, e); /* it had hardly begun */
	fd_close(&r->stage_fd);
	apply_ops_done(&r->ops);
	r->ops = (struct apply_ops){ 0 };
	memcpy(r->journal.folder, folder, sizeof folder);
	return n;
}

struct names {
	struct arena arena;
	VEC(const char *) list;
};

static void names_done(struct names *n)
{
	vec_done(&n->list);
	arena_done(&n->arena);
}

static void add_name(struct names *out, const char *name)
{
	if (strncmp(name, APPLY_STAGE, strlen(APPLY_STAGE)) == 0)
		vec_push(&out->list, arena_strdup(&out->arena, name));
}

static int list_journals(int folder_fd, struct names *out)
{
	_Alignas(8) char buf[32768];
	int n;

	while ((n = os_getdents(folder_fd, buf, sizeof buf)) > 0) {
		for (int at = 0; at < n;) {
			const struct entry_head *d = (const void *)(buf + at);

			at += d->len;
			add_name(out, d->name);
		}
	}
	return n;
}

static int recover(struct apply_run *r, bool is_dry, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };
	int n = list_journals(r->journals_fd, &names);

	if (n < 0)
		return err_sys(e, -n, "read the folder of journals");
	for (size_t i = 0; i < names.list.len; i++)
		if (recover_one(r, names.list.at[i], is_dry, e) < 0)
			return -1;
	return 0;
}

int apply_open(struct apply_run *r, const char *folder, const char *journals, bool is_dry,
               struct err *e)
{
	int fd = os_openat(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return err_sys(e, -fd, "open %s", folder);
	r->root_fd = fd;
	if (!realpath(folder, r->journal.folder))
		return err_sys(e, errno, "open %s", folder);
	r->journals_fd = journal_folder(journals, e);
	if (r->journals_fd < 0)
		return -1;
	r->lock_fd = journal_lock(r->journals_fd, e);
	return r->lock_fd < 0 ? -1 : recover(r, is_dry, e);
}

/* ---- a new one ----------------------------------------------------------------------- */

/* Back, and our folder goes. The error stays that which was the reason. */
static int give_up(struct apply_run *r, struct err *e)
{
	struct err again = { 0 };

	if (settle(r, &again) < 0)
		err_wrap(e, "not all could be taken back (%s); the next apply tries again",
		         again.msg);
	return -1;
}

void apply_abandon(struct apply_run *r)
{
	struct err ignored = { 0 }; /* what stays goes with the next one */

	(void)settle(r, &ignored);
}

int apply_begin(struct apply_run *r, struct err *e)
{
	uint64_t word;

	if (host_trim(r->root_fd, &r->ops, e) < 0)
		return -1;
	if (getrandom(&word, sizeof word, 0) != sizeof word)
		return err_sys(e, errno, "get random bytes");
	r->journal.state = JOURNAL_STAGING;
	snprintf(r->journal.stage, sizeof r->journal.stage, APPLY_STAGE "%016llx",
	         (unsigned long long)word);
	if (journal_write(r->journals_fd, &r->journal, NULL, e) < 0)
		return -1;
	int n = os_mkdirat(r->root_fd, r->journal.stage, 0700);
	if (n < 0) {
		err_sys(e, -n, "make %s", r->journal.stage);
		return give_up(r, e);
	}
	r->stage_fd =
	    os_openat2(r->root_fd, r->journal.stage, O_RDONLY | O_DIRECTORY, 0, STAGE_RESOLVE);
	if (r->stage_fd < 0) {
		n = r->stage_fd;
		r->stage_fd = -1;
		err_sys(e, -n, "open %s", r->journal.stage);
		return give_up(r, e);
	}
	return 0;
}

/* Nobody but the caller can read it before it is in its place, and then by its new mode. */
int apply_stage_file(struct apply_run *r, const struct apply_op *op, struct err *e)
{
	struct stage_name new = stage_name('n', op->number);
	int fd = os_openat(r->stage_fd, new.text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	return fd < 0 ? err_sys(e, -fd, "make a file for %s", op->path) : fd;
}

int apply_stage_link(struct apply_run *r, const struct apply_op *op, const char *target,
                     struct err *e)
{
	struct stage_name new = stage_name('n', op->number);
	int n = os_symlinkat(target, r->stage_fd, new.text);

	return n < 0 ? err_sys(e, -n, "make a link for %s", op->path) : 0;
}

/* Owner, as far as the caller may; mode; and its number. */
static int finish_one(struct apply_run *r, struct apply_op *op, struct err *e)
{
	struct stage_name new = stage_name('n', op->number);
	const struct apply_entry *entry = op->entry;
	struct stat st;

	int n = os_fstatat(r->stage_fd, new.text, &st, AT_SYMLINK_NOFOLLOW);
	if (n < 0)
		return err_sys(e, -n, "%s did not come", op->path);
	op->ino_new = st.st_ino;
	if (op->kind == OP_REPLACE && geteuid() == 0)
		n = os_fchownat(r->stage_fd, new.text, entry->was.uid, entry->was.gid);
	if (n >= 0 && S_ISREG(st.st_mode))
		n = os_fchmodat(r->stage_fd, new.text, entry->mode);
	return n < 0 ? err_sys(e, -n, "prepare %s", op->path) : 0;
}

static int finish_all(struct apply_run *r, struct err *e)
{
	for (size_t i = 0; i < r->ops.list.len; i++) {
		struct apply_op *op = &r->ops.list.at[i];

		if ((op->kind == OP_CREATE || op->kind == OP_REPLACE) && finish_one(r, op, e) < 0)
			return -1;
	}
	int n = os_syncfs(r->root_fd);
	return n < 0 ? err_sys(e, -n, "sync") : 0;
}

/* The journal may say that it is done, or not: first it has to say that it is not. */
static int take_back(struct apply_run *r, struct err *e)
{
	struct err again = { 0 };

	r->journal.state = JOURNAL_READY;
	if (journal_write(r->journals_fd, &r->journal, &r->ops, &again) < 0)
		return err_wrap(e, "the next apply undoes it, or finds it done");
	return give_up(r, e);
}

int apply_commit(struct apply_run *r, struct err *e)
{
	struct err ignored = { 0 };

	if (finish_all(r, e) < 0)
		return give_up(r, e);
	r->journal.state = JOURNAL_READY;
	if (journal_write(r->journals_fd, &r->journal, &r->ops, e) < 0 || go_forward(r, e) < 0)
		return give_up(r, e);
	int n = os_syncfs(r->root_fd);
	if (n < 0) {
		err_sys(e, -n, "sync");
		return give_up(r, e);
	}
	r->journal.state = JOURNAL_DONE;
	if (journal_write(r->journals_fd, &r->journal, NULL, e) < 0)
		return take_back(r, e);
	(void)clear(r, &ignored); /* it is done; what is left of it goes with the next one */
	return 0;
}
