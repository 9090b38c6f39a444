#include "vault/overlay.h"

#include <time.h>

#include "base/fd.h"
#include "base/str.h"
#include "os/file.h"
#include "os/mount.h"
#include "vault/trees.h"

/* <sys/mount.h> cannot be included together with the header of the newer calls. */
#define NO_SUID 2ul
#define NO_DEV 4ul
#define READ_ONLY 1ul

#define OPTIONS_MAX 4095  /* one page, mount(2) */
#define BUSY_WAIT_MS 1000 /* a sandbox that has just ended may hold the mount this long */
#define BUSY_STEP_MS 10

static const char *place_of(bool is_second)
{
	return is_second ? "u" : "w";
}

static bool is_rootless(const struct vault *v)
{
	return v->open.flags & VAULT_ROOTLESS;
}

/* Rootless there is one id, the same on disk. */
static enum trees_ids ids_outside(const struct vault *v)
{
	return is_rootless(v) ? TREES_ON_DISK : TREES_OUTSIDE;
}

static void add_layers(const struct vault *v, struct str *s, enum trees_ids ids,
                       const struct stack *k)
{
	str_add(s, "lowerdir=");
	for (uint32_t i = 0; i < k->n_layers; i++)
		str_addf(s, "%s%s/%llu/d", i ? ":" : "", trees_place(v, k->layers[i], ids),
		         (unsigned long long)k->layers[i]);
}

static void add_mode(const struct vault *v, struct str *s)
{
	/* Renamed directories keep their place below; user.* attributes cannot be trusted with
	 * that, the kernel refuses it (overlayfs.rst). */
	str_add(s, is_rootless(v) ? ",userxattr" : ",redirect_dir=on");
	str_add(s, ",xino=on,index=off,metacopy=off,nfs_export=off");
}

static int check_layers(const struct vault *v, const struct stack *s, struct err *e)
{
	for (uint32_t i = 0; i < s->n_layers; i++) {
		int r = trees_is_sealed(v, s->layers[i], e);

		if (r < 0)
			return -1;
		if (r == 0)
			return err_new(e, ERR_INVALID, "tree %llu is not sealed",
			               (unsigned long long)s->layers[i]);
	}
	return 0;
}

/* Two overlays on one top are undefined, and allowed with a line in the kernel's log unless one
 * asks for an index; the answer comes before that is made, and a work folder on another mount then
 * ends the attempt. */
static int is_busy(const struct vault *v, uint64_t top)
{
	char options[128];

	snprintf(options, sizeof options, "lowerdir=t/%u/d,upperdir=%s/%llu/d,workdir=b,index=on",
	         VAULT_EMPTY_TREE, trees_place(v, top, TREES_ON_DISK), (unsigned long long)top);
	int r = os_mount("overlay", "k", READ_ONLY, options);
	return r == -EBUSY ? 1 : r == -EINVAL ? 0 : r < 0 ? r : -EINVAL;
}

static int wait_free(const struct vault *v, uint64_t top, struct err *e)
{
	int r = is_busy(v, top);

	for (int ms = 0; r == 1 && ms < BUSY_WAIT_MS; ms += BUSY_STEP_MS) {
		nanosleep(&(struct timespec){ .tv_nsec = BUSY_STEP_MS * 1000000l }, NULL);
		r = is_busy(v, top);
	}
	if (r == 1)
		return err_sys(e, EBUSY, "tree %llu is mounted by another",
		               (unsigned long long)top);
	return r < 0 ? err_sys(e, -r, "look whether a top is mounted") : 0;
}

/* The mounter's own id must be known to the mapping of the layers: else the work folder cannot be
 * made, and the kernel mounts read-only and says that all is well. */
static int mount_as_root_inside(struct vault *v, unsigned long flags, const char *options,
                                struct err *e)
{
	const char *place = place_of(v->place);

	if (den_as(v, 0, 0, e) < 0)
		return -1;
	int r = os_mount("overlay", place, flags, options);
	den_as_self(v);
	if (r < 0)
		return err_sys(e, -r, "mount the workspace");
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, place, O_RDONLY | O_DIRECTORY, 0);
	int is_ro = fd < 0 ? fd : os_is_read_only(fd);
	if (is_ro < 0 || (is_ro == 1 && !(flags & READ_ONLY))) {
		(void)os_umount_lazy(place); /* nobody has seen it */
		return is_ro < 0 ? err_sys(e, -is_ro, "open the workspace")
		                 : err_new(e, ERR_INTERNAL, "the workspace cannot be written");
	}
	v->work_fd = fd_take(&fd);
	return 0;
}

