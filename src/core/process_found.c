/*
 * process_found.c - processes of the store: those that have ended, and those of a daemon before us.
 */
#include <fcntl.h>

#include "core/process-internal.h"
#include "io/journal.h"

static struct px *from_row(struct core *c, const struct process_row *row)
{
	struct px *p = px_new(c);

	snprintf(p->id, sizeof p->id, "%s", row->id);
	snprintf(p->tenant, sizeof p->tenant, "%s", row->tenant);
	snprintf(p->sandbox_id, sizeof p->sandbox_id, "%s", row->sandbox);
	p->entry.key = p->id;
	p->num = (uint32_t)row->num;
	p->generation = row->generation;
	p->state = row->state;
	p->argv = mem_strdup(row->argv ? row->argv : "[]");
	p->cwd = mem_strdup(row->cwd ? row->cwd : "/");
	p->label = row->label ? mem_strdup(row->label) : NULL;
	p->shell = row->shell ? mem_strdup(row->shell) : NULL;
	p->at_end = (enum process_at_end)row->at_end;
	p->created_ms = row->created_ms;
	p->started_ms = row->started_ms;
	p->log_fd = openat(c->logs_fd, p->id, O_RDWR | O_CLOEXEC); /* absent: purged */
	return p;
}

static void fill_end(struct px *p, const struct process_row *row)
{
	p->end = (struct channel_end){ .exit_code = (int32_t)row->exit_code,
		                       .signal = (int32_t)row->signal,
		                       .ms = (uint64_t)row->ms,
		                       .cpu_ms = (uint64_t)row->cpu_ms,
		                       .mem_peak = (uint64_t)row->mem_peak,
		                       .io_bytes = (uint64_t)row->io_bytes,
		                       .out_bytes = (uint64_t)row->bytes_out,
		                       .err_bytes = (uint64_t)row->bytes_err,
		                       .dropped_bytes = (uint64_t)row->bytes_dropped };
	snprintf(p->end.reason, sizeof p->end.reason, "%s", row->reason ? row->reason : "");
	p->details = row->details ? mem_strdup(row->details) : NULL;
	p->ended_ms = row->ended_ms;
	p->has_end = p->is_over = p->is_ended = p->is_stored = true;
}

struct px *px_find(struct core *c, const char *tenant, const char *id, struct fail *f)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct process_row row;
	struct err e = { 0 };
	struct px *p = id_is(id, strlen(id), "px") ? roster_find(&c->processes, id) : NULL;

	if (p && !p->is_service && strcmp(p->tenant, tenant) == 0) {
		p->refs++;
		return p;
	}
	if (p || !id_is(id, strlen(id), "px") ||
	    store_process_get(c->store, tenant, id, &a, &row, &e) < 0) {
		fail_set(f, FAIL_NOT_FOUND, "no such process");
		return NULL;
	}
	p = from_row(c, &row);
	fill_end(p, &row); /* those that live are in the table */
	roster_add(&c->processes, &p->entry);
	p->refs = 1;
	return p;
}

void px_revive(struct core *c, const struct process_row *row)
{
	struct px *p = from_row(c, row);
	struct err e = { 0 };

	roster_add(&c->processes, &p->entry);
	p->is_stored = true;
	if (store_process_insert(c->store, row, (struct store_call){ 0 }, &e) < 0)
		journal(JOURNAL_ERROR, e.msg, "process", p->id, NULL);
	px_lose(p, PROCESS_LOST, "the daemon died, and its sandbox with it");
}

struct px *px_adopt(struct sbx *s, const struct process_row *row)
{
	struct px *p = from_row(s->core, row);

	p->sandbox = s;
	p->is_stored = true;
	p->next = s->processes;
	s->processes = p;
	roster_add(&s->core->processes, &p->entry);
	return p;
}
