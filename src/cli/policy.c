#include "cli/policy.h"

#include <fcntl.h>
#include <jansson.h>

#include "base/fd.h"
#include "base/limits.h"
#include "cli/import.h"
#include "cli/mocks.h"
#include "cli/registry.h"
#include "wire/escape.h"

enum { EXIT_INVALID = 1, EXIT_OURS = 125 };

static const char usage[] = "usage: caisson policy show [spec flags] [--spec FILE] [--json] "
			    "[--resolved] | caisson policy check [--json] FILE | caisson policy "
			    "set SANDBOX [--allow HOST] [--deny HOST] [--net RULE] [--spec FILE]";

static int read_all(int fd, struct str *out)
{
	char buf[16384];
	ssize_t n;

	while ((n = read(fd, buf, sizeof buf)) > 0 && !out->overflow)
		str_addn(out, buf, (size_t)n);
	return n < 0 ? -errno : 0;
}

int policy_read(int fd, const char *path, struct str *out, struct err *e)
{
	int r = read_all(fd, out);

	if (r < 0)
		return err_sys(e, -r, "read %s", path);
	if (out->overflow)
		return err_new(e, ERR_LIMIT, "%s: more than %zu bytes", path, out->max);
	return 0;
}

static int read_path(const char *path, struct str *out, struct err *e)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_sys(e, errno, "open %s", path) : policy_read(fd, path, out, e);
}

int policy_load(struct spec *s, const char *path, struct err *e)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };

	if (read_path(path, &text, e) < 0)
		return -1;
	if (spec_document(s, path, str_text(&text), text.len, e) < 0 || mocks_read(s, path, e) < 0)
		return err_wrap(e, "%s", path);
	return 0;
}

int policy_flag(struct spec *s, int argc, char **argv, int *i, struct err *e)
{
	const char *word = argv[*i];
	size_t dashes = strspn(word, "-");
	size_t len = strcspn(word + dashes, "=");
	bool is_short = dashes == 1 && len == 1;
	char name[64];

	if (!is_short && (dashes != 2 || len < 2 || len >= sizeof name))
		return 0;
	snprintf(name, sizeof name, "%.*s", (int)len, word + dashes);
	bool is_file = strcmp(name, "spec") == 0;

	if (!is_file && !spec_is_flag(name))
		return 0;
	const char *value = word[dashes + len] ? word + dashes + len + 1 : NULL;

	if (!value && *i + 1 >= argc)
		return err_new(e, ERR_INVALID, "%s needs a value", word);
	if (!value)
		value = argv[++*i];
	int r = is_file ? policy_load(s, value, e) : spec_flag(s, name, value, e);

	return r < 0 ? -1 : 1;
}

/* Not by stdio: a line-buffered stream can lose the error of a full disk. */
static int print(const struct str *text, struct err *e)
{
	size_t done = 0;

	while (done < text->len) {
		ssize_t n = write(STDOUT_FILENO, text->data + done, text->len - done);

		if (n < 0)
			return err_sys(e, errno, "write to stdout");
		done += (size_t)n;
	}
	return 0;
}

struct show {
	bool json, resolved;
};

/* Takes a word that is not a spec flag. */
static int show_word(struct show *show, struct spec *s, const char *word, struct err *e)
{
	char flag[64];

	snprintf(flag, sizeof flag, "%.*s", (int)strcspn(word, "="), word);
	if (strcmp(word, "--json") == 0)
		show->json = true;
	else if (strcmp(word, "--resolved") == 0)
		show->resolved = true;
	else if (strncmp(word, "--", 2) == 0 && word[2])
		return spec_flag(s, flag + 2, "", e); /* it is unknown: this names the nearest */
	else
		return err_new(e, ERR_INVALID, "policy show takes no \"%s\"; %s", word, usage);
	return 0;
}

/* What a reader may take for something else; remarks in YAML. */
static void add_remarks(const struct net_spec *net, struct str *out)
{
	bool has_star = false;

	for (size_t i = 0; i < net->allow.len; i++)
		has_star |= net->allow.at[i][0] == '*';
	if (has_star)
		str_add(
		    out,
		    "# net.allow: * is one label, ** any number of them; neither covers the bare "
		    "domain\n");
	if (net->mode == NET_ALLOW || net->allow.len > net->inspect.len)
		str_add(
		    out,
		    "# net: TLS passes unread. Where several names share a server, it may answer "
		    "for another one than was asked for; inspect looks\n");
}