/* One layer and no top are no overlay, for the kernel neither. */
static int bind_one(struct vault *v, uint64_t layer, struct err *e)
{
	const char *place = place_of(v->place);
	char path[64];

	snprintf(path, sizeof path, "%s/%llu/d", trees_place(v, layer, ids_outside(v)),
	         (unsigned long long)layer);
	AUTO(fd_close) int tree = os_open_tree(AT_FDCWD, path, false);
	int r = tree < 0
	            ? tree
	            : os_mount_setattr(
			  tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, false);
	if (r >= 0)
		r = os_move_mount(tree, AT_FDCWD, place);
	int fd = r < 0 ? r : os_openat(AT_FDCWD, place, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return err_sys(e, -fd, "mount the workspace");
	v->work_fd = fd;
	return 0;
}

int overlay_mount(struct vault *v, struct stack s, struct err *e)
{
	AUTO(str_done) struct str options = { .max = OPTIONS_MAX };
	unsigned long flags = NO_SUID | NO_DEV | (s.top ? 0 : READ_ONLY);

	if (check_layers(v, &s, e) < 0 || (s.top && wait_free(v, s.top, e) < 0))
		return -1;
	if (!s.top && s.n_layers == 1)
		return bind_one(v, s.layers[0], e);
	add_layers(v, &options, ids_outside(v), &s);
	const char *folder = trees_place(v, s.top, ids_outside(v));
	if (s.top)
		str_addf(&options, ",upperdir=%s/%llu/d,workdir=%s/%llu/w", folder,
		         (unsigned long long)s.top, folder, (unsigned long long)s.top);
	add_mode(v, &options);
	if (options.overflow)
		return err_new(e, ERR_LIMIT, "the layers do not fit into one mount");
	return mount_as_root_inside(v, flags, str_text(&options), e);
}

int overlay_clone(const struct vault *v, struct err *e)
{
	int fd = os_open_tree(v->work_fd, "", false);

	return fd < 0 ? err_sys(e, -fd, "clone the workspace's mount") : fd;
}

int overlay_mount_layers(const struct vault *v, const uint64_t *layers, uint32_t n,
                         const char *place, struct err *e)
{
	AUTO(str_done) struct str options = { .max = OPTIONS_MAX };
	uint64_t all[VAULT_LAYERS_MAX];
	struct stack s = { .layers = all, .n_layers = n };
	char only[64];

	memcpy(all, layers, n * sizeof *layers);
	snprintf(only, sizeof only, "%s/%llu/d", trees_place(v, all[0], TREES_ON_DISK),
	         (unsigned long long)all[0]);
	if (n == 1) { /* one alone is no overlay */
		int fd = os_openat(AT_FDCWD, only, O_RDONLY | O_DIRECTORY, 0);

		return fd < 0 ? err_sys(e, -fd, "open the layer") : fd;
	}
	add_layers(v, &options, TREES_ON_DISK, &s);
	add_mode(v, &options);
	if (options.overflow)
		return err_new(e, ERR_LIMIT, "the layers do not fit into one mount");
	int r = os_mount("overlay", place, READ_ONLY | NO_SUID | NO_DEV, str_text(&options));
	int fd = r < 0 ? r : os_openat(AT_FDCWD, place, O_RDONLY | O_DIRECTORY, 0);
	return fd < 0 ? err_sys(e, -fd, "mount the layers") : fd;
}

void overlay_unmount(struct vault *v)
{
	fd_close(&v->work_fd);
	fd_close(&v->lower_fd);
	fd_close(&v->old_fd);
	/* Of our namespace alone: sandboxes have mounts of their own. */
	(void)os_umount_lazy("w");
	(void)os_umount_lazy("u");
	(void)os_umount_lazy("l");
}

void overlay_set_aside(struct vault *v)
{
	overlay_settle(v);
	if (v->work_fd < 0)
		return;
	v->old_fd = fd_take(&v->work_fd);
	v->place = !v->place;
}

void overlay_take_back(struct vault *v)
{
	v->work_fd = fd_take(&v->old_fd);
	v->place = !v->place;
}

void overlay_settle(struct vault *v)
{
	if (v->old_fd < 0)
		return;
	fd_close(&v->old_fd);
	(void)os_umount_lazy(place_of(!v->place)); /* of our namespace alone */
}
