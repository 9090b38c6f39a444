#include "core/shells.h"

#include <jansson.h>

#include "core/details.h"
#include "io/journal.h"
#include "store/shells.h"
#include "wire/base64.h"

#define STATE_TEXT_MAX ((size_t)2 * CHANNEL_DATA_MAX)

/* ---- the list ------------------------------------------------------------------------ */

static struct shl *find(struct sbx *s, const char *name)
{
	for (struct shl *sh = shells_list(s); sh; sh = sh->next)
		if (strcmp(sh->name, name) == 0)
			return sh;
	return NULL;
}

static struct shl *add(struct sbx *s, const char *name)
{
	struct shl *sh = mem_alloc(sizeof *sh);

	*sh = (struct shl){ .next = s->shells, .text.max = SHELL_TEXT_MAX };
	snprintf(sh->name, sizeof sh->name, "%s", name);
	s->shells = sh;
	return sh;
}

static void shl_free(struct shl *sh)
{
	str_done(&sh->text);
	free(sh->cwd);
	free(sh);
}

/* A folder may have any name: what is no text is replaced. */
static void set_text(struct shl *sh, const void *text, size_t n)
{
	str_clear(&sh->text);
	str_addn(&sh->text, text, n);
	freep(&sh->cwd);
	if (n == 0 || shell_text_cwd(sh->text.data)[0] != '/')
		return;
	json_t *cwd = details_text(shell_text_cwd(sh->text.data));
	sh->cwd = mem_strdup(json_string_value(cwd));
	json_decref(cwd);
}

static void take_row(struct sbx *s, const struct shell_row *row)
{
	struct shl *sh = add(s, row->name);
	AUTO(str_done) struct str text = { .max = SHELL_TEXT_MAX };
	json_t *env = json_loads(row->env, 0, NULL);
	const json_t *coded = json_object_get(env, "base64");

	snprintf(sh->process, sizeof sh->process, "%s", row->process ? row->process : "");
	sh->restarts = row->restarts;
	if (json_is_string(coded) &&
	    base64_decode(json_string_value(coded), json_string_length(coded), &text) &&
	    shell_text_is(str_text(&text), text.len))
		set_text(sh, text.data, text.len);
	json_decref(env);
}

/* Once, when somebody first asks. */
struct shl *shells_list(struct sbx *s)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct shell_list list = { 0 };
	struct err e = { 0 };

	if (s->has_shells)
		return s->shells;
	s->has_shells = true;
	if (store_shell_list(s->core->store, s->tenant, s->id, &a, &list, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "sandbox", s->id, NULL);
	for (size_t i = 0; i < list.n; i++)
		take_row(s, &list.rows[i]);
	return s->shells;
}

void shells_done(struct sbx *s)
{
	while (s->shells) {
		struct shl *sh = s->shells;

		s->shells = sh->next;
		shl_free(sh);
	}
}

static int put(struct sbx *s, const struct shl *sh, struct err *e)
{
	AUTO(str_done) struct str env = { .max = STATE_TEXT_MAX };
	struct shell_row row = { .sandbox = s->id,
		                 .name = sh->name,
		                 .tenant = s->tenant,
		                 .process = sh->process,
		                 .cwd = sh->cwd,
		                 .restarts = sh->restarts };

	if (sh->text.len > 0) {
		str_add(&env, "{\"base64\":\"");
		base64_encode(sh->text.data, sh->text.len, &env);
		str_add(&env, "\"}");
		row.env = str_text(&env);
	}
	return store_shell_put(s->core->store, &row, (struct store_call){ 0 }, e);
}

struct px *shells_busy(struct sbx *s, const char *name)
{
	for (struct px *p = s->processes; p; p = p->next)
		if (p->shell && !p->has_end && strcmp(p->shell, name) == 0)
			return p;
	return NULL;
}

const char *shells_cwd(struct sbx *s, const char *name)
{
	const struct shl *sh = find(s, name);

	return sh ? sh->cwd : NULL;
}

/* ---- a command ----------------------------------------------------------------------- */

int shells_check(struct sbx *s, const struct px_ask *ask, struct fail *f)
{
	size_t n = 0;

	if (!shell_name_is(ask->shell, strlen(ask->shell)))
		return fail_set(f, FAIL_INVALID,
		                "shell: a name of 1 to 64 letters, digits, dots, dashes");
	if (ask->is_tty)
		return fail_set(f, FAIL_INVALID,
		                "tty: a shell that serves many commands has no terminal; run one "
		                "without shell");
	const struct px *busy = shells_busy(s, ask->shell);
	if (busy)
		return fail_set(f, FAIL_BUSY, "shell %s runs %s", ask->shell, busy->id);
	for (const struct shl *sh = shells_list(s); sh; sh = sh->next)
		n++;
	if (n >= SHELLS_MAX && !find(s, ask->shell))
		return fail_set(f, FAIL_QUOTA, "shell: a sandbox has at most %d", SHELLS_MAX);
	return 0;
}

static void add_quoted(struct str *s, const char *text)
{
	str_add(s, "'");
	for (const char *at = text; *at; at++) {
		if (*at == '\'')
			str_add(s, "'\\''");
		else
			str_addn(s, at, 1);
	}
	str_add(s, "'");
}

