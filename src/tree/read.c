/*
 * read.c - the bytes of a file, raw or as lines.
 */
#include "base/fd.h"
#include "tree/blob.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/ops.h"
#include "tree/sys.h"
#include "tree/text.h"
#include "tree/verbs.h"
#include "wire/hash.h"

#define CUT_NAMED_MAX 100

/* Sets the range that comes: all of it, or what was asked for and is there. */
static int set_range(struct call *c, uint64_t size, struct err *e)
{
	uint64_t from = 0, count = size;

	c->answer.size = size;
	if (c->flags & TREE_HAS_RANGE) {
		from = c->req.from;
		if (from > size || (from == size && size > 0))
			return fail(e, TREE_INVALID, "a range behind the end, which is at %llu",
			            (unsigned long long)size);
		count = c->req.count < size - from ? c->req.count : size - from;
	}
	if (count > TREE_STREAM_MAX)
		return fail(e, TREE_TOO_LARGE, "%llu bytes at once, and %llu is the limit",
		            (unsigned long long)count, TREE_STREAM_MAX);
	c->answer.from = from;
	c->answer.count = count;
	return 0;
}

static int stream(struct call *c, int fd, struct err *e)
{
	bool is_whole = c->answer.count == c->answer.size;
	struct hash hash;

	hash_init(&hash);
	for (uint64_t done = 0; done < c->answer.count;) {
		uint64_t left = c->answer.count - done;
		size_t want = left < TREE_PACKET_MAX ? (size_t)left : TREE_PACKET_MAX;
		ssize_t n = sys_pread(fd, c->conn->in, want, c->answer.from + done);
		struct span piece = { (char *)c->conn->in, n > 0 ? (size_t)n : 0 };

		if (n < 0)
			return err_sys(e, (int)-n, "read %s", c->path);
		if (n == 0)
			return fail(e, TREE_CONFLICT, "%s shrank during the call", c->path);
		if (is_whole)
			hash_add(&hash, piece);
		if (call_add(c, piece, e) < 0 || call_check(c, e) < 0)
			return -1;
		done += piece.len;
	}
	if (is_whole)
		hash_text(&hash, c->answer.hash);
	return 0;
}

int verb_read(struct call *c, struct err *e)
{
	AUTO(blob_done) struct blob text = { 0 };
	struct stat st;
	AUTO(fd_close) int fd = root_open_file(c->conn->root_fd, c->path, &st, e);

	if (fd < 0)
		return -1;
	c->answer.content = TREE_RAW;
	c->answer.mode = st.st_mode & 07777;
	c->answer.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	if (st.st_size > TREE_HASH_WHOLE)
		return set_range(c, (uint64_t)st.st_size, e) < 0 ? -1 : stream(c, fd, e);
	if (blob_read(&text, fd, &st, TREE_WHOLE_MAX, e) < 0)
		return err_wrap(e, "%s", c->path);
	if (set_range(c, text.len, e) < 0)
		return -1;
	hash_of(blob_span(&text), c->answer.hash);
	return call_add(c, (struct span){ text.at + c->answer.from, c->answer.count }, e);
}

/* Lines that are shown. */
struct view {
	struct str text;
	uint64_t first, count, line_max;
	uint64_t shown;
	json_t *cut; /* numbers of lines that are not whole */
};

static void view_done(struct view *v)
{
	str_done(&v->text);
	json_drop(&v->cut);
}

static void add_line(struct view *v, struct span line, uint64_t number, bool may_cut)
{
	struct span bare = line_bare(line);
	struct span head = utf8_cut(bare, v->line_max);

	v->shown++;
	if (!may_cut || bare.len == head.len) {
		str_addn(&v->text, line.at, line.len);
		return;
	}
	str_addn(&v->text, head.at, head.len);
	str_addf(&v->text, "… [%zu more bytes]", bare.len - head.len);
	str_addn(&v->text, bare.at + bare.len, line.len - bare.len);
	if (json_array_size(v->cut) < CUT_NAMED_MAX)
		json_add(v->cut, json_integer((json_int_t)number));
}

