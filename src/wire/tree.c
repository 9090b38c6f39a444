#include "wire/tree.h"

static const char *const verb_names[] = {
	[TREE_STAT] = "stat",       [TREE_LIST] = "list",     [TREE_READ] = "read",
	[TREE_LINES] = "lines",     [TREE_WRITE] = "write",   [TREE_EDIT] = "edit",
	[TREE_DELETE] = "delete",   [TREE_MOVE] = "move",     [TREE_COPY] = "copy",
	[TREE_MKDIR] = "mkdir",     [TREE_BATCH] = "batch",   [TREE_PATCH] = "patch",
	[TREE_GREP] = "grep",       [TREE_GLOB] = "glob",     [TREE_WATCH] = "watch",
	[TREE_TAR_OUT] = "tar_out", [TREE_TAR_IN] = "tar_in", [TREE_PORTS] = "ports",
	[TREE_DIAL] = "dial",       [TREE_IMAGE] = "image",   [TREE_MARK] = "mark",
	[TREE_UNZIP] = "unzip",
};
_Static_assert(COUNT(verb_names) == TREE_VERBS, "a verb has no name");

/* clang-format off */
static const enum fail_code codes[] = {
	[TREE_OK]                = FAIL_NONE,
	[TREE_INVALID]           = FAIL_INVALID,
	[TREE_NOT_FOUND]         = FAIL_NOT_FOUND,
	[TREE_EXISTS]            = FAIL_EXISTS,
	[TREE_STALE]             = FAIL_STALE,
	[TREE_IS_DIRECTORY]      = FAIL_IS_DIRECTORY,
	[TREE_NOT_DIRECTORY]     = FAIL_NOT_DIRECTORY,
	[TREE_PERMISSION_DENIED] = FAIL_PERMISSION_DENIED,
	[TREE_NOT_TEXT]          = FAIL_NOT_TEXT,
	[TREE_TOO_LARGE]         = FAIL_TOO_LARGE,
	[TREE_NO_MATCH]          = FAIL_NO_MATCH,
	[TREE_AMBIGUOUS_MATCH]   = FAIL_AMBIGUOUS_MATCH,
	[TREE_CONFLICT]          = FAIL_CONFLICT,
	[TREE_BUSY]              = FAIL_BUSY,
	[TREE_QUOTA]             = FAIL_QUOTA,
	[TREE_EXPIRED]           = FAIL_EXPIRED,
	[TREE_BACKEND_ERROR]     = FAIL_BACKEND_ERROR,
};
/* clang-format on */
_Static_assert(COUNT(codes) == TREE_CODES, "a code is not of the API");

static const char *const content_types[] = {
	[TREE_JSON] = "application/json",
	[TREE_NDJSON] = "application/x-ndjson",
	[TREE_RAW] = "application/octet-stream",
	[TREE_TAR] = "application/x-tar",
};
_Static_assert(COUNT(content_types) == TREE_CONTENTS, "a content has no type");

const char *tree_verb_name(enum tree_verb verb)
{
	return (size_t)verb < COUNT(verb_names) ? verb_names[verb] : "?";
}

enum fail_code tree_code_fail(enum tree_code code)
{
	return codes[(size_t)code < COUNT(codes) ? code : TREE_BACKEND_ERROR];
}

const char *tree_code_name(enum tree_code code)
{
	return fail_name(tree_code_fail(code));
}

int tree_code_status(enum tree_code code)
{
	return fail_status(tree_code_fail(code));
}

const char *tree_content_type(enum tree_content content)
{
	return content_types[(size_t)content < COUNT(content_types) ? content : TREE_RAW];
}

/* Takes the next `n` bytes. */
static struct span take(struct span *rest, size_t n)
{
	struct span part = { rest->at, n };

	rest->at += n;
	rest->len -= n;
	return part;
}

static bool is_hash(const char *text, size_t n)
{
	if (n != TREE_HASH_TEXT - 1)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!strchr("0123456789abcdef", text[i]) || !text[i])
			return false;
	}
	return true;
}

/* The same words for both ends: a requester learns them before anything is sent. */
static int check_strings(struct span path, struct span match, struct err *e)
{
	if (path.len >= PATH_TEXT_MAX)
		return err_new(e, ERR_INVALID, "a path of %zu bytes", path.len);
	if (path.len > 0 && memchr(path.at, 0, path.len))
		return err_new(e, ERR_INVALID, "a path with a NUL byte");
	if (match.len > 0 && !is_hash(match.at, match.len))
		return err_new(e, ERR_INVALID, "If-Match takes a SHA-256 in lower-case hex");
	return 0;
}

