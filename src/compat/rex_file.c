/*
 * rex_file.c - files, whole and as texts; uploads.
 *
 * In the form of an upload the file comes before its name, so it is written to a name of ours
 * first; then it is moved, or unpacked.
 */
#include "compat/compat-internal.h"

#define LARGE (1u << 20)        /* hundreds of answers may be asked for at once */
#define CONTROLS_MAX (4u << 20) /* each takes six bytes in an answer, and time to make */

/* ---- read ---------------------------------------------------------------------------- */

struct encoding {
	const char *name;
	enum { UTF8, ASCII, LATIN1 } kind;
};

static const struct encoding *encoding_of(const char *name)
{
	static const struct encoding encodings[] = {
		{ "utf-8", UTF8 },       { "utf8", UTF8 },      { "utf_8", UTF8 },
		{ "ascii", ASCII },      { "us-ascii", ASCII }, { "latin-1", LATIN1 },
		{ "latin1", LATIN1 },    { "latin_1", LATIN1 }, { "iso-8859-1", LATIN1 },
		{ "iso8859-1", LATIN1 },
	};

	for (size_t i = 0; i < COUNT(encodings); i++)
		if (span_is_nocase(span_of(name), encodings[i].name))
			return &encodings[i];
	return NULL;
}

static bool errors_of(const char *name, enum py_errors *out)
{
	static const char *const names[] = { [PY_STRICT] = "strict",
		                             [PY_IGNORE] = "ignore",
		                             [PY_REPLACE] = "replace",
		                             [PY_BACKSLASH] = "backslashreplace" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(name, names[i]) == 0) {
			*out = (enum py_errors)i;
			return true;
		}
	return false;
}

static const char *word_of(struct call *c, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(c->body, key));

	return text ? text : otherwise;
}

static void raise_lookup(struct call *c, const char *what, const char *name)
{
	AUTO(str_done) struct str words = { .max = 256 };

	str_addf(&words, "%s: %.64s", what, name);
	rex_raise(c, "builtins.LookupError", str_text(&words), NULL);
}

static void raise_decode(struct call *c, const char *name, struct span bytes, size_t at)
{
	AUTO(str_done) struct str words = { .max = 256 };

	str_addf(&words, "'%.16s' codec can't decode byte 0x%02x in position %zu", name,
	         (unsigned char)bytes.at[at], at);
	rex_raise(c, "builtins.UnicodeDecodeError", str_text(&words), NULL);
}

/* More characters that no text has, than an answer is made of while everybody waits. */
static bool is_no_text(struct span bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes.len; i++) {
		unsigned char byte = (unsigned char)bytes.at[i];

		n += byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r';
	}
	return n > CONTROLS_MAX;
}

static void answer_text(struct call *c, struct span bytes)
{
	const char *name = word_of(c, "encoding", "utf-8");
	const char *how_name = word_of(c, "errors", "strict");
	const struct encoding *encoding = encoding_of(name);
	AUTO(str_done) struct str text = { .max = (size_t)4 * ERRAND_ANSWER_MAX };
	enum py_errors how = PY_STRICT;
	size_t at = 0;
	bool is_well = true;

	if (!encoding) {
		raise_lookup(c, "unknown encoding", name);
		return;
	}
	if (!errors_of(how_name, &how)) {
		raise_lookup(c, "unknown error handler name", how_name);
		return;
	}
	if (encoding->kind == UTF8)
		is_well = py_utf8(bytes, how, &text, &at);
	else if (encoding->kind == ASCII)
		is_well = py_ascii(bytes, how, &text, &at);
	else
		py_latin1(bytes, &text);
	if (!is_well) {
		raise_decode(c, name, bytes, at);
		return;
	}
	py_newlines(&text); /* as Python opens a text */
	answer_json(c, 200, json_pack("{so}", "content", json_stringn(str_text(&text), text.len)));
}

static void was_read(void *arg, struct span bytes, const struct fail *f)
{
	struct call *c = arg;
	bool is_busy = bytes.len > LARGE && server_is_full(c->api->server);
	struct fail bad = { 0 };

	if (is_busy)
		fail_set(&bad, FAIL_BUSY, "too many large answers wait to be taken");
	else if (is_no_text(bytes))
		fail_set(&bad, FAIL_TOO_LARGE, "more than %u control characters", CONTROLS_MAX);
	if (f) {
		rex_raise_file(c, f, word_of(c, "path", ""));
	} else if (bad.code != FAIL_NONE) {
		answer_fail(c, &bad);
	} else {
		answer_text(c, bytes);
	}
	call_unref(c);
}

static const char *path_of(struct call *c, struct sbx *s)
{
	const char *path = NULL;
	struct fail f = { 0 };

	if (member_text(c->body, "path", &path, &f) < 0 || !path || !*path) {
		fail_set(&f, FAIL_INVALID, "path is needed");
		answer_fail(c, &f);
		return NULL;
	}
	return compat_path(c, s, path);
}

static void read_file(struct call *c, struct sbx *s)
{
	const char *path = path_of(c, s);

	if (path)
		errand_bytes(s, &(struct errand_ask){ .verb = TREE_READ, .path = path }, was_read,
		             call_ref(c));
}

void rex_read_file(struct call *c)
{
	compat_enter(c, read_file);
}

