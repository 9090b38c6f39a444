#include "core/canary.h"

#include "core/files.h"
#include "core/notes.h"
#include "core/secret.h"
#include "io/journal.h"

#define FILE_MODE 0600

/* ---- placing ------------------------------------------------------------------------- */

static bool is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

int canary_admit(const struct sbx *s, const struct bind *b, struct fail *f)
{
	for (size_t i = 0; b->canary && b->file && i < s->spec.fs.len; i++)
		if (s->workspace && s->spec.fs.at[i].kind == FS_WORKSPACE &&
		    is_below(b->file, s->spec.fs.at[i].at))
			return fail_set(f, FAIL_INVALID,
			                "creds: a canary at %s would be part of the workspace",
			                b->file);
	return 0;
}

struct planting {
	struct job job; /* first */
	char sandbox[ID_SIZE];
	char *path, *body;
};

static void planting_free(struct planting *p)
{
	free(p->path);
	free(p->body);
	free(p);
}

static void on_answer(struct job *j, const struct tree_packet *p, bool is_last)
{
	(void)j;
	(void)p;
	(void)is_last;
}

static void on_data(struct job *j, struct span bytes)
{
	(void)j;
	(void)bytes;
}

static void on_over(struct job *j, const struct tree_answer *a)
{
	struct planting *p = (struct planting *)(void *)j;

	if (a && a->code != TREE_OK)
		journal(JOURNAL_WARN, "a canary could not be placed", "sandbox", p->sandbox, "file",
		        p->path, "reason", tree_code_name((enum tree_code)a->code), NULL);
	planting_free(p);
}

static void on_room(struct job *j)
{
	(void)j; /* all of it is in the first packet */
}

static void plant_file(struct sbx *s, const struct bind *b)
{
	struct planting *p = mem_alloc(sizeof *p);
	AUTO(str_done) struct str body = { .max = CANARY_VALUE_MAX + 2 };
	struct fail f = { 0 };

	str_addf(&body, "%s\n", b->canary);
	*p = (struct planting){ .path = mem_strdup(b->file), .body = mem_strdup(str_text(&body)) };
	snprintf(p->sandbox, sizeof p->sandbox, "%s", s->id);
	p->job = (struct job){ .ask = { .flags = TREE_HAS_MODE,
		                        .request = { .verb = TREE_WRITE, .mode = FILE_MODE },
		                        .path = span_of(p->path),
		                        .body = span_of(p->body) },
		               .answer = on_answer,
		               .data = on_data,
		               .over = on_over,
		               .room = on_room,
		               .fd = -1 };
	if (files_start(s, &p->job, &f) == 0)
		return;
	journal(JOURNAL_WARN, "a canary could not be placed", "sandbox", s->id, "reason", f.detail,
	        NULL);
	planting_free(p);
}

void canary_plant(struct sbx *s)
{
	for (size_t i = 0; i < s->spec.creds.len; i++) {
		AUTO(arena_done) struct arena a = { 0 };
		AUTO(bind_done) struct bind b = { 0 };

		if (secret_bind(s, i, &a, &b) == 0 && b.canary && b.file)
			plant_file(s, &b);
	}
}

/* ---- hearing ------------------------------------------------------------------------- */

void canary_note_net(const struct sbx *s, const char *process, const struct gate_record *r)
{
	const struct ledger_who who = { .tenant = s->tenant,
		                        .sandbox = s->id,
		                        .workspace = s->workspace ? s->workspace->row.id : NULL,
		                        .process = process };

	if (r->reason != GATE_CANARY || r->kind == GATE_REQUEST)
		return; /* its connection is told of as well */
	journal(JOURNAL_WARN, "a canary was on its way out", "sandbox", s->id, "canary", r->secret,
	        "to", r->name, NULL);
	ledger_note(s->core, LEDGER_SECRET_CANARY, &who,
	            json_pack("{ss,ss,ss,sI}", "name", r->secret, "way",
	                      r->kind == GATE_LOOKUP ? "dns" : "net", "host", r->name, "port",
	                      (json_int_t)r->port));
}

struct canaries *canary_all(struct core *c, const char *tenant)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct canaries *all = NULL;
	struct secret_list list = { 0 };
	struct err e = { 0 };

	if (store_secret_list(c->store, tenant, &a, &list, &e) < 0)
		return NULL;
	for (size_t i = 0; i < list.n; i++) {
		AUTO(bind_done) struct bind b = { 0 };
		const char *text = list.rows[i].bind;

		if (bind_read(&b, text, strlen(text), &e) < 0 || !b.canary)
			continue;
		if (!all)
			all = canaries_new();
		canaries_add(all, list.rows[i].name, b.canary);
	}
	return all;
}
