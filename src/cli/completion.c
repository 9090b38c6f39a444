/*
 * completion.c - scripts for shells. Verbs, options and closed lists of words are in the script;
 * ids are asked from the daemon when somebody presses the key, if there is one.
 */
#include "cli/help.h"

#include "spec/config.h"

typedef void add_option(struct str *out, const char *option, const char *help);

/* "  -e, --env NAME=VALUE...  what it means": the flags are the words with two dashes. */
static void each_listed(void (*list)(struct str *out), add_option *add, struct str *out)
{
	AUTO(str_done) struct str text = { .max = 64u << 10 };
	char option[64];

	list(&text);
	for (const char *at = str_text(&text); (at = strstr(at, "--")); at += strcspn(at, "\n")) {
		size_t n = strcspn(at, " \n");
		const char *help = at + strcspn(at, "\n") < at + 24 ? at : at + 24;
		AUTO(str_done) struct str meaning = { .max = 512 };

		snprintf(option, sizeof option, "%.*s", (int)(n < 63 ? n : 63), at);
		str_addn(&meaning, help, strcspn(help, "\n"));
		add(out, option, str_text(&meaning));
	}
}

/* Every option of a verb, each through `add`. */
static void each_option(const struct verb *v, add_option *add, struct str *out)
{
	char option[64];

	for (size_t i = 0; i < v->n_flags; i++) {
		const struct flag *f = &v->flags[i];

		if (f->letter) {
			snprintf(option, sizeof option, "-%c", f->letter);
			add(out, option, f->help);
		}
		if (f->name) {
			snprintf(option, sizeof option, "--%s", f->name);
			add(out, option, f->help);
		}
	}
	if (v->takes_spec) {
		add(out, "--spec", "a spec in YAML or JSON");
		each_listed(spec_help, add, out);
	}
	if (v->takes_config)
		each_listed(config_help, add, out);
}

/* The words of [a b c], without the brackets; or of a flag. */
static void add_words(struct str *out, const char *words)
{
	size_t skip = words[0] == '[';

	str_addn(out, words + skip, strlen(words) - 2 * skip);
}

static const char *kind_of(const struct verb *v)
{
	if (!v->words)
		return "none";
	return v->words[0] == '[' ? "words" : v->words[0] ? v->words : "none";
}

/* ---- bash ---------------------------------------------------------------------------- */

static void bash_option(struct str *out, const char *option, const char *help)
{
	(void)help;
	str_addf(out, "%s ", option);
}

static void bash_values(const struct verb *v, struct str *out)
{
	for (size_t i = 0; i < v->n_flags; i++) {
		const struct flag *f = &v->flags[i];

		if (!f->words)
			continue;
		str_addf(out, "\t%s:--%s", v->name, f->name);
		if (f->letter)
			str_addf(out, "|%s:-%c", v->name, f->letter);
		str_add(out, ") kind=words words='");
		add_words(out, f->words);
		str_add(out, "' ;;\n");
	}
}

static const char bash_head[] =
    "# bash completion for caisson; written by `caisson completion bash`\n"
    "_caisson()\n"
    "{\n"
    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "\tlocal verb=${COMP_WORDS[1]} kind=none words='' options='' i\n"
    "\tCOMPREPLY=()\n";

static const char bash_tail[] =
    "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
    "\t\t[ \"${COMP_WORDS[i]}\" != -- ] || kind=file options=''\n"
    "\tdone\n"
    "\tif [[ $cur == -* && -n $options ]]; then\n"
    "\t\tCOMPREPLY=($(compgen -W \"$options --help\" -- \"$cur\"))\n"
    "\t\treturn\n"
    "\tfi\n"
    "\tcase $kind in\n"
    "\tsandbox) words=$(CAISSON_START=never caisson list -q 2>/dev/null) ;;\n"
    "\tworkspace) words=$(CAISSON_START=never caisson ws ls -q 2>/dev/null) ;;\n"
    "\tplace) words=$(CAISSON_START=never caisson list -q 2>/dev/null; CAISSON_START=never "
    "caisson ws ls -q 2>/dev/null) ;;\n"
    "\tprocess) words=$(CAISSON_START=never caisson ps -q 2>/dev/null) ;;\n"
    "\tremote)\n"
    "\t\twords=$(CAISSON_START=never caisson list -q 2>/dev/null | sed 's/$/:/')\n"
    "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "\t\t;;\n"
    "\tfile) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
    "\tesac\n"
    "\t[ -z \"$words\" ] || COMPREPLY+=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "}\n"
    "complete -F _caisson caisson\n";

