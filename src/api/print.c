#include "api/print.h"

#include "api/forward.h"
#include "core/details.h"
#include "core/workspace.h"
#include "store/connections.h"
#include "store/repos.h"
#include "wire/base64.h"

static json_t *parsed(const char *text)
{
	json_t *j = text ? json_loads(text, 0, NULL) : NULL;

	return j ? j : json_null();
}

static json_t *text_or_null(const char *text)
{
	return text && *text ? details_text(text) : json_null();
}

static json_t *time_or_null(int64_t ms)
{
	return ms > 0 ? json_integer(ms) : json_null();
}

static void set(json_t *o, const char *key, json_t *v)
{
	json_object_set_new(o, key, v);
}

#define NAMES_MAX 100
#define NAMES_BYTES_MAX (12u << 10)

void print_names(json_t *record, const json_t *files)
{
	json_t *names = json_array(), *one;
	size_t i, room = NAMES_BYTES_MAX;

	json_array_foreach(files, i, one)
	{
		AUTO(freep) char *text = json_dumps(one, JSON_COMPACT | JSON_ENSURE_ASCII);

		if (i >= NAMES_MAX || strlen(text) > room)
			break;
		room -= strlen(text);
		json_array_append(names, one);
	}
	json_object_set_new(record, "files", json_integer((json_int_t)json_array_size(files)));
	json_object_set_new(record, "names", names);
}

json_t *print_problem(const struct fail *f)
{
	int status = fail_status(f->code);
	json_t *o = json_pack("{ss,ss,si,ss}", "type", "about:blank", "code", fail_name(f->code),
	                      "status", status, "title", http_reason(status));

	set(o, "detail", details_text(f->detail));
	if (status >= 500)
		set(o, "retry_safe", json_boolean(f->is_retry_safe));
	return o;
}

/* ---- sandboxes ----------------------------------------------------------------------- */

json_t *print_sandbox_row(const struct sandbox_row *row)
{
	json_t *o = json_object();

	set(o, "id", json_string(row->id));
	set(o, "key", text_or_null(row->key));
	set(o, "generation", json_integer(row->generation));
	set(o, "state", json_string(sandbox_state_name(row->state)));
	set(o, "reason", text_or_null(row->state_reason));
	set(o, "backend", text_or_null(row->backend));
	set(o, "labels", parsed(row->labels));
	set(o, "spec", parsed(row->spec));
	set(o, "enforced", parsed(row->enforced));
	set(o, "created_ms", time_or_null(row->created_ms));
	set(o, "started_ms", time_or_null(row->started_ms));
	set(o, "ended_ms", time_or_null(row->ended_ms));
	set(o, "expires_ms", time_or_null(row->expires_ms));
	set(o, "workspace", text_or_null(row->workspace));
	return o;
}

json_t *print_sandbox(const struct sbx *s)
{
	struct sandbox_row row = { .id = s->id,
		                   .key = s->key,
		                   .generation = s->generation,
		                   .state = sbx_state_on_record(s),
		                   .state_reason = s->reason,
		                   .backend = s->spec.backend,
		                   .labels = s->labels,
		                   .spec = s->spec_text,
		                   .enforced = s->enforced,
		                   .created_ms = s->created_ms,
		                   .started_ms = s->started_ms,
		                   .expires_ms = s->expires_ms,
		                   .workspace = s->workspace ? s->workspace->row.id : NULL };
	/* After a restart, until its monitor has spoken: it may be anything. */
	if (s->is_unsettled && sandbox_state_is_live(s->state))
		row.state = SANDBOX_UNREACHABLE;
	json_t *o = print_sandbox_row(&row);
	size_t n = 0;

	for (const struct px *p = s->processes; p; p = p->next)
		n += !p->has_end;
	set(o, "processes", json_integer((json_int_t)n));
	set(o, "ports", forward_list(s->id));
	return o;
}

