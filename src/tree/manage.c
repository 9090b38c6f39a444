/*
 * manage.c - directories are made, anything is deleted.
 */
#include "base/fd.h"
#include "os/file.h"
#include "tree/blob.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/ops.h"
#include "tree/remove.h"
#include "tree/sys.h"
#include "tree/verbs.h"
#include "wire/hash.h"

static int check_match(const struct place *p, const char *match, struct err *e)
{
	AUTO(blob_done) struct blob old = { 0 };
	char hash[TREE_HASH_TEXT];
	struct stat st;
	AUTO(fd_close)
	int fd = os_openat(p->dir_fd, p->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return err_sys(e, -fd, "open %s", p->name);
	if (blob_read(&old, fd, &st, TREE_WHOLE_MAX, e) < 0)
		return -1;
	hash_of(blob_span(&old), hash);
	if (strcmp(hash, match) != 0)
		return fail(e, TREE_STALE, "it has changed: its hash is %s", hash);
	return 0;
}

/* `is_dir` wants all that is below gone too, or nothing to be there. */
static int delete_dir(struct call *c, const struct place *p, const struct delete_args *args,
                      uint64_t *deleted, struct err *e)
{
	if (args->undo && args->recursive)
		return undo_remove(args->undo, p->dir_fd, p->name, true, e);
	if (args->recursive)
		return remove_tree(p->dir_fd, p->name,
		                   (struct remove_how){ .call = c, .removed = deleted }, e);
	int r = os_rmdirat(p->dir_fd, p->name);
	if (r == -ENOTEMPTY || r == -EEXIST)
		return fail(e, TREE_CONFLICT, "%s is not empty: recursive deletes it", args->path);
	if (r < 0)
		return err_sys(e, -r, "delete %s", args->path);
	return 0;
}

int op_delete(struct call *c, const struct delete_args *args, json_t **out, struct err *e)
{
	AUTO(place_done) struct place p = { .dir_fd = -1 };
	uint64_t deleted = 0;
	struct stat st;

	if (root_place(c->conn->root_fd, args->path, (struct place_how){ 0 }, &p, e) < 0)
		return -1;
	int r = os_fstatat(p.dir_fd, p.name, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0)
		return err_sys(e, -r, "delete %s", args->path);
	if (args->match && *args->match && check_match(&p, args->match, e) < 0)
		return err_wrap(e, "%s", args->path);
	if (args->undo && S_ISDIR(st.st_mode) && !args->recursive)
		return fail(e, TREE_INVALID,
		            "%s is a directory: in an atomic batch only recursive "
		            "deletes it",
		            args->path);
	r = S_ISDIR(st.st_mode) ? delete_dir(c, &p, args, &deleted, e)
	                        : undo_remove(args->undo, p.dir_fd, p.name, false, e);
	if (r < 0)
		return -1;
	*out = json_object();
	json_put_bytes(*out, "path", span_of(args->path));
	json_put_number(*out, "deleted", deleted > 0 ? deleted : 1);
	return 0;
}

int verb_delete(struct call *c, struct err *e)
{
	const struct delete_args args = { .path = c->path,
		                          .match = c->match,
		                          .recursive = c->flags & TREE_RECURSIVE };
	AUTO(json_drop) json_t *j = NULL;

	if (op_delete(c, &args, &j, e) < 0)
		return -1;
	return call_answer(c, j, e);
}

static int make_dir(const struct place *p, const char *path, mode_t mode, bool *is_new,
                    struct err *e)
{
	struct stat st;
	int r = os_mkdirat(p->dir_fd, p->name, mode & 0777);

	*is_new = r == 0;
	if (r == -EEXIST && os_fstatat(p->dir_fd, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode))
		return 0;
	return r < 0 ? err_sys(e, -r, "make directory %s", path) : 0;
}

int verb_mkdir(struct call *c, struct err *e)
{
	struct {
		const char *path;
		uint32_t mode;
	} args = { .mode = 0755 };
	static const struct field fields[] = {
		{ "path", 0, FIELD_PATH, true },
		{ "mode", offsetof(__typeof__(args), mode), FIELD_MODE, false },
	};
	AUTO(json_drop) json_t *body = call_body_json(c, e);
	AUTO(place_done) struct place p = { .dir_fd = -1 };
	const struct place_how how = { .follow = true, .make_parents = true };
	char path[PATH_TEXT_MAX];
	bool is_new;

	if (!body ||
	    json_read(body, (struct fields){ fields, COUNT(fields) }, &args, &c->arena, e) < 0 ||
	    root_join(c->path, args.path, path, e) < 0 ||
	    root_place(c->conn->root_fd, path, how, &p, e) < 0 ||
	    make_dir(&p, args.path, args.mode, &is_new, e) < 0)
		return -1;
	AUTO(json_drop) json_t *j = json_object();
	json_put_bytes(j, "path", span_of(args.path));
	json_put_bool(j, "created", is_new);
	return call_answer(c, j, e);
}
