/*
 * image.c - a body becomes the root file system of an image, in the worker's own root.
 *
 * Before the first byte of a stranger's archive is looked at, this process gives up every file but
 * those below it (Landlock, on top of the walls of its sandbox).
 */
#include <linux/openat2.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/landlock.h"
#include "os/node.h"
#include "tree/fail.h"
#include "tree/image-internal.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/verbs.h"
#include "wire/hash.h"

int image_body(void *call, struct span *out, struct err *e)
{
	return call_body(call, out, e);
}

/* A kernel without it leaves the other walls. */
static int confine(int root_fd, struct err *e)
{
	int abi = os_landlock_abi();

	if (abi == -ENOSYS || abi == -EOPNOTSUPP)
		return 0;
	AUTO(fd_close) int rules = abi < 0 ? abi : os_landlock_ruleset(os_landlock_all(abi), 0);
	int r = rules < 0 ? rules : os_landlock_allow(rules, root_fd, os_landlock_all(abi));
	if (r >= 0)
		r = os_landlock_restrict(rules);
	return r < 0 ? err_sys(e, -r, "confine the worker to the image") : 0;
}

/* ---- a root file system as it is ----------------------------------------------------- */

struct hashed {
	struct call *call;
	struct hash hash;
};

static int hashed_body(void *arg, struct span *out, struct err *e)
{
	struct hashed *h = arg;
	int r = call_body(h->call, out, e);

	if (r > 0)
		hash_add(&h->hash, *out);
	return r;
}

static int image_tar(struct layers *l, char hex[OCI_HEX], struct err *e)
{
	struct hashed h = { .call = l->call };
	const struct layer_ask ask = { .source = hashed_body, .arg = &h, .must_end = true };

	hash_init(&h.hash);
	if (layers_apply(l, &ask, e) < 0)
		return -1;
	hash_text(&h.hash, hex);
	return 0;
}

/* ---- the answer ---------------------------------------------------------------------- */

/* Who lives there, for those who name a user. No such file, or not text: nobody. */
static void put_users(json_t *j, int root_fd)
{
	AUTO(freep) char *text = mem_alloc(TREE_PASSWD_MAX);
	AUTO(fd_close)
	int fd =
	    os_openat2(root_fd, "etc/passwd", O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, RESOLVE_IN_ROOT);
	ssize_t n = fd < 0 ? fd : os_read(fd, text, TREE_PASSWD_MAX);

	bool is_text = n > 0 && n < TREE_PASSWD_MAX && !memchr(text, '\0', (size_t)n);
	json_t *users = is_text ? json_stringn(text, (size_t)n) : NULL; /* none: not UTF-8 */
	if (users)
		json_put(j, "passwd", users);
}

static int answer(struct layers *l, const char *hex, const struct str *settings, struct err *e)
{
	AUTO(json_drop) json_t *j = json_object();

	json_put_number(j, "files", l->dest.files);
	json_put_number(j, "bytes", l->dest.bytes);
	json_put_number(j, "layers", l->n);
	json_put_number(j, "dropped", l->dropped);
	json_put_text(j, "digest", hex);
	if (settings->len > 0)
		json_put_text(j, "settings", str_text(settings));
	put_users(j, l->dest.root_fd);
	return call_answer(l->call, j, e);
}

int verb_image(struct call *c, struct err *e)
{
	AUTO(fd_close) int root = root_open_dir(c->conn->root_fd, "", e);
	AUTO(layers_done) struct layers l = { .dest = { .root_fd = -1, .dir_fd = -1 } };
	AUTO(str_done) struct str settings = { .max = OCI_SETTINGS_MAX };
	char hex[OCI_HEX];

	if (root < 0 || confine(root, e) < 0 || layers_open(&l, c, root, e) < 0)
		return -1;
	int r = c->flags & TREE_OCI ? image_oci(&l, hex, &settings, e) : image_tar(&l, hex, e);
	if (r < 0 || layers_finish(&l, e) < 0)
		return -1;
	if (l.entries == 0)
		return fail(e, TREE_INVALID, "there is nothing in it");
	return answer(&l, hex, &settings, e);
}
