/*
 * mark.c - attributes of a file that its user gave it (user.*), read and replaced.
 */
#include "base/fd.h"
#include "os/node.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/ops.h"
#include "tree/sys.h"
#include "tree/verbs.h"

#define NAMES_MAX (16u << 10)
#define VALUE_MAX 4096

static const char ours[] = "user.";

/* Calls back for each name that begins with the prefix. */
static void each(int fd, const char *prefix, void (*found)(int fd, const char *name, void *arg),
                 void *arg)
{
	char names[NAMES_MAX];
	int n = os_listxattr(fd, names, sizeof names);

	for (int at = 0; at < n; at += (int)strlen(names + at) + 1)
		if (strncmp(names + at, prefix, strlen(prefix)) == 0)
			found(fd, names + at, arg);
}

static void put(int fd, const char *name, void *arg)
{
	char value[VALUE_MAX];
	ssize_t n = os_getxattr(fd, name, value, sizeof value);

	if (n >= 0)
		json_put_bytes(arg, name, (struct span){ value, (size_t)n });
}

void mark_print(int fd, json_t *to)
{
	json_t *all = json_object();

	each(fd, ours, put, all);
	if (json_object_size(all) > 0)
		json_put(to, "attributes", all);
	else
		json_decref(all);
}

static void drop(int fd, const char *name, void *arg)
{
	int *error = arg;
	int r = os_removexattr(fd, name);

	if (r < 0)
		*error = r;
}

static int set_all(int fd, const char *prefix, json_t *set, struct err *e)
{
	AUTO(str_done) struct str name = { .max = 256 };
	const char *key;
	json_t *v;

	json_object_foreach(set, key, v)
	{
		if (!json_is_string(v) || json_string_length(v) > VALUE_MAX)
			return fail(e, TREE_INVALID, "set: a text of at most %u bytes is expected",
			            VALUE_MAX);
		str_clear(&name);
		str_addf(&name, "%s%s", prefix, key);
		int r = name.overflow ? -ENAMETOOLONG
		                      : os_setxattr(fd, str_text(&name), json_string_value(v),
		                                    json_string_length(v));
		if (r < 0)
			return err_sys(e, -r, "set an attribute");
	}
	return 0;
}

static int replace(struct call *c, const char *prefix, json_t *set, struct err *e)
{
	struct stat st;
	AUTO(fd_close) int fd = root_open_file(c->conn->root_fd, c->path, &st, e);
	int error = 0;

	if (fd < 0)
		return -1;
	each(fd, prefix, drop, &error);
	if (error < 0)
		return err_sys(e, -error, "remove an attribute");
	return set_all(fd, prefix, set, e);
}

int verb_mark(struct call *c, struct err *e)
{
	struct {
		struct span prefix;
		json_t *set;
	} args = { 0 };
	static const struct field fields[] = {
		{ "prefix", 0, FIELD_TEXT, true },
		{ "set", offsetof(__typeof__(args), set), FIELD_ANY, true },
	};
	AUTO(json_drop) json_t *body = call_body_json(c, e);
	AUTO(json_drop) json_t *j = NULL;
	char prefix[64];

	if (!body ||
	    json_read(body, (struct fields){ fields, COUNT(fields) }, &args, &c->arena, e) < 0)
		return -1;
	if (args.prefix.len >= sizeof prefix || args.prefix.len < strlen(ours) ||
	    memcmp(args.prefix.at, ours, strlen(ours)) != 0 || !json_is_object(args.set))
		return fail(e, TREE_INVALID, "prefix: user.…, set: an object");
	snprintf(prefix, sizeof prefix, "%.*s", (int)args.prefix.len, args.prefix.at);
	c->flags |= TREE_DETAIL;
	if (replace(c, prefix, args.set, e) < 0 || op_stat(c, c->path, false, &j, e) < 0)
		return -1;
	return call_answer(c, j, e);
}
