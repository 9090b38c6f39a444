#include "cli/help.h"

#include "spec/config.h"

#define COLUMN 23 /* where spec_help() begins to explain */
#define WIDTH 90
#define TEXT_MAX (1u << 20)

static void add_flag(const struct flag *f, struct str *out)
{
	char left[96];

	snprintf(left, sizeof left, "%s%.1s%s%s%s%s%s%s", f->letter ? "-" : "",
	         f->letter ? &f->letter : "", f->letter && f->name ? ", " : "", f->name ? "--" : "",
	         f->name ? f->name : "", f->arg ? " " : "", f->arg ? f->arg : "",
	         f->type == FLAG_LIST ? "..." : "");
	if (strlen(left) > COLUMN)
		str_addf(out, "  %s\n  %*s %s\n", left, COLUMN, "", f->help);
	else
		str_addf(out, "  %-*s %s\n", COLUMN, left, f->help);
}

/* Words on lines that are not too long; a newline of the text begins a paragraph. */
static void add_wrapped(const char *text, struct str *out)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " \n");

		if (column > 0 && column + 1 + n > WIDTH) {
			str_add(out, "\n");
			column = 0;
		}
		str_addf(out, "%s%.*s", column ? " " : "", (int)n, text);
		column += n + (column > 0);
		text += n;
		if (*text == '\n') {
			str_add(out, "\n");
			column = 0;
		}
		text += *text != '\0';
	}
	str_add(out, "\n");
}

void verb_help(const struct verb *v, struct str *out)
{
	str_addf(out, "usage: caisson %s %s\n\n%s\n", v->name, v->usage, v->does);
	if (v->n_flags > 0)
		str_add(out, "\n");
	for (size_t i = 0; i < v->n_flags; i++)
		add_flag(&v->flags[i], out);
	if (v->takes_spec) {
		str_addf(out,
		         "  %-*s %s\n\n"
		         "What the sandbox is (all of these may stand in a spec file too):\n",
		         COLUMN, "--spec FILE", "a spec in YAML or JSON; flags after it win");
		spec_help(out);
	}
	if (v->takes_config)
		config_help(out);
	if (v->more) {
		str_add(out, "\n");
		add_wrapped(v->more, out);
	}
}

void help_list(const struct verb_table *t, struct str *out)
{
	str_add(out, "caisson: run untrusted code behind walls\n\n");
	for (size_t i = 0; i < t->n; i++)
		str_addf(out, "  caisson %-10s %s\n", t->at[i]->name, t->at[i]->does);
	str_add(out, "\n`caisson help COMMAND` tells the rest.\n");
}

static int print(const struct str *text)
{
	struct err e = { 0 };

	if (print_text(text, &e) == 0)
		return 0;
	fprintf(stderr, "caisson: %s\n", e.msg);
	return EXIT_OURS;
}

int help_main(const struct verb_table *t, int argc, char **argv)
{
	AUTO(str_done) struct str text = { .max = TEXT_MAX };
	const char *word = argc > 1 ? argv[1] : NULL;
	const struct verb *v = word ? verb_find(t, word) : NULL;

	if (word && !v && strcmp(word, "--man") != 0)
		return verb_unknown(t, word);
	if (v)
		verb_help(v, &text);
	else if (word)
		help_man(t, &text);
	else
		help_list(t, &text);
	return print(&text);
}

int completion_main(const struct verb_table *t, int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(const struct verb_table *t, struct str *out);
	} shells[] = { { "bash", completion_bash }, { "zsh", completion_zsh } };
	AUTO(str_done) struct str text = { .max = TEXT_MAX };

	for (size_t i = 0; argc == 2 && i < COUNT(shells); i++) {
		if (strcmp(shells[i].name, argv[1]) == 0) {
			shells[i].make(t, &text);
			return print(&text);
		}
	}
	fprintf(stderr, "caisson: completion bash, or completion zsh\n");
	return EXIT_OURS;
}