/* ---- repositories -------------------------------------------------------------------- */

json_t *print_repo(const struct repo_row *row, const char *progress)
{
	json_t *o = json_object();

	set(o, "id", json_string(row->id));
	set(o, "key", json_string(row->key));
	set(o, "url", details_text(row->url));
	set(o, "cred", text_or_null(row->cred));
	set(o, "refs", parsed(row->refs));
	set(o, "refresh", json_string(row->refresh));
	set(o, "state", json_string(repo_state_name(row->state)));
	set(o, "reason", text_or_null(row->state_reason));
	set(o, "progress", text_or_null(progress));
	set(o, "head", text_or_null(row->head));
	set(o, "fetches", json_integer(row->generation));
	set(o, "created_ms", time_or_null(row->created_ms));
	set(o, "fetched_ms", time_or_null(row->fetched_ms));
	return o;
}

/* ---- connections --------------------------------------------------------------------- */

json_t *print_connection(const struct connection_row *row)
{
	json_t *o = json_object();
	bool is_one = row->num > 0;

	set(o, "seq", json_integer(row->seq));
	set(o, "kind", json_string(connection_kind_name(row->kind)));
	set(o, "sandbox", json_string(row->sandbox));
	set(o, "connection", is_one ? json_integer(row->num) : json_null());
	set(o, "request",
	    row->kind == CONNECTION_REQUEST ? json_integer(row->request) : json_null());
	set(o, "ts_ms", json_integer(row->ts_ms));
	set(o, "process", text_or_null(row->process));
	set(o, "name", text_or_null(row->name));
	set(o, "dst", text_or_null(row->dst));
	set(o, "real", text_or_null(row->real));
	set(o, "port", row->port > 0 ? json_integer(row->port) : json_null());
	set(o, "proto", text_or_null(row->proto));
	set(o, "sni", text_or_null(row->sni));
	set(o, "alpn", text_or_null(row->alpn));
	set(o, "decision", json_string(row->decision));
	set(o, "rule", text_or_null(row->rule));
	set(o, "reason", text_or_null(row->reason));
	set(o, "approval", text_or_null(row->approval));
	set(o, "secrets", parsed(row->secrets));
	set(o, "rules", json_integer(row->rules));
	set(o, "bytes_up", json_integer(row->bytes_up));
	set(o, "bytes_down", json_integer(row->bytes_down));
	set(o, "ms", json_integer(row->ms));
	set(o, "close", text_or_null(row->close));
	if (row->kind == CONNECTION_REQUEST) {
		set(o, "method", text_or_null(row->method));
		set(o, "path", text_or_null(row->path));
		set(o, "status", row->status > 0 ? json_integer(row->status) : json_null());
		set(o, "cache", text_or_null(row->cache));
	}
	set(o, "count", json_integer(row->count));
	return o;
}

/* ---- processes ----------------------------------------------------------------------- */

void print_bytes(json_t *o, const char *key, const void *bytes, size_t n)
{
	json_t *text = memchr(bytes, '\0', n) ? NULL : json_stringn(bytes, n);

	if (text) {
		set(o, key, text);
		return;
	}
	AUTO(str_done) struct str coded = { .max = n * 2 + 8 };
	base64_encode(bytes, n, &coded);
	set(o, "base64", json_string(str_text(&coded)));
}

static void add_details(json_t *o, const char *details)
{
	json_t *d = parsed(details);

	json_object_update(o, d); /* children, violations, execs */
	json_decref(d);
}

