/*
 * patch.c - many files change together, or none does.
 *
 * All of it is worked out in memory first; a hunk that does not fit has then touched nothing.
 * What goes wrong while the files are written is taken back.
 */
#include "base/fd.h"
#include "os/file.h"
#include "tree/blob.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/ops.h"
#include "tree/patchtext.h"
#include "tree/replace.h"
#include "tree/sys.h"
#include "tree/text.h"
#include "tree/verbs.h"
#include "wire/hash.h"

/* A file as it will be. */
struct result {
	char *path;
	struct str text;
	bool is_gone;
	bool was_there;
	bool has_mode;
	uint32_t mode;
	struct stat old;
};

struct work {
	struct call *call;
	VEC(struct result) results;
	size_t bytes;
	json_t *files;
};

static void work_done(struct work *w)
{
	for (size_t i = 0; i < w->results.len; i++) {
		free(w->results.at[i].path);
		str_done(&w->results.at[i].text);
	}
	vec_done(&w->results);
	json_drop(&w->files);
}

static struct result *find(struct work *w, const char *path)
{
	for (size_t i = 0; i < w->results.len; i++) {
		if (strcmp(w->results.at[i].path, path) == 0)
			return &w->results.at[i];
	}
	return NULL;
}

static int load_file(struct work *w, const char *path, struct result *r, struct err *e)
{
	AUTO(blob_done) struct blob text = { 0 };
	AUTO(fd_close) int fd = root_open_file(w->call->conn->root_fd, path, &r->old, e);

	if (fd < 0)
		return -1;
	if (blob_read(&text, fd, &r->old, TREE_WHOLE_MAX, e) < 0)
		return err_wrap(e, "%s", path);
	w->bytes += text.len;
	if (w->bytes > TREE_PATCH_BYTES_MAX)
		return fail(e, TREE_TOO_LARGE, "files of more than %u bytes", TREE_PATCH_BYTES_MAX);
	r->was_there = true;
	str_addn(&r->text, text.at, text.len);
	return 0;
}

/* The file as an earlier part of the patch left it, else as it is. Index into w->results. */
static int load(struct work *w, const char *path, bool must_exist, size_t *out, struct err *e)
{
	struct result *old = find(w, path);
	struct result r = { .text = { .max = TREE_WHOLE_MAX } };

	if (old) {
		*out = (size_t)(old - w->results.at);
		if (must_exist == !old->is_gone)
			return 0;
		return must_exist ? fail(e, TREE_NOT_FOUND, "%s is already gone", path)
		                  : fail(e, TREE_EXISTS, "%s exists", path);
	}
	if (load_file(w, path, &r, e) < 0) {
		if (must_exist || fail_code(e) != TREE_NOT_FOUND) {
			str_done(&r.text);
			return -1;
		}
		r.is_gone = true;
	} else if (!must_exist) {
		str_done(&r.text);
		return fail(e, TREE_EXISTS, "%s exists", path);
	}
	r.path = mem_strdup(path);
	vec_push(&w->results, r);
	*out = w->results.len - 1;
	return 0;
}

static int apply(struct work *w, const struct patch_file *f, const struct result *from,
                 struct str *out, bool *by_eol, struct err *e)
{
	struct hunk_result applied = { 0 };
	struct span text = { str_text(&from->text), from->text.len };

	if (f->hunks.at.len == 0) {
		str_addn(out, text.at, text.len);
		return 0;
	}
	if (has_nul(text))
		return fail(e, TREE_NOT_TEXT, "%s has NUL bytes", f->path);
	int r = hunks_apply(text, &f->hunks, out, &applied, e);
	if (applied.n_lines > 0)
		op_detail_lines(w->call, applied.lines, applied.n_lines);
	*by_eol = applied.by_eol;
	return r < 0 ? err_wrap(e, "%s", f->path) : 0;
}

static void tell(struct work *w, const struct patch_file *f, const struct result *to, bool by_eol)
{
	static const char *const status[] = {
		[PATCH_UPDATE] = "modified", [PATCH_ADD] = "added", [PATCH_DELETE] = "deleted"
	};
	json_t *j = json_object();
	char hash[TREE_HASH_TEXT];

	json_put_bytes(j, "path", span_of(f->new_path ? f->new_path : f->path));
	json_put_text(j, "status",
	              f->new_path ? (f->is_copy ? "copied" : "renamed") : status[f->kind]);
	if (f->new_path)
		json_put_bytes(j, "from", span_of(f->path));
	json_put_number(j, "hunks", f->hunks.at.len);
	if (f->kind != PATCH_DELETE) {
		hash_of((struct span){ str_text(&to->text), to->text.len }, hash);
		json_put_text(j, "hash", hash);
		json_put_number(j, "bytes", to->text.len);
		json_put_text(j, "match", by_eol ? "eol" : "exact");
	}
	json_add(w->files, j);
}

