#include "tree/undo.h"

#include <linux/fs.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/remove.h"
#include "tree/sys.h"

void temp_name(char out[TEMP_NAME])
{
	snprintf(out, TEMP_NAME, TEMP_PREFIX "%016llx", (unsigned long long)sys_random());
}

/* Where the log keeps a descriptor of this directory. -1 on failure. */
static ssize_t keep_dir(struct undo *u, int dir_fd, struct err *e)
{
	struct stat st;
	int r = sys_fstat(dir_fd, &st);

	if (r < 0)
		return err_sys(e, -r, "stat a directory");
	for (size_t i = u->dirs.len; i-- > 0;) {
		if (u->dirs.at[i].ino == st.st_ino && u->dirs.at[i].dev == st.st_dev)
			return (ssize_t)i;
	}
	int fd = os_openat(dir_fd, ".", O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return err_sys(e, -fd, "keep a directory open");
	vec_push(&u->dirs, (struct undo_dir){ st.st_dev, st.st_ino, fd });
	return (ssize_t)u->dirs.len - 1;
}

static int note(struct undo *u, int dir_fd, const char *name, struct undo_step step, struct err *e)
{
	ssize_t dir = keep_dir(u, dir_fd, e);

	if (dir < 0)
		return -1;
	step.dir = (size_t)dir;
	snprintf(step.name, sizeof step.name, "%s", name);
	vec_push(&u->steps, step);
	return 0;
}

static int put_new(int dir_fd, const char *temp, const char *name, struct err *e)
{
	struct os_names names = { dir_fd, temp, dir_fd, name };
	int r = os_renameat2(names, RENAME_NOREPLACE);

	if (r == -EEXIST)
		return err_sys(e, EEXIST, "create %s", name);
	return r < 0 ? err_sys(e, -r, "rename to %s", name) : 0;
}

int undo_put(struct undo *u, int dir_fd, const char *temp, const char *name, bool is_new,
             struct err *e)
{
	struct os_names names = { dir_fd, temp, dir_fd, name };
	struct undo_step step = { 0 };

	if (!u && !is_new) {
		int r = os_renameat2(names, 0);

		return r < 0 ? err_sys(e, -r, "rename to %s", name) : 0;
	}
	if (!u)
		return put_new(dir_fd, temp, name, e);
	if (note(u, dir_fd, name, step, e) < 0)
		return -1;
	int r = is_new ? -ENOENT : os_renameat2(names, RENAME_EXCHANGE);
	if (r == 0)
		snprintf(u->steps.at[u->steps.len - 1].kept, TEMP_NAME, "%s", temp);
	else if (r == -ENOENT)
		r = put_new(dir_fd, temp, name, e);
	else
		r = err_sys(e, -r, "exchange %s", name);
	if (r < 0)
		u->steps.len--;
	return r;
}

int undo_remove(struct undo *u, int dir_fd, const char *name, bool is_dir, struct err *e)
{
	struct undo_step step = { .is_gone = true };
	struct os_names names = { dir_fd, name, dir_fd, step.kept };

	if (!u && is_dir)
		return remove_tree(dir_fd, name, (struct remove_how){ 0 }, e);
	if (!u) {
		int r = os_unlinkat(dir_fd, name);

		return r < 0 ? err_sys(e, -r, "delete %s", name) : 0;
	}
	temp_name(step.kept);
	if (note(u, dir_fd, name, step, e) < 0)
		return -1;
	int r = os_renameat2(names, RENAME_NOREPLACE);
	if (r < 0) {
		u->steps.len--;
		return err_sys(e, -r, "delete %s", name);
	}
	return 0;
}

int undo_made_dir(struct undo *u, int dir_fd, const char *name, struct err *e)
{
	return note(u, dir_fd, name, (struct undo_step){ .is_dir = true }, e);
}

static void forget(struct undo *u)
{
	for (size_t i = 0; i < u->dirs.len; i++)
		fd_close(&u->dirs.at[i].fd);
	vec_done(&u->dirs);
	vec_done(&u->steps);
}

/* A file that cannot be removed is left behind: the change itself is done. */
void undo_commit(struct undo *u)
{
	struct err e;

	for (size_t i = 0; i < u->steps.len; i++) {
		const struct undo_step *s = &u->steps.at[i];

		if (s->kept[0])
			(void)remove_tree(u->dirs.at[s->dir].fd, s->kept, (struct remove_how){ 0 },
			                  &e);
	}
	forget(u);
}

static void take_back(int dir_fd, const struct undo_step *s)
{
	struct os_names names = { dir_fd, s->kept, dir_fd, s->name };

	/* Best effort: whoever changes the same names now decides. */
	if (s->is_dir)
		(void)os_rmdirat(dir_fd, s->name);
	else if (s->is_gone)
		(void)os_renameat2(names, RENAME_NOREPLACE);
	else if (!s->kept[0])
		(void)os_unlinkat(dir_fd, s->name);
	else if (os_renameat2(names, RENAME_EXCHANGE) == 0)
		(void)os_unlinkat(dir_fd, s->kept);
}

void undo_back(struct undo *u)
{
	for (size_t i = u->steps.len; i-- > 0;)
		take_back(u->dirs.at[u->steps.at[i].dir].fd, &u->steps.at[i]);
	forget(u);
}

void undo_done(struct undo *u)
{
	undo_back(u);
}