static int policy_show(int argc, char **argv, struct err *e)
{
	AUTO(spec_done) struct spec s;
	AUTO(str_done) struct str out = { .max = SPEC_BYTES_MAX + 1 };
	struct show show = { 0 };

	spec_init(&s);
	for (int i = 0; i < argc; i++) {
		int r = policy_flag(&s, argc, argv, &i, e);

		if (r < 0 || (r == 0 && show_word(&show, &s, argv[i], e) < 0))
			return EXIT_OURS;
	}
	if (spec_check(&s, e) < 0)
		return EXIT_OURS;
	if (show.resolved && registry_expand(&s, e) < 0)
		return EXIT_OURS;
	if (show.resolved)
		spec_resolve(&s);
	int r = show.json ? spec_print(&s, &out, e) : spec_print_yaml(&s, &out, e);

	if (r < 0)
		return EXIT_OURS;
	if (show.json)
		str_add(&out, "\n");
	else if (show.resolved)
		add_remarks(&s.net, &out);
	return print(&out, e) < 0 ? EXIT_OURS : 0;
}

static int bad_usage(struct err *e)
{
	err_new(e, ERR_INVALID, "%s", usage);
	return EXIT_OURS;
}

/* What it comes to, and what has no equivalent. */
static int add_import(const struct spec *s, const struct import *x, struct str *out, struct err *e)
{
	str_addf(out, "# the settings of %s, as a spec\n", x->format);
	if (spec_print_yaml(s, out, e) < 0)
		return -1;
	for (size_t i = 0; i < x->notes.len; i++) {
		str_add(out, "# ");
		escape_text(x->notes.at[i], out);
		str_add(out, "\n");
	}
	return 0;
}

static json_t *import_json(const struct spec *s, const struct import *x)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	json_t *notes = json_array();
	struct err e = { 0 };

	for (size_t i = 0; i < x->notes.len; i++)
		json_array_append_new(notes, json_string(x->notes.at[i]));
	json_t *spec =
	    spec_print(s, &text, &e) < 0 ? json_null() : json_loads(str_text(&text), 0, NULL);

	return json_pack("{sb,ss,so,so}", "ok", 1, "format", x->format, "spec", spec, "notes",
	                 notes);
}

struct check {
	const char *file;
	bool as_json;
	struct spec *spec;
	struct import *import;
};

/* `bad` is NULL for a good file. */
static int print_verdict(const struct check *c, const struct err *bad, struct err *e)
{
	AUTO(str_done) struct str out = { .max = (size_t)2 * SPEC_BYTES_MAX };

	if (c->as_json) {
		const char *why = bad ? bad->msg : NULL;
		AUTO(json_decrefp)
		json_t *v = !bad && c->import->format
		                ? import_json(c->spec, c->import)
		                : json_pack("{s:b, s:s*}", "ok", !bad, "error", why);
		AUTO(freep) char *text = json_dumps(v, JSON_COMPACT);

		/* Only a file name that is not UTF-8 gives no text. */
		str_addf(&out, "%s\n", text ? text : "{\"ok\":false}");
	} else if (!bad && c->import->format) {
		if (add_import(c->spec, c->import, &out, e) < 0)
			return -1;
	} else if (!bad) {
		str_addf(&out, "%s: ok\n", c->file);
	}
	return print(&out, e);
}

/* One of ours, or of those that we understand. */
static int check_file(struct check *c, struct err *e)
{
	const char *home = getenv("HOME");
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };
	char cwd[PATH_MAX];
	struct import_places at = { getcwd(cwd, sizeof cwd) ? cwd : "/", home ? home : "/" };

	if (read_path(c->file, &text, e) < 0)
		return -1;
	int r = import_read(c->import, c->spec, c->file, (struct span){ str_text(&text), text.len },
	                    at, e);

	if (r < 0)
		return err_wrap(e, "%s", c->file);
	if (r == 0 && policy_load(c->spec, c->file, e) < 0)
		return -1;
	return spec_check(c->spec, e) < 0 ? err_wrap(e, "%s", c->file) : 0;
}

static int policy_check(int argc, char **argv, struct err *e)
{
	AUTO(spec_done) struct spec s;
	AUTO(import_done) struct import x = { 0 };
	struct check c = { .spec = &s, .import = &x };

	spec_init(&s);
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			c.as_json = true;
		else if (c.file || argv[i][0] == '-')
			return bad_usage(e);
		else
			c.file = argv[i];
	}
	if (!c.file)
		return bad_usage(e);
	struct err bad = { 0 };
	int r = check_file(&c, &bad);

	if (print_verdict(&c, r < 0 ? &bad : NULL, e) < 0)
		return EXIT_OURS;
	*e = bad;
	return r < 0 ? EXIT_INVALID : 0;
}

int policy_main(int argc, char **argv, struct err *e)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "show") == 0)
		return policy_show(argc - 2, argv + 2, e);
	if (strcmp(verb, "check") == 0)
		return policy_check(argc - 2, argv + 2, e);
	if (strcmp(verb, "set") == 0)
		return policy_set(argc - 2, argv + 2, e);
	return bad_usage(e);
}
