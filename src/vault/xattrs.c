#include "vault/xattrs.h"

#include <linux/xattr.h>

#include "os/node.h"

#define NAMES_MAX 65536 /* XATTR_LIST_MAX */
#define NAMES_COUNT 1024
#define FEW 1024 /* the kernel makes room for as much as it is asked for */

static const char *const kept[] = {
	"user.",
	"trusted.overlay.",
	"security.capability",
	"system.posix_acl_",
};

bool xattrs_is_overlay(const char *name)
{
	return strncmp(name, "trusted.overlay.", 16) == 0 ||
	       strncmp(name, "user.overlay.", 13) == 0;
}

static bool is_kept(const char *name)
{
	for (size_t i = 0; i < COUNT(kept); i++)
		if (strncmp(name, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names that are kept, sorted; they point into `buf`. */
static int list(int fd, char buf[NAMES_MAX], const char *names[NAMES_COUNT], struct err *e)
{
	int n = os_listxattr(fd, buf, FEW), count = 0;

	if (n == -ERANGE)
		n = os_listxattr(fd, buf, NAMES_MAX);
	if (n == -EOPNOTSUPP)
		return 0;
	if (n < 0)
		return err_sys(e, -n, "list attributes");
	for (int at = 0; at < n; at += (int)strlen(buf + at) + 1) {
		if (!is_kept(buf + at))
			continue;
		if (count == NAMES_COUNT)
			return err_new(e, ERR_LIMIT, "a file has too many attributes");
		names[count++] = buf + at;
	}
	if (count > 1)
		qsort(names, (size_t)count, sizeof *names, by_name);
	return count;
}

int xattrs_read(int fd, struct str *out, struct err *e)
{
	static char buf[NAMES_MAX], value[NAMES_MAX];
	const char *names[NAMES_COUNT];
	int count = list(fd, buf, names, e);

	str_clear(out);
	if (count < 0)
		return -1;
	for (int i = 0; i < count; i++) {
		ssize_t n = os_getxattr(fd, names[i], value, FEW);

		if (n == -ERANGE)
			n = os_getxattr(fd, names[i], value, sizeof value);
		uint32_t len = (uint32_t)n;
		if (n < 0)
			return err_sys(e, (int)-n, "read attribute %.64s", names[i]);
		str_addn(out, names[i], strlen(names[i]) + 1);
		str_addn(out, &len, sizeof len);
		str_addn(out, value, (size_t)n);
	}
	return out->overflow ? err_new(e, ERR_LIMIT, "a file has too many attributes") : 0;
}

bool xattrs_next(struct span *rest, struct xattr *out)
{
	uint32_t len;

	if (rest->len == 0)
		return false;
	out->name = rest->at;
	size_t n = strlen(rest->at) + 1;
	memcpy(&len, rest->at + n, sizeof len);
	out->value = (struct span){ rest->at + n + sizeof len, len };
	*rest = span_after(*rest, n + sizeof len + len);
	return true;
}

static bool next_seen(struct span *rest, struct xattr *out)
{
	while (xattrs_next(rest, out))
		if (!xattrs_is_overlay(out->name))
			return true;
	return false;
}

static bool same(const struct xattr *a, const struct xattr *b)
{
	return strcmp(a->name, b->name) == 0 && a->value.len == b->value.len &&
	       memcmp(a->value.at, b->value.at, a->value.len) == 0;
}

bool xattrs_same_view(struct span a, struct span b)
{
	struct xattr x, y;

	for (;;) {
		bool has_x = next_seen(&a, &x), has_y = next_seen(&b, &y);

		if (!has_x || !has_y)
			return has_x == has_y;
		if (!same(&x, &y))
			return false;
	}
}

/* An ACL names users and groups; what is written through the mount is read with its ids. */
static size_t map_acl(struct span value, uint32_t id_base, char out[NAMES_MAX])
{
	struct {
		uint16_t tag, perm;
		uint32_t id;
	} entry;

	memcpy(out, value.at, value.len);
	for (size_t at = 4; at + sizeof entry <= value.len; at += sizeof entry) {
		memcpy(&entry, out + at, sizeof entry);
		if (entry.tag == 2 || entry.tag == 8) /* ACL_USER, ACL_GROUP */
			entry.id += id_base;
		memcpy(out + at, &entry, sizeof entry);
	}
	return value.len;
}

static int write_one(int fd, const struct xattr *x, struct xattrs_how how, struct err *e)
{
	static char value[NAMES_MAX];
	struct span bytes = x->value;

	if (strncmp(x->name, "system.posix_acl_", 17) == 0 && bytes.len <= sizeof value)
		bytes = (struct span){ value, map_acl(bytes, how.id_base, value) };
	int r = os_setxattr(fd, x->name, bytes.at, bytes.len);
	return r < 0 ? err_sys(e, -r, "set attribute %.64s", x->name) : 0;
}

static bool has_name(struct span xattrs, const char *name)
{
	struct xattr x;

	while (xattrs_next(&xattrs, &x))
		if (strcmp(x.name, name) == 0)
			return true;
	return false;
}

int xattrs_write(int fd, struct span xattrs, struct xattrs_how how, struct err *e)
{
	static char buf[NAMES_MAX];
	const char *names[NAMES_COUNT];
	struct span rest = xattrs;
	struct xattr x;
	int count = list(fd, buf, names, e);

	if (count < 0)
		return -1;
	for (int i = 0; i < count; i++) {
		if (has_name(xattrs, names[i]) || (how.is_view && xattrs_is_overlay(names[i])))
			continue;
		int r = os_removexattr(fd, names[i]);

		if (r < 0 && r != -ENODATA)
			return err_sys(e, -r, "remove attribute %.64s", names[i]);
	}
	while (xattrs_next(&rest, &x))
		if (!(how.is_view && xattrs_is_overlay(x.name)) && write_one(fd, &x, how, e) < 0)
			return -1;
	return 0;
}
