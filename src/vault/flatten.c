/*
 * flatten.c - a whole stack of sealed trees becomes one, by links: it shows what they show.
 *
 * Every directory of the result comes from one or more of the trees, each at a path of its own once
 * something was renamed. The rules are the overlay's: a whiteout, a file and an opaque directory
 * hide what is below; a redirect says where the rest of a directory lies in the trees below it.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/node.h"
#include "vault/fill.h"
#include "vault/names.h"
#include "vault/trees.h"
#include "vault/verbs.h"
#include "vault/xattrs.h"

#define REDIRECT_MAX 4096

/* What each tree has of a directory; the uppermost first, -1: nothing. */
struct dir {
	int parts[VAULT_LAYERS_MAX];
};

struct flatten {
	const struct vault *v;
	int roots[VAULT_LAYERS_MAX]; /* the trees' own folders */
	uint32_t n;
	bool is_rootless;
	struct vault_done *done;
};

static void dir_done(struct dir *d)
{
	for (size_t i = 0; i < COUNT(d->parts); i++)
		fd_close(&d->parts[i]);
}

static void dir_init(struct dir *d)
{
	for (size_t i = 0; i < COUNT(d->parts); i++)
		d->parts[i] = -1;
}

/* An attribute as text; "" when there is none. */
static int read_attribute(const struct flatten *f, int fd, const char *name, char out[REDIRECT_MAX])
{
	char full[64];

	snprintf(full, sizeof full, "%s.overlay.%s", f->is_rootless ? "user" : "trusted", name);
	ssize_t n = os_getxattr(fd, full, out, REDIRECT_MAX - 1);
	out[n < 0 ? 0 : n] = '\0';
	return n < 0 && n != -ENODATA && n != -EOPNOTSUPP ? (int)n : 0;
}

/* What a name is in the result. */
struct found {
	bool is_dir;
	uint32_t first;          /* the tree that has it uppermost; n: none */
	int dir_fd;              /* of a file: its folder there, borrowed or `own` */
	uint64_t size;           /* of a file */
	char name[REDIRECT_MAX]; /* and its name there */
	struct dir dir;          /* of a directory: all parts */
};

/* Where the trees below go on after a directory of tree `i`. 0: they do not. */
static int follow(const struct flatten *f, int fd, char where[REDIRECT_MAX], bool *is_absolute,
                  struct err *e)
{
	char text[REDIRECT_MAX];
	int r = read_attribute(f, fd, "opaque", text);

	if (r >= 0 && strcmp(text, "y") == 0)
		return 0;
	if (r >= 0)
		r = read_attribute(f, fd, "redirect", text);
	if (r < 0)
		return err_sys(e, -r, "read an attribute of a layer");
	if (text[0] == '/') {
		snprintf(where, REDIRECT_MAX, "%s", text + 1);
		*is_absolute = true;
	} else if (text[0]) {
		char *slash = *is_absolute ? strrchr(where, '/') : NULL;
		size_t keep = slash ? (size_t)(slash - where) + 1 : 0;

		snprintf(where + keep, REDIRECT_MAX - keep, "%s", text);
	}
	return 1;
}

/* A look-up on its way down. */
struct way {
	char where[REDIRECT_MAX]; /* in the folder of the parent, or from the root */
	bool is_absolute;
};

/* What tree `i` has there: 1 when those below it are still to be looked at. */
static int look(const struct flatten *f, uint32_t i, int at, struct way *w, struct found *out,
                struct err *e)
{
	struct stat st;
	int r = at < 0 ? -ENOENT : os_fstatat(at, w->where, &st, AT_SYMLINK_NOFOLLOW);

	if (r == -ENOENT || r == -ENOTDIR)
		return 1;
	if (r < 0)
		return err_sys(e, -r, "look at a layer");
	bool is_first = out->first == f->n, is_whiteout = S_ISCHR(st.st_mode) && st.st_rdev == 0;
	if (!S_ISDIR(st.st_mode)) {
		if (is_first && !is_whiteout) {
			out->first = i;
			out->dir_fd = at;
			out->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
			memcpy(out->name, w->where, sizeof out->name);
		}
		return 0;
	}
	out->is_dir = true;
	out->first = is_first ? i : out->first;
	r = os_openat(at, w->where, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r < 0)
		return err_sys(e, -r, "open a folder of a layer");
	out->dir.parts[i] = r;
	return follow(f, r, w->where, &w->is_absolute, e);
}

static int find(const struct flatten *f, const struct dir *parent, const char *name,
                struct found *out, struct err *e)
{
	struct way w = { .is_absolute = false };
	int r = 1;

	snprintf(w.where, sizeof w.where, "%s", name);
	out->first = f->n;
	for (uint32_t i = 0; i < f->n && r > 0; i++)
		r = look(f, i, w.is_absolute ? f->roots[i] : parent->parts[i], &w, out, e);
	return r < 0 ? -1 : 0;
}

