/*
 * man.c - the man page, in roff.
 */
#include "cli/help.h"

#include "spec/config.h"

/* In running text: a dash is a dash, a backslash is one, and no line begins a request. */
static void add_text(const char *text, struct str *out)
{
	for (const char *c = text; *c; c++) {
		bool is_first = c == text || c[-1] == '\n';

		if (is_first && (*c == '.' || *c == '\''))
			str_add(out, "\\&");
		if (*c == '\\')
			str_add(out, "\\e");
		else if (*c == '-')
			str_add(out, "\\-");
		else
			str_addn(out, c, 1);
	}
}

static void add_flag(const struct flag *f, struct str *out)
{
	str_add(out, ".TP\n.B ");
	if (f->letter)
		str_addf(out, "\\-%c", f->letter);
	if (f->letter && f->name)
		str_add(out, ", ");
	if (f->name) {
		str_add(out, "\\-\\-");
		add_text(f->name, out);
	}
	if (f->arg) {
		str_add(out, " \\fI");
		add_text(f->arg, out);
		str_add(out, "\\fR");
	}
	str_add(out, "\n");
	add_text(f->help, out);
	str_add(out, f->type == FLAG_LIST ? "; may be repeated\n" : "\n");
}

static void add_more(const char *text, struct str *out)
{
	str_add(out, ".PP\n");
	for (; *text; text += *text == '\n') {
		size_t n = strcspn(text, "\n");
		AUTO(str_done) struct str line = { .max = 16384 };

		str_addn(&line, text, n);
		add_text(str_text(&line), out);
		str_add(out, text[n] ? "\n.PP\n" : "\n");
		text += n;
	}
}

/* Lines as they stand. */
static void add_listed(void (*list)(struct str *out), struct str *out)
{
	AUTO(str_done) struct str text = { .max = 64u << 10 };

	list(&text);
	str_add(out, ".PP\n.nf\n");
	add_text(str_text(&text), out);
	str_add(out, ".fi\n");
}

static void add_verb(const struct verb *v, struct str *out)
{
	str_addf(out, ".SS caisson %s ", v->name);
	add_text(v->usage, out);
	str_add(out, "\n");
	add_text(v->does, out);
	str_add(out, ".\n");
	for (size_t i = 0; i < v->n_flags; i++)
		add_flag(&v->flags[i], out);
	if (v->takes_spec)
		str_add(out, ".PP\nAlso the options of the section SPEC.\n");
	if (v->takes_config)
		add_listed(config_help, out);
	if (v->more)
		add_more(v->more, out);
}

static void add_spec(struct str *out)
{

	str_add(out,
	        ".SH SPEC\n"
	        "What a sandbox is. All of these may stand in a file too, in YAML or JSON, which "
	        "\\fB\\-\\-spec\\fR \\fIFILE\\fR names; flags after it win.\n");
	add_listed(spec_help, out);
}

static const char head[] =
    ".SH NAME\n"
    "caisson \\- run untrusted code behind walls\n"
    ".SH SYNOPSIS\n"
    ".B caisson\n"
    "\\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n"
    ".SH DESCRIPTION\n"
    "Caisson runs commands that nobody has reviewed: they may edit, build, test and break things, "
    "and nothing they do reaches the host, the network or a secret.\n"
    ".PP\n"
    "A sandbox is named by its id or by the key that it was created with, a process by its id.\n"
    ".SH COMMANDS\n";

static const char tail[] =
    ".SH ENVIRONMENT\n"
    ".TP\n.B CAISSON_SOCKET\nThe socket of the daemon.\n"
    ".TP\n.B CAISSON_HOST\n\\fIHOST\\fR:\\fIPORT\\fR of a daemon that listens on TCP, without "
    "TLS.\n"
    ".TP\n.B CAISSON_TOKEN\nThe token for it.\n"
    ".TP\n.B CAISSON_START\nWith the value \\fInever\\fR no daemon is started on demand.\n"
    ".SH FILES\n"
    ".TP\n.I $XDG_RUNTIME_DIR/caisson/api.sock\nThe daemon's socket; root's is "
    "\\fI/run/caisson/api.sock\\fR.\n"
    ".TP\n.I $XDG_CONFIG_HOME/caisson/config.yaml\nWhat a daemon is started with; root's is "
    "\\fI/etc/caisson/config.yaml\\fR.\n"
    ".TP\n.I $XDG_STATE_HOME/caisson\nIts records; root's are in \\fI/var/lib/caisson\\fR.\n"
    ".SH EXIT STATUS\n"
    "Of \\fBrun\\fR, \\fBexec\\fR, \\fBsh\\fR and \\fBattach\\fR: the command's own; 124 timeout "
    "or wall; "
    "125 lost, our own failure or bad usage; 126 denied or not executable; 127 not found; 128+n "
    "killed by signal n (oom 137). Of other commands: 0; 1 when the daemon refuses; 125.\n";

void help_man(const struct verb_table *t, struct str *out)
{
	str_add(out, ".TH CAISSON 1 \"\" \"caisson " CAISSON_VERSION "\" \"User Commands\"\n");
	str_add(out, head);
	for (size_t i = 0; i < t->n; i++)
		add_verb(t->at[i], out);
	add_spec(out);
	str_add(out, tail);
}