json_t *print_process_row(const struct process_row *row)
{
	json_t *o = json_object();
	char log[64];

	snprintf(log, sizeof log, "/v1/processes/%s/log", row->id);
	set(o, "id", json_string(row->id));
	set(o, "sandbox", json_string(row->sandbox));
	set(o, "state", json_string(process_state_name(row->state)));
	set(o, "exit_code", row->exit_code < 0 ? json_null() : json_integer(row->exit_code));
	set(o, "signal", row->signal > 0 ? json_integer(row->signal) : json_null());
	set(o, "reason", text_or_null(row->reason));
	set(o, "cmd", parsed(row->argv));
	set(o, "cwd", text_or_null(row->cwd));
	set(o, "label", text_or_null(row->label));
	set(o, "created_ms", time_or_null(row->created_ms));
	set(o, "started_ms", time_or_null(row->started_ms));
	set(o, "ended_ms", time_or_null(row->ended_ms));
	set(o, "ms", json_integer(row->ms));
	set(o, "usage",
	    json_pack("{sI,sI,sI}", "cpu_ms", (json_int_t)row->cpu_ms, "mem_peak",
	              (json_int_t)row->mem_peak, "io", (json_int_t)row->io_bytes));
	set(o, "bytes",
	    json_pack("{sI,sI,sI}", "stdout", (json_int_t)row->bytes_out, "stderr",
	              (json_int_t)row->bytes_err, "dropped", (json_int_t)row->bytes_dropped));
	set(o, "log", json_string(log));
	if (row->shell) /* an end says more */
		set(o, "shell", json_pack("{ss}", "name", row->shell));
	if (row->details)
		add_details(o, row->details);
	return o;
}

static struct process_row row_of(const struct px *p)
{
	const struct channel_end *e = &p->end;

	return (struct process_row){ .id = p->id,
		                     .sandbox = p->sandbox_id,
		                     .state = p->state,
		                     .argv = p->argv,
		                     .cwd = p->cwd,
		                     .label = p->label,
		                     .shell = p->shell,
		                     .exit_code = p->has_end ? e->exit_code : -1,
		                     .signal = e->signal,
		                     .reason = e->reason,
		                     .created_ms = p->created_ms,
		                     .started_ms = p->started_ms,
		                     .ended_ms = p->ended_ms,
		                     .ms = p->has_end ? (int64_t)e->ms
		                                      : core_now_ms() - p->created_ms,
		                     .cpu_ms = (int64_t)e->cpu_ms,
		                     .mem_peak = (int64_t)e->mem_peak,
		                     .io_bytes = (int64_t)e->io_bytes,
		                     .bytes_out = (int64_t)e->out_bytes,
		                     .bytes_err = (int64_t)e->err_bytes,
		                     .bytes_dropped = (int64_t)e->dropped_bytes };
}

json_t *print_end(const struct px *p)
{
	const struct channel_end *e = &p->end;

	return json_pack("{ss,ss,so,so,so,s{sI}}", "id", p->id, "state",
	                 process_state_name(p->state), "exit_code",
	                 e->exit_code < 0 ? json_null() : json_integer(e->exit_code), "signal",
	                 e->signal > 0 ? json_integer(e->signal) : json_null(), "reason",
	                 text_or_null(e->reason), "bytes", "dropped", (json_int_t)e->dropped_bytes);
}

json_t *print_process(const struct px *p, const struct keep *kept, uint64_t seq)
{
	AUTO(freep) char *details = px_details(p);
	struct process_row row = row_of(p);

	row.details = details;
	json_t *o = print_process_row(&row);
	if (kept) {
		uint64_t dropped = details_streams(o, kept);
		json_t *bytes = json_object_get(o, "bytes");

		if (!p->has_end) { /* so far */
			set(bytes, "stdout", json_integer((json_int_t)kept[LOG_OUT].bytes));
			set(bytes, "stderr", json_integer((json_int_t)kept[LOG_ERR].bytes));
		}
		set(bytes, "dropped", json_integer((json_int_t)dropped + row.bytes_dropped));
		set(o, "seq", json_integer((json_int_t)seq));
	}
	if (!p->has_end)
		set(o, "tty", json_boolean(p->is_tty));
	if (!p->has_end)
		set(o, "waiting_for_input", json_boolean(p->is_waiting_for_input));
	return o;
}
