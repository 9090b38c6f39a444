/*
 * write.c - a file gets all its bytes.
 */
#include "tree/json.h"
#include "tree/ops.h"
#include "tree/verbs.h"
#include "wire/hash.h"

static json_t *written(const char *path, const char *hash, uint64_t bytes, bool is_new)
{
	json_t *j = json_object();

	json_put_bytes(j, "path", span_of(path));
	json_put_text(j, "hash", hash);
	json_put_number(j, "bytes", bytes);
	json_put_bool(j, "created", is_new);
	return j;
}

int op_write(struct call *c, struct replace_how how, struct span bytes, json_t **out, struct err *e)
{
	char hash[TREE_HASH_TEXT];
	bool is_new;

	how.root_fd = c->conn->root_fd;
	if (replace_whole(&how, bytes, &is_new, e) < 0)
		return -1;
	hash_of(bytes, hash);
	*out = written(how.path, hash, bytes.len, is_new);
	return 0;
}

/* The body as it comes: it may be larger than memory. */
static int pour(struct call *c, struct replace *r, struct hash *hash, struct err *e)
{
	struct span piece;
	int more;

	hash_init(hash);
	while ((more = call_body(c, &piece, e)) > 0) {
		hash_add(hash, piece);
		if (replace_add(r, piece, e) < 0 || call_check(c, e) < 0)
			return -1;
	}
	return more;
}

int verb_write(struct call *c, struct err *e)
{
	AUTO(replace_done) struct replace r = { .place = { .dir_fd = -1 }, .fd = -1 };
	const struct replace_how how = {
		.root_fd = c->conn->root_fd,
		.path = c->path,
		.match = c->match,
		.only_new = c->flags & TREE_ONLY_NEW,
		.has_mode = c->flags & TREE_HAS_MODE,
		.mode = c->req.mode,
	};
	char text[TREE_HASH_TEXT];
	struct hash hash;

	if (replace_begin(&r, &how, e) < 0 || pour(c, &r, &hash, e) < 0 || replace_end(&r, e) < 0)
		return -1;
	hash_text(&hash, text);
	AUTO(json_drop) json_t *j = written(c->path, text, r.bytes, r.is_new);
	return call_answer(c, j, e);
}