/* A deletion that shows what it deletes must be right about it. */
static int plan_delete(struct work *w, const struct patch_file *f, const char *path, struct err *e)
{
	AUTO(str_done) struct str left = { .max = TREE_WHOLE_MAX };
	bool by_eol = false;
	size_t at;

	if (load(w, path, true, &at, e) < 0)
		return -1;
	struct result *r = &w->results.at[at];
	if (apply(w, f, r, &left, &by_eol, e) < 0)
		return -1;
	if (f->hunks.at.len > 0 &&
	    left.len > (has_bom((struct span){ left.data, left.len }) ? 3 : 0))
		return fail(e, TREE_CONFLICT, "%s has more in it than the patch deletes", f->path);
	r->is_gone = true;
	tell(w, f, r, by_eol);
	return 0;
}

/* Where the new text goes: the same file, or another that must not be there yet. */
static int plan_write(struct work *w, const struct patch_file *f, const char *path,
                      const char *new_path, struct err *e)
{
	struct str text = { .max = TREE_WHOLE_MAX };
	bool by_eol = false;
	size_t from, to;

	if (load(w, path, f->kind == PATCH_UPDATE, &from, e) < 0)
		return -1;
	if (apply(w, f, &w->results.at[from], &text, &by_eol, e) < 0) {
		str_done(&text);
		return -1;
	}
	to = from;
	if (new_path && load(w, new_path, false, &to, e) < 0) {
		str_done(&text);
		return -1;
	}
	struct result *r = &w->results.at[to], *source = &w->results.at[from];

	r->has_mode = f->has_mode || (new_path && source->was_there);
	r->mode = f->has_mode ? f->mode : source->old.st_mode & 0777;
	if (new_path && !f->is_copy)
		source->is_gone = true;
	r->is_gone = false;
	str_done(&r->text);
	r->text = text;
	tell(w, f, r, by_eol);
	return 0;
}

static int plan(struct work *w, const struct patch_file *f, struct err *e)
{
	char path[PATH_TEXT_MAX], new_path[PATH_TEXT_MAX];

	if (root_join(w->call->path, f->path, path, e) < 0 ||
	    (f->new_path && root_join(w->call->path, f->new_path, new_path, e) < 0) ||
	    call_check(w->call, e) < 0)
		return -1;
	if (f->kind == PATCH_DELETE)
		return plan_delete(w, f, path, e);
	return plan_write(w, f, path, f->new_path ? new_path : NULL, e);
}

static int remove_file(int root_fd, const struct result *r, struct undo *undo, struct err *e)
{
	AUTO(place_done) struct place p = { .dir_fd = -1 };

	if (root_place(root_fd, r->path, (struct place_how){ 0 }, &p, e) < 0)
		return -1;
	return undo_remove(undo, p.dir_fd, p.name, false, e);
}

static int carry_out(const struct work *w, struct undo *undo, struct err *e)
{
	int root_fd = w->call->conn->root_fd;

	for (size_t i = 0; i < w->results.len; i++) {
		const struct result *r = &w->results.at[i];
		const struct replace_how how = { .root_fd = root_fd,
			                         .path = r->path,
			                         .expect = r->was_there ? &r->old : NULL,
			                         .only_new = !r->was_there,
			                         .has_mode = r->has_mode,
			                         .mode = r->mode,
			                         .undo = undo };
		struct span text = { str_text(&r->text), r->text.len };
		int done = 0;

		if (!r->is_gone)
			done = replace_whole(&how, text, NULL, e);
		else if (r->was_there)
			done = remove_file(root_fd, r, undo, e);
		if (done < 0 || call_check(w->call, e) < 0)
			return -1;
	}
	return 0;
}

int verb_patch(struct call *c, struct err *e)
{
	AUTO(str_done) struct str body = { .max = TREE_JSON_MAX };
	AUTO(patch_done) struct patch patch = { 0 };
	AUTO(work_done) struct work w = { .call = c, .files = json_array() };
	AUTO(undo_done) struct undo undo = { 0 };

	if (call_body_all(c, &body, e) < 0 ||
	    patch_parse(&patch, (struct span){ str_text(&body), body.len }, e) < 0)
		return -1;
	for (size_t i = 0; i < patch.files.len; i++) {
		if (plan(&w, &patch.files.at[i], e) < 0)
			return -1;
	}
	if (carry_out(&w, &undo, e) < 0)
		return -1;
	undo_commit(&undo);
	AUTO(json_drop) json_t *j = json_object();
	json_put_text(j, "format", patch.is_v4a ? "v4a" : "unified");
	json_put(j, "files", json_incref(w.files));
	return call_answer(c, j, e);
}