void completion_bash(const struct verb_table *t, struct str *out)
{
	str_add(out, bash_head);
	str_add(out, "\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W '");
	for (size_t i = 0; i < t->n; i++)
		str_addf(out, "%s%s", i ? " " : "", t->at[i]->name);
	str_add(out, "' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase $verb in\n");
	for (size_t i = 0; i < t->n; i++) {
		const struct verb *v = t->at[i];

		str_addf(out, "\t%s) kind=%s options='", v->name, kind_of(v));
		each_option(v, bash_option, out);
		str_add(out, "' words='");
		if (v->words && v->words[0] == '[')
			add_words(out, v->words);
		if (v->words && strcmp(v->words, "verb") == 0)
			for (size_t k = 0; k < t->n; k++)
				str_addf(out, "%s ", t->at[k]->name);
		str_add(out, "' ;;\n");
	}
	str_add(out, "\tesac\n\tcase $verb:$prev in\n");
	for (size_t i = 0; i < t->n; i++)
		bash_values(t->at[i], out);
	str_add(out, "\tesac\n");
	str_add(out, bash_tail);
}

/* ---- zsh ----------------------------------------------------------------------------- */

/* Inside single quotes, for _describe: a colon ends the word. */
static void zsh_quoted(struct str *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			str_add(out, "'\\''");
		else if (*text == ':')
			str_add(out, "\\:");
		else
			str_addn(out, text, 1);
	}
}

static void zsh_option(struct str *out, const char *option, const char *help)
{
	str_add(out, "\t\t\t'");
	zsh_quoted(out, option);
	str_add(out, ":");
	zsh_quoted(out, help);
	str_add(out, "'\n");
}

static void zsh_values(const struct verb *v, struct str *out)
{
	for (size_t i = 0; i < v->n_flags; i++) {
		const struct flag *f = &v->flags[i];

		if (!f->words)
			continue;
		str_addf(out, "\t%s:--%s", v->name, f->name);
		if (f->letter)
			str_addf(out, "|%s:-%c", v->name, f->letter);
		str_add(out, ") kind=words plain=(");
		add_words(out, f->words);
		str_add(out, ") ;;\n");
	}
}

static const char zsh_tail[] =
    "\t(( ${words[(i)--]} < CURRENT )) && { _files; return }\n"
    "\tif [[ $words[CURRENT] == -* ]]; then\n"
    "\t\t_describe -o option options\n"
    "\t\treturn\n"
    "\tfi\n"
    "\tcase $kind in\n"
    "\tsandbox) compadd -- ${(f)\"$(CAISSON_START=never caisson list -q 2>/dev/null)\"} ;;\n"
    "\tworkspace) compadd -- ${(f)\"$(CAISSON_START=never caisson ws ls -q 2>/dev/null)\"} ;;\n"
    "\tplace) compadd -- ${(f)\"$(CAISSON_START=never caisson list -q 2>/dev/null; "
    "CAISSON_START=never caisson ws ls -q 2>/dev/null)\"} ;;\n"
    "\tprocess) compadd -- ${(f)\"$(CAISSON_START=never caisson ps -q 2>/dev/null)\"} ;;\n"
    "\tremote)\n"
    "\t\tcompadd -S : -- ${(f)\"$(CAISSON_START=never caisson list -q 2>/dev/null)\"}\n"
    "\t\t_files\n"
    "\t\t;;\n"
    "\tverb) _describe command verbs ;;\n"
    "\twords) compadd -- $plain ;;\n"
    "\tfile) _files ;;\n"
    "\tesac\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _caisson ]; then _caisson \"$@\"; else compdef _caisson caisson; "
    "fi\n";

void completion_zsh(const struct verb_table *t, struct str *out)
{
	str_add(out,
	        "#compdef caisson\n# written by `caisson completion zsh`\n_caisson() {\n"
	        "\tlocal kind=none verb=$words[2]\n\tlocal -a verbs options plain\n\tverbs=(\n");
	for (size_t i = 0; i < t->n; i++)
		zsh_option(out, t->at[i]->name, t->at[i]->does);
	str_add(
	    out,
	    "\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command verbs\n\t\treturn\n\tfi\n"
	    "\tcase $verb in\n");
	for (size_t i = 0; i < t->n; i++) {
		const struct verb *v = t->at[i];

		str_addf(out, "\t%s)\n\t\tkind=%s plain=(", v->name, kind_of(v));
		if (v->words && v->words[0] == '[')
			add_words(out, v->words);
		str_add(out, ")\n\t\toptions=(\n");
		each_option(v, zsh_option, out);
		str_add(out, "\t\t)\n\t\t;;\n");
	}
	str_add(out, "\tesac\n\tcase $verb:$words[CURRENT-1] in\n");
	for (size_t i = 0; i < t->n; i++)
		zsh_values(t->at[i], out);
	str_add(out, "\tesac\n");
	str_add(out, zsh_tail);
}
