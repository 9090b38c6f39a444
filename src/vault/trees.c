#include "vault/trees.h"

#include <fcntl.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/loop.h"
#include "os/node.h"
#include "vault/names.h"

void trees_name(uint64_t number, char out[TREE_NAME_MAX])
{
	snprintf(out, TREE_NAME_MAX, "%llu", (unsigned long long)number);
}

static bool is_in_volume(const struct vault *v, uint64_t number)
{
	char name[TREE_NAME_MAX];
	struct stat st;

	trees_name(number, name);
	return v->volume_fd >= 0 && os_fstatat(v->volume_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

const char *trees_place(const struct vault *v, uint64_t number, enum trees_ids ids)
{
	if (is_in_volume(v, number))
		return ids == TREES_OUTSIDE ? "y" : "x";
	return ids == TREES_OUTSIDE ? "m" : "t";
}

int trees_root(const struct vault *v, bool is_top)
{
	return is_top && v->volume_fd >= 0 ? v->volume_fd : v->trees_fd;
}

int trees_open(const struct vault *v, uint64_t number, struct err *e)
{
	char name[TREE_NAME_MAX];

	trees_name(number, name);
	int fd = os_openat(is_in_volume(v, number) ? v->volume_fd : v->trees_fd, name,
	                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd == -ENOENT)
		return err_new(e, ERR_NOT_FOUND, "there is no tree %s", name);
	return fd < 0 ? err_sys(e, -fd, "open tree %s", name) : fd;
}

int trees_open_files(const struct vault *v, uint64_t number, struct err *e)
{
	AUTO(fd_close) int tree = trees_open(v, number, e);
	int fd = tree < 0 ? tree : os_openat(tree, "d", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (tree >= 0 && fd < 0)
		return err_sys(e, -fd, "open the files of a tree");
	return fd < 0 ? -1 : fd;
}

int trees_is_sealed(const struct vault *v, uint64_t number, struct err *e)
{
	AUTO(fd_close) int tree = trees_open(v, number, e);
	struct stat st;

	if (tree < 0)
		return -1;
	int r = os_fstatat(tree, "sealed", &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "look at a tree");
	return r == 0;
}

static int make_dir(int dir_fd, const char *name, mode_t mode)
{
	int r = os_mkdirat(dir_fd, name, mode);

	return r == -EEXIST ? 0 : r < 0 ? r : 1;
}

/* The attributes are set last: a root with those of the agent is whole. */
static int make_files(const struct vault *v, int tree_fd, const struct stat *like)
{
	int r = make_dir(tree_fd, "d", 0700);
	AUTO(fd_close)
	int fd = r < 0 ? r : os_openat(tree_fd, "d", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0)
		return fd;
	if (r == 0)
		return 0;
	bool is_root = v->uid == 0;
	r = is_root ? os_fchown(fd, like->st_uid, like->st_gid) : 0;
	if (r >= 0)
		r = os_fchmod(fd, like->st_mode & 07777);
	if (r >= 0 && like->st_mtim.tv_sec)
		r = os_utimens(fd, ".", like->st_mtim);
	return r;
}

static int make_like(const struct vault *v, uint64_t number, const struct stat *like, bool is_top,
                     struct err *e)
{
	char name[TREE_NAME_MAX];

	trees_name(number, name);
	int made = make_dir(trees_root(v, is_top), name, 0711);
	AUTO(fd_close) int tree = made < 0 ? made : trees_open(v, number, e);

	if (tree < 0)
		return made < 0 ? err_sys(e, -made, "make tree %s", name) : -1;
	int r = make_files(v, tree, like);
	if (r >= 0 && is_top)
		r = make_dir(tree, "w", 0700);
	/* The overlay works there as root of the inside. */
	if (r >= 0 && is_top && v->uid == 0)
		r = os_fchownat(tree, "w", 0, 0);
	return r < 0 ? err_sys(e, -r, "make tree %s", name) : made;
}

int trees_make(const struct vault *v, uint64_t number, struct err *e)
{
	const struct stat like = { .st_mode = 0755,
		                   .st_uid = VAULT_AGENT_ID,
		                   .st_gid = VAULT_AGENT_ID };

	return make_like(v, number, &like, false, e);
}

int trees_make_top(const struct vault *v, uint64_t number, uint64_t below, struct err *e)
{
	AUTO(fd_close) int fd = trees_open_files(v, below, e);
	struct stat like;
	int r = fd < 0 ? -1 : os_fstatat(fd, "", &like, AT_EMPTY_PATH);

	if (fd < 0)
		return -1;
	return r < 0 ? err_sys(e, -r, "look at a layer") : make_like(v, number, &like, true, e);
}

int trees_seal(const struct vault *v, uint64_t number, struct err *e)
{
	AUTO(fd_close) int tree = trees_open(v, number, e);

	if (tree < 0)
		return -1;
	int r = os_syncfs(tree); /* before the word that says so */
	if (r >= 0)
		r = os_make_file(tree, "sealed", NULL, 0, 0600);
	if (r == -EEXIST)
		r = 0;
	if (r >= 0)
		r = os_fsync(tree);
	return r < 0 ? err_sys(e, -r, "seal a tree") : 0;
}

int trees_unseal(const struct vault *v, uint64_t number, struct err *e)
{
	AUTO(fd_close) int tree = trees_open(v, number, e);

	if (tree < 0)
		return -1;
	int r = os_unlinkat(tree, "sealed");
	return r < 0 && r != -ENOENT ? err_sys(e, -r, "unseal a tree") : 0;
}

int trees_remove(const struct vault *v, uint64_t number, struct err *e)
{
	char name[TREE_NAME_MAX];

	trees_name(number, name);
	bool is_ours = is_in_volume(v, number);
	if (names_remove(is_ours ? v->volume_fd : v->trees_fd, name, e) < 0)
		return err_wrap(e, "tree %s", name);
	if (is_ours)
		(void)os_trim(
		    v->volume_fd); /* the room goes back to the host now, or with the next */
	return 0;
}

static bool is_wanted(const struct vault_open *o, uint64_t number)
{
	bool is_found = number == o->top;

	for (uint32_t i = 0; i < o->n_layers; i++)
		is_found |= o->layers[i] == number;
	return is_found;
}

int trees_drop_others(const struct vault *v, const struct vault_open *o, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };
	int r = v->volume_fd < 0 ? 0 : names_read(v->volume_fd, &names, e);

	for (size_t i = 0; i < names.list.len && r >= 0; i++) {
		char *end;
		uint64_t number = strtoull(names.list.at[i].text, &end, 10);

		if (*end == '\0' && number && !is_wanted(o, number))
			r = trees_remove(v, number, e);
	}
	return r;
}

int trees_check_empty(const struct vault *v, struct err *e)
{
	if (trees_make(v, VAULT_EMPTY_TREE, e) < 0)
		return -1;
	AUTO(fd_close) int tree = trees_open(v, VAULT_EMPTY_TREE, e);
	int r = tree < 0 ? -1 : os_make_file(tree, "sealed", NULL, 0, 0600);

	if (tree < 0)
		return -1;
	return r < 0 && r != -EEXIST ? err_sys(e, -r, "seal the empty tree") : 0;
}

static int add_usage(int fd, uint64_t *files, uint64_t *bytes, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };

	if (names_read(fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.list.len; i++) {
		const char *name = names.list.at[i].text;
		struct stat st;
		int r = os_fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW);

		if (r == -ENOENT)
			continue; /* nobody is stopped */
		if (r < 0)
			return err_sys(e, -r, "look at a file");
		(*files)++;
		/* All names of a file together count once. */
		*bytes += (uint64_t)st.st_blocks * 512 / (S_ISREG(st.st_mode) ? st.st_nlink : 1);
		if (!S_ISDIR(st.st_mode))
			continue;
		AUTO(fd_close)
		int below = os_openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (below == -ENOENT)
			continue;
		if (below < 0)
			return err_sys(e, -below, "open a folder");
		if (add_usage(below, files, bytes, e) < 0)
			return -1;
	}
	return 0;
}

int trees_usage(const struct vault *v, uint64_t number, uint64_t *files, uint64_t *bytes,
                struct err *e)
{
	AUTO(fd_close) int fd = trees_open_files(v, number, e);

	return fd < 0 ? -1 : add_usage(fd, files, bytes, e);
}

/* ---- flat trees -------------------------------------------------------------------- */

#define FLAT "flat"
#define FLAT_MAX 4096 /* layers that one may stand for */

struct numbers {
	VEC(uint64_t) list;
};

/* What it stands for; itself, when it is not flat. */
static void expand(const struct vault *v, uint64_t number, struct numbers *out)
{
	static uint64_t layers[FLAT_MAX];
	struct err ignored = { 0 };
	AUTO(fd_close) int tree = trees_open(v, number, &ignored);
	AUTO(fd_close) int fd = tree < 0 ? -1 : os_openat(tree, FLAT, O_RDONLY | O_NOFOLLOW, 0);
	int n = fd < 0 ? 0 : os_pread(fd, layers, sizeof layers, 0);

	if (n <= 0)
		vec_push(&out->list, number);
	for (int i = 0; i < n / (int)sizeof *layers; i++)
		vec_push(&out->list, layers[i]);
}

static void expand_all(const struct vault *v, struct stack_of s, struct numbers *out)
{
	for (uint32_t i = 0; i < s.n; i++)
		expand(v, s.layers[i], out);
}

int trees_note_flat(const struct vault *v, uint64_t number, const uint64_t *layers, uint32_t n,
                    struct err *e)
{
	struct numbers all = { 0 };
	AUTO(fd_close) int tree = trees_open(v, number, e);

	if (tree < 0)
		return -1;
	expand_all(v, (struct stack_of){ layers, n }, &all);
	int r = all.list.len > FLAT_MAX ? -E2BIG
	                                : os_make_file(tree, FLAT, all.list.at,
	                                               all.list.len * sizeof *all.list.at, 0600);
	vec_done(&all.list);
	return r < 0 ? err_sys(e, -r, "note what a flat tree stands for") : 0;
}

bool trees_same_stack(const struct vault *v, struct stack_of a, struct stack_of b)
{
	struct numbers x = { 0 }, y = { 0 };

	if (a.n == b.n && memcmp(a.layers, b.layers, a.n * sizeof *a.layers) == 0)
		return true;
	expand_all(v, a, &x);
	expand_all(v, b, &y);
	bool is_same = x.list.len == y.list.len;
	for (size_t i = 0; i < x.list.len && is_same; i++)
		is_same = x.list.at[i] == y.list.at[i];
	vec_done(&x.list);
	vec_done(&y.list);
	return is_same;
}
