#include "cli/policy.h"

#include <fcntl.h>
#include <jansson.h>

#include "base/fd.h"
#include "base/limits.h"

enum { EXIT_INVALID = 1, EXIT_OURS = 125 };

static const char usage[] = "usage: caisson policy show [spec flags] [--spec FILE] [--json] "
			    "[--resolved] | caisson policy check [--json] FILE";

static int read_all(int fd, struct str *out)
{
	char buf[16384];
	ssize_t n;

	while ((n = read(fd, buf, sizeof buf)) > 0 && !out->overflow)
		str_addn(out, buf, (size_t)n);
	return n < 0 ? -errno : 0;
}

int policy_load(struct spec *s, const char *path, struct err *e)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };

	if (fd < 0)
		return err_sys(e, errno, "open %s", path);
	int r = read_all(fd, &text);

	if (r < 0)
		return err_sys(e, -r, "read %s", path);
	if (text.overflow)
		return err_new(e, ERR_LIMIT, "%s: more than %u bytes", path, SPEC_BYTES_MAX);
	if (spec_document(s, path, str_text(&text), text.len, e) < 0)
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
	if (show.resolved)
		spec_resolve(&s);
	int r = show.json ? spec_print(&s, &out, e) : spec_print_yaml(&s, &out, e);

	if (r < 0)
		return EXIT_OURS;
	if (show.json)
		str_add(&out, "\n");
	return print(&out, e) < 0 ? EXIT_OURS : 0;
}

static int bad_usage(struct err *e)
{
	err_new(e, ERR_INVALID, "%s", usage);
	return EXIT_OURS;
}

/* `bad` is NULL for a good file. */
static int print_verdict(const char *file, bool as_json, const struct err *bad, struct err *e)
{
	AUTO(str_done) struct str out = { .max = SPEC_BYTES_MAX };

	if (as_json) {
		const char *why = bad ? bad->msg : NULL;
		AUTO(json_decrefp) json_t *v = json_pack("{s:b, s:s*}", "ok", !bad, "error", why);
		AUTO(freep) char *text = json_dumps(v, JSON_COMPACT);

		/* Only a file name that is not UTF-8 gives no text. */
		str_addf(&out, "%s\n", text ? text : "{\"ok\":false}");
	} else if (!bad) {
		str_addf(&out, "%s: ok\n", file);
	}
	return print(&out, e);
}

static int policy_check(int argc, char **argv, struct err *e)
{
	AUTO(spec_done) struct spec s;
	const char *file = NULL;
	bool as_json = false;

	spec_init(&s);
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			as_json = true;
		else if (file || argv[i][0] == '-')
			return bad_usage(e);
		else
			file = argv[i];
	}
	if (!file)
		return bad_usage(e);
	struct err bad = { 0 };
	int r = policy_load(&s, file, &bad);

	if (r == 0 && spec_check(&s, &bad) < 0)
		r = err_wrap(&bad, "%s", file);
	if (print_verdict(file, as_json, r < 0 ? &bad : NULL, e) < 0)
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
	return bad_usage(e);
}