static int dress(const struct flatten *f, int from_fd, int to_fd, struct err *e)
{
	AUTO(str_done) struct str xattrs = { .max = XATTRS_MAX };
	struct stat st;
	int r = os_fstatat(from_fd, "", &st, AT_EMPTY_PATH);

	if (r >= 0 && f->v->uid == 0)
		r = os_fchown(to_fd, st.st_uid, st.st_gid);
	if (r >= 0)
		r = os_fchmod(to_fd, st.st_mode & 07777);
	if (r < 0)
		return err_sys(e, -r, "set mode and owner");
	if (xattrs_read(from_fd, &xattrs, e) < 0 ||
	    xattrs_write(to_fd, (struct span){ str_text(&xattrs), xattrs.len },
	                 (struct xattrs_how){ .is_view = true }, e) < 0)
		return -1;
	r = os_utimens(to_fd, ".", st.st_mtim);
	return r < 0 ? err_sys(e, -r, "set a time") : 0;
}

static int flatten_dir(struct flatten *f, const struct dir *d, int to_fd, struct err *e);

static int flatten_name(struct flatten *f, const struct dir *d, const char *name, int to_fd,
                        struct err *e)
{
	/* Not on the stack: directories may be deep. */
	struct found *found = mem_alloc(sizeof *found);

	*found = (struct found){ .dir_fd = -1 };
	dir_init(&found->dir);
	int r = find(f, d, name, found, e);
	if (r >= 0 && found->first < f->n) {
		if (!found->is_dir) {
			f->done->files++;
			f->done->bytes += found->size;
			r = os_linkat((struct os_names){ found->dir_fd, found->name, to_fd, name });
			if (r < 0)
				r = err_sys(e, -r, "link a file");
		} else {
			r = os_mkdirat(to_fd, name, 0700);
			int fd = r < 0 ? r : os_openat(to_fd, name, O_RDONLY | O_DIRECTORY, 0);
			r = fd < 0 ? err_sys(e, -fd, "make a folder")
			           : flatten_dir(f, &found->dir, fd, e);
			if (r >= 0)
				r = dress(f, found->dir.parts[found->first], fd, e);
			fd_close(&fd);
		}
	}
	dir_done(&found->dir);
	free(found);
	return r;
}

/* Names of all parts, each once: those of a lower one that an upper one has are found by it. */
static bool is_above(const struct dir *d, uint32_t i, const char *name)
{
	struct stat st;

	for (uint32_t k = 0; k < i; k++)
		if (d->parts[k] >= 0 &&
		    os_fstatat(d->parts[k], name, &st, AT_SYMLINK_NOFOLLOW) >= 0)
			return true;
	return false;
}

static int flatten_dir(struct flatten *f, const struct dir *d, int to_fd, struct err *e)
{
	for (uint32_t i = 0; i < f->n; i++) {
		AUTO(names_done) struct names names = { 0 };

		if (d->parts[i] < 0)
			continue;
		if (names_read(d->parts[i], &names, e) < 0)
			return -1;
		for (size_t k = 0; k < names.list.len; k++) {
			const char *name = names.list.at[k].text;

			if (!is_above(d, i, name) && flatten_name(f, d, name, to_fd, e) < 0)
				return -1;
		}
	}
	return 0;
}

static int open_root(struct flatten *f, uint64_t layer, struct dir *root, struct err *e)
{
	int fd = trees_open_files(f->v, layer, e);

	root->parts[f->n] = f->roots[f->n] = fd;
	f->n++;
	return fd < 0 ? -1 : 0;
}

static int open_roots(struct flatten *f, const struct vault_flatten *ask, struct dir *root,
                      struct err *e)
{
	if (ask->from && open_root(f, ask->filled, root, e) < 0)
		return -1;
	for (uint32_t i = 0; i < ask->n_layers; i++) {
		int sealed = trees_is_sealed(f->v, ask->layers[i], e);

		if (sealed == 0)
			return err_new(e, ERR_INVALID, "tree %llu is not sealed",
			               (unsigned long long)ask->layers[i]);
		if (sealed < 0 || open_root(f, ask->layers[i], root, e) < 0)
			return -1;
	}
	return 0;
}

/* From the beginning: one that was cut short is of no use. */
static int make_tree(struct flatten *f, const struct vault_flatten *ask, const struct dir *root,
                     struct err *e)
{
	uint64_t number = ask->number;

	if (trees_remove(f->v, number, e) < 0 || trees_make(f->v, number, e) < 0)
		return -1;
	AUTO(fd_close) int to = trees_open_files(f->v, number, e);
	if (to < 0 || flatten_dir(f, root, to, e) < 0 || dress(f, root->parts[0], to, e) < 0)
		return -1;
	/* With a checkpoint over them it shows more than they do. */
	if (!ask->from && trees_note_flat(f->v, number, ask->layers, ask->n_layers, e) < 0)
		return -1;
	return trees_seal(f->v, number, e);
}

int verb_flatten(struct vault *v, const struct vault_packet *ask, int fd, struct vault_done *done,
                 struct err *e)
{
	const struct vault_flatten *how = &ask->flatten;
	const struct fill fill = { how->filled, how->from, how->layers, how->n_layers };
	struct flatten f = { .v = v, .is_rootless = v->open.flags & VAULT_ROOTLESS, .done = done };
	struct dir root;
	struct err none = { 0 };

	(void)fd;
	if (trees_is_sealed(v, how->number, &none) == 1)
		return 0; /* it was done */
	dir_init(&root);
	int r = how->from ? fill_top(v, &fill, e) : 0;
	if (r >= 0)
		r = open_roots(&f, how, &root, e);
	if (r >= 0)
		r = make_tree(&f, how, &root, e);
	dir_done(&root);
	return r < 0 ? -1 : 0;
}