static int parse_request(struct tree_packet *p, struct err *e)
{
	struct tree_request *r = &p->request;

	if (p->data.len < sizeof *r)
		return err_new(e, ERR_INVALID, "a request of %zu bytes", p->data.len);
	memcpy(r, take(&p->data, sizeof *r).at, sizeof *r);
	if (r->verb >= TREE_VERBS)
		return err_new(e, ERR_INVALID, "no verb has number %u", r->verb);
	if (r->path_len > p->data.len || r->match_len > p->data.len - r->path_len)
		return err_new(e, ERR_INVALID, "strings longer than the request");
	p->path = take(&p->data, r->path_len);
	p->match = take(&p->data, r->match_len);
	return check_strings(p->path, p->match, e);
}

static int parse_answer(struct tree_packet *p, struct err *e)
{
	struct tree_answer *a = &p->answer;

	if (p->data.len < sizeof *a)
		return err_new(e, ERR_INVALID, "an answer of %zu bytes", p->data.len);
	memcpy(a, take(&p->data, sizeof *a).at, sizeof *a);
	if (a->code >= TREE_CODES || a->content >= TREE_CONTENTS)
		return err_new(e, ERR_INVALID, "an answer with code %u, content %u", a->code,
		               a->content);
	size_t n = strnlen(a->hash, sizeof a->hash);
	if (n > 0 && !is_hash(a->hash, n))
		return err_new(e, ERR_INVALID, "an answer with a hash that is none");
	return 0;
}

int tree_packet_parse(const void *bytes, size_t n, struct tree_packet *out, struct err *e)
{
	struct tree_packet p = { .data = { bytes, n } };

	if (n < sizeof p.head || n > TREE_PACKET_MAX)
		return err_new(e, ERR_INVALID, "a packet of %zu bytes", n);
	memcpy(&p.head, take(&p.data, sizeof p.head).at, sizeof p.head);
	if (p.head.type >= TREE_TYPES || (p.head.flags & ~(uint32_t)TREE_FLAGS))
		return err_new(e, ERR_INVALID, "a packet of type %u, flags %x", p.head.type,
		               p.head.flags);
	int r = 0;
	if (p.head.type == TREE_REQUEST)
		r = parse_request(&p, e);
	else if (p.head.type == TREE_ANSWER || p.head.type == TREE_END)
		r = parse_answer(&p, e);
	if (r < 0)
		return -1;
	if (p.head.len != p.data.len)
		return err_new(e, ERR_INVALID, "a packet with %zu bytes that says %u", p.data.len,
		               p.head.len);
	*out = p;
	return 0;
}

bool tree_listener_at(struct span data, size_t i, struct tree_listener *out)
{
	struct tree_listener l;

	if (i >= TREE_LISTENERS_MAX || i >= data.len / sizeof l)
		return false;
	memcpy(&l, data.at + i * sizeof l, sizeof l);
	if (l.port == 0 || l.port > UINT16_MAX || l.is_v6 > 1)
		return false;
	*out = l;
	return true;
}

int tree_ask_build(const struct tree_ask *ask, void *buf, size_t *taken, struct err *e)
{
	struct tree_request r = ask->request;
	struct tree_head head = { .type = TREE_REQUEST, .flags = ask->flags, .id = ask->id };
	char *at = buf;

	if (check_strings(ask->path, ask->match, e) < 0)
		return -1;
	r.path_len = (uint32_t)ask->path.len;
	r.match_len = (uint32_t)ask->match.len;
	size_t used = sizeof head + sizeof r + ask->path.len + ask->match.len;
	size_t room = TREE_PACKET_MAX - used;
	size_t n = ask->body.len < room ? ask->body.len : room;

	head.len = (uint32_t)n;
	if (n == ask->body.len && !ask->has_more)
		head.flags |= TREE_LAST;
	memcpy(at, &head, sizeof head);
	memcpy(at + sizeof head, &r, sizeof r);
	at += sizeof head + sizeof r;
	const struct span parts[] = { ask->path, ask->match, { ask->body.at, n } };

	for (size_t i = 0; i < COUNT(parts); i++) {
		if (parts[i].len > 0)
			memcpy(at, parts[i].at, parts[i].len);
		at += parts[i].len;
	}
	*taken = n;
	return (int)(used + n);
}

size_t tree_piece_build(struct tree_head head, const void *bytes, void *buf)
{
	memcpy(buf, &head, sizeof head);
	if (head.len > 0)
		memcpy((char *)buf + sizeof head, bytes, head.len);
	return sizeof head + head.len;
}