static bool is_identifier(const char *name)
{
	size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && !name[n] && !(name[0] >= '0' && name[0] <= '9');
}

/* The last of the list is the command, so that its exit status, and `set -e` in it, count. */
static int add_wishes(const struct px_ask *ask, struct str *out, struct fail *f)
{
	if (ask->cwd) {
		str_add(out, "cd -- ");
		add_quoted(out, ask->cwd);
		str_add(out, " && ");
	}
	for (size_t i = 0; ask->env && i < ask->env->len; i++) {
		const struct text_pair *v = &ask->env->at[i];

		if (!is_identifier(v->key))
			return fail_set(f, FAIL_INVALID, "env: %.64s is no name in a shell",
			                v->key);
		str_addf(out, "export %s=", v->key);
		add_quoted(out, v->value);
		str_add(out, " && ");
	}
	return 0;
}

int shells_script(const struct px_ask *ask, struct str *out, struct fail *f)
{
	if (add_wishes(ask, out, f) < 0)
		return -1;
	if (ask->script && out->len > 0) {
		str_add(out, "eval ");
		add_quoted(out, ask->script);
	} else if (ask->script) {
		str_add(out, ask->script);
	}
	for (size_t i = 0; !ask->script && ask->argv[i]; i++) {
		str_add(out, i > 0 ? " " : "");
		add_quoted(out, ask->argv[i]);
	}
	if (out->overflow)
		return fail_set(f, FAIL_TOO_LARGE,
		                "cmd: at most %u KiB in a shell; write a file and run it",
		                SHELL_SCRIPT_MAX >> 10);
	return 0;
}

static int seed(struct sbx *s, struct shl *sh)
{
	static unsigned char data[CHANNEL_DATA_MAX];
	struct channel_shell c = { .text_len = (uint32_t)sh->text.len,
		                   .reason = "the sandbox was built anew" };

	if (sh->generation == s->generation)
		return 0;
	memcpy(c.name, sh->name, sizeof c.name);
	memcpy(data, &c, sizeof c);
	if (sh->text.len > 0)
		memcpy(data + sizeof c, sh->text.data, sh->text.len);
	int r = link_send(&s->link, CH_SHELL, 0, data, sizeof c + sh->text.len);
	if (r == 0) {
		sh->generation = s->generation;
		sh->lives = false;
	}
	return r;
}

int shells_prepare(struct px *p, struct fail *f)
{
	struct sbx *s = p->sandbox;
	struct shl *sh = find(s, p->shell);
	struct err e = { 0 };

	if (sh && seed(s, sh) < 0) {
		f->is_retry_safe = true;
		return fail_set(f, FAIL_SANDBOX_UNAVAILABLE, "the sandbox does not answer");
	}
	if (sh)
		return 0;
	sh = add(s, p->shell);
	sh->generation = s->generation;
	snprintf(sh->process, sizeof sh->process, "%s", p->id);
	return put(s, sh, &e) < 0 ? fail_unsent(f, &e) : 0;
}

/* ---- what the monitor says ----------------------------------------------------------- */

static void note_restart(struct shl *sh, struct px *p, const struct channel_shell *c)
{
	if (!p || !p->shell || strcmp(p->shell, sh->name) != 0)
		return;
	p->is_shell_restarted = c->flags & SHELL_RESTARTED;
	snprintf(p->shell_reason, sizeof p->shell_reason, "%s", c->reason);
	if (!p->is_shell_restarted || strcmp(sh->process, p->id) == 0)
		return; /* counted */
	sh->restarts++;
	snprintf(sh->process, sizeof sh->process, "%s", p->id);
}

void shells_on_state(struct sbx *s, uint32_t num, const void *bytes, size_t n)
{
	struct channel_shell c;
	const char *text;
	struct err e = { 0 };

	if (!channel_shell_read(&c, &text, bytes, n))
		return;
	struct shl *sh = find(s, c.name);
	if (!sh)
		return; /* it was deleted */
	sh->generation = s->generation;
	sh->lives = c.flags & SHELL_LIVES;
	int64_t restarts = sh->restarts;
	bool is_new =
	    c.text_len != sh->text.len || memcmp(text, str_text(&sh->text), c.text_len) != 0;
	note_restart(sh, px_by_num(s, num), &c);
	if (is_new && c.text_len > 0)
		set_text(sh, text, c.text_len);
	if ((is_new || restarts != sh->restarts) && put(s, sh, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "sandbox", s->id, NULL);
}

int shells_delete(struct sbx *s, const char *name, struct store_call call, struct fail *f)
{
	struct channel_shell c = { 0 };
	struct shl *sh = find(s, name);
	struct err e = { 0 };

	if (!sh)
		return fail_set(f, FAIL_NOT_FOUND, "no such shell");
	if (store_shell_drop(s->core->store, s->id, name, call, &e) < 0)
		return fail_err(f, &e);
	memcpy(c.name, sh->name, sizeof c.name);
	(void)link_send(&s->link, CH_DROP, 0, &c, sizeof c); /* without a monitor there is none */
	for (struct shl **at = &s->shells; *at; at = &(*at)->next) {
		if (*at == sh) {
			*at = sh->next;
			break;
		}
	}
	shl_free(sh);
	return 0;
}