static void collect(struct view *v, struct span text, bool may_cut)
{
	struct span line;

	str_clear(&v->text);
	v->text.overflow = false;
	json_array_clear(v->cut);
	v->shown = 0;
	for (uint64_t n = 1; v->shown < v->count && line_take(&text, &line); n++) {
		size_t len = may_cut && line.len > v->line_max ? v->line_max + 64 : line.len;

		if (n < v->first)
			continue;
		if (v->shown > 0 && v->text.len + len > TREE_TEXT_MAX)
			break;
		if (v->shown == 0 && len > TREE_TEXT_MAX) {
			line.len = TREE_TEXT_MAX; /* one line only, and not all of it */
			json_add(v->cut, json_integer((json_int_t)n));
		}
		add_line(v, line, n, may_cut);
	}
}

static uint64_t count_lines(struct span text)
{
	struct line_ends ends = line_ends_count(text);

	return ends.lf + ends.crlf + (text.len > 0 && text.at[text.len - 1] != '\n');
}

static json_t *view_json(struct view *v, struct span whole, const char *path)
{
	uint64_t total = count_lines(whole);
	char hash[TREE_HASH_TEXT];
	json_t *j = json_object();
	struct span text = has_bom(whole) ? span_after(whole, 3) : whole;

	collect(v, text, true);
	bool is_text = utf8_is_valid((struct span){ str_text(&v->text), v->text.len });
	if (!is_text)
		collect(v, has_bom(whole) && v->first > 1 ? text : whole, false);
	uint64_t next = v->first + v->shown;
	json_put_bytes(j, "path", span_of(path));
	struct span shown = { str_text(&v->text), v->text.len };
	if (is_text)
		json_put(j, "text", json_stringn(shown.at, shown.len));
	else
		json_put_base64(j, "base64", shown);
	json_put_text(j, "encoding", is_text ? "utf-8" : "base64");
	hash_of(whole, hash);
	json_put_text(j, "hash", hash);
	json_put_number(j, "first", v->first);
	json_put_number(j, "lines", v->shown);
	json_put_number(j, "total_lines", total);
	json_put(j, "next", next <= total ? json_integer((json_int_t)next) : json_null());
	json_put_number(j, "bytes", whole.len);
	json_put_text(j, "eol", line_ends_name(line_ends_count(whole)));
	json_put_bool(j, "bom", has_bom(whole));
	json_put(j, "cut", json_incref(v->cut));
	return j;
}

int op_lines(struct call *c, const struct lines_args *args, json_t **out, struct err *e)
{
	AUTO(blob_done) struct blob text = { 0 };
	AUTO(view_done)
	struct view v = {
		.text = { .max = 2 * (size_t)TREE_TEXT_MAX },
		.first = args->first > 0 ? args->first : 1,
		.count = args->count > 0 ? args->count : TREE_LINES_DEFAULT,
		.line_max = args->line_max > 0 ? args->line_max : TREE_LINE_DEFAULT,
		.cut = json_array(),
	};
	struct stat st;
	AUTO(fd_close) int fd = root_open_file(c->conn->root_fd, args->path, &st, e);

	if (v.line_max > TREE_LINE_MAX)
		v.line_max = TREE_LINE_MAX;
	if (fd < 0)
		return -1;
	if (blob_read(&text, fd, &st, TREE_WHOLE_MAX, e) < 0)
		return err_wrap(e, "%s", args->path);
	*out = view_json(&v, blob_span(&text), args->path);
	return 0;
}

int verb_lines(struct call *c, struct err *e)
{
	struct lines_args args = { .path = c->path, .line_max = c->req.max };
	AUTO(json_drop) json_t *j = NULL;

	if (c->flags & TREE_HAS_RANGE) {
		args.first = c->req.from;
		args.count = c->req.count;
	}
	if (op_lines(c, &args, &j, e) < 0)
		return -1;
	return call_answer(c, j, e);
}