/* ---- write --------------------------------------------------------------------------- */

static void was_written(void *arg, json_t *answer, const struct fail *f)
{
	struct call *c = arg;

	(void)answer;
	if (f)
		rex_raise_file(c, f, word_of(c, "path", ""));
	else
		answer_json(c, 200, json_object());
	call_unref(c);
}

static void write_file(struct call *c, struct sbx *s)
{
	const json_t *content = json_object_get(c->body, "content");
	const char *path = path_of(c, s);
	struct fail f = { 0 };

	if (!path)
		return;
	if (!json_is_string(content)) {
		fail_set(&f, FAIL_INVALID, "content: a text is expected");
		answer_fail(c, &f);
		return;
	}
	errand(s,
	       &(struct errand_ask){
		   .verb = TREE_WRITE,
		   .path = path,
		   .bytes = { json_string_value(content), json_string_length(content) } },
	       was_written, call_ref(c));
}

void rex_write_file(struct call *c)
{
	compat_enter(c, write_file);
}

/* ---- upload -------------------------------------------------------------------------- */

/* What happens to the file behind its name of ours. */
struct placing {
	struct call *call;
	char sandbox[ID_SIZE];
	const char *temporary, *target; /* in the arena of the call */
	struct fail fail;
};

static void placed(struct placing *x)
{
	if (x->fail.code != FAIL_NONE)
		rex_raise_file(x->call, &x->fail, x->target);
	else
		answer_json(x->call, 200, json_object());
	call_unref(x->call);
	free(x);
}

static void forgotten(void *arg, json_t *answer, const struct fail *f)
{
	(void)answer;
	(void)f; /* a temporary file of a sandbox that may be gone */
	placed(arg);
}

static void unpacked(void *arg, json_t *answer, const struct fail *f)
{
	struct placing *x = arg;
	struct sbx *s = roster_find(&x->call->api->core->sandboxes, x->sandbox);

	(void)answer;
	if (f)
		x->fail = *f;
	if (s)
		errand(s, &(struct errand_ask){ .verb = TREE_DELETE, .path = x->temporary },
		       forgotten, x);
	else
		placed(x);
}

static void moved(void *arg, json_t *answer, const struct fail *f)
{
	if (f)
		unpacked(arg, answer, f); /* it is still there */
	else
		placed(arg);
}

static void place(struct placing *x, struct sbx *s, bool is_zip)
{
	if (is_zip)
		errand(s,
		       &(struct errand_ask){ .verb = TREE_UNZIP,
		                             .path = x->target,
		                             .body = json_pack("{ss}", "from", x->temporary) },
		       unpacked, x);
	else
		errand(s,
		       &(struct errand_ask){ .verb = TREE_MOVE,
		                             .body = json_pack("{ss,ss,sb}", "from", x->temporary,
		                                               "to", x->target, "overwrite", 1) },
		       moved, x);
}

static bool is_yes(const char *word)
{
	static const char *const words[] = { "true", "1", "on", "yes", "t", "y" };

	for (size_t i = 0; word && i < COUNT(words); i++)
		if (span_is_nocase(span_of(word), words[i]))
			return true;
	return false;
}

static void uploaded(struct form *form)
{
	struct call *c = form->call;
	const char *target = json_string_value(json_object_get(form->fields, "target_path"));
	const char *unzip = json_string_value(json_object_get(form->fields, "unzip"));
	struct sbx *s = roster_find(&c->api->core->sandboxes, form->sandbox);
	struct placing *x = mem_alloc(sizeof *x);
	struct fail f = { 0 };

	*x = (struct placing){ .call = call_ref(c), .temporary = form->path, .target = "" };
	memcpy(x->sandbox, form->sandbox, sizeof x->sandbox);
	if (!target || !*target || !s) {
		fail_set(&f, FAIL_INVALID, "target_path is needed");
		unpacked(x, NULL, &f);
		return;
	}
	x->target = arena_strdup(&c->arena, compat_path(c, s, target));
	place(x, s, is_yes(unzip));
}

static void was_forgotten(void *arg, json_t *answer, const struct fail *f)
{
	(void)arg;
	(void)answer;
	(void)f; /* as above */
}

/* Its name never came. */
static void forsaken(struct form *form)
{
	struct sbx *s = roster_find(&form->call->api->core->sandboxes, form->sandbox);

	if (s)
		errand(s, &(struct errand_ask){ .verb = TREE_DELETE, .path = form->path },
		       was_forgotten, NULL);
}

static void upload_failed(struct form *form, const struct fail *f)
{
	rex_raise_file(form->call, f, form->path ? form->path : "");
}

static void upload(struct call *c, struct sbx *s)
{
	char id[ID_SIZE];
	AUTO(str_done) struct str path = { .max = 64 };

	if (!c->state)
		return; /* the client has left */
	id_make(id, "up");
	str_addf(&path, "/tmp/.%s", id);
	form_go(c->state, s, arena_strdup(&c->arena, str_text(&path)));
}

void rex_upload(struct call *c)
{
	struct form *form = form_take(c);

	if (!form)
		return;
	form->done = uploaded;
	form->failed = upload_failed;
	form->forsaken = forsaken;
	compat_enter(c, upload);
}
