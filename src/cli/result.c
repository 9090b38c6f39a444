#include "cli/result.h"

#include <jansson.h>
#include <sys/random.h>

#include "base/limits.h"
#include "wire/base64.h"

/* Names, arguments and paths may be any bytes: what is not text is replaced. */
static json_t *foreign_text(const char *text)
{
	json_t *j = json_string(text);
	char clean[512];

	if (j)
		return j;
	snprintf(clean, sizeof clean, "%s", text);
	for (char *c = clean; *c; c++)
		if (*c & 0x80)
			*c = '?';
	return json_string(clean);
}

/* Text when both streams are UTF-8, else both in base64: one `encoding` speaks for both. */
static void add_streams(json_t *o, const struct keep *kept)
{
	static const char *const names[] = { "stdout", "stderr" };
	struct str texts[2] = { { .max = INLINE_OUTPUT_MAX * 2 },
		                { .max = INLINE_OUTPUT_MAX * 2 } };
	bool is_text = true;

	for (size_t i = 0; i < 2; i++)
		is_text &= keep_text(&kept[i], &texts[i]);
	for (size_t i = 0; i < 2; i++) {
		AUTO(str_done) struct str coded = { .max = INLINE_OUTPUT_MAX * 4 };

		if (!is_text)
			base64_encode(texts[i].data, texts[i].len, &coded);
		json_object_set_new(o, names[i],
		                    json_string_nocheck(str_text(is_text ? &texts[i] : &coded)));
		str_done(&texts[i]);
	}
	json_object_set_new(o, "encoding", json_string(is_text ? "utf-8" : "base64"));
}

static json_t *bytes_of(const struct channel_end *end, const struct keep *kept)
{
	uint64_t dropped = keep_dropped(&kept[0]) + keep_dropped(&kept[1]) + end->dropped_bytes;

	return json_pack("{sI,sI,sI}", "stdout", (json_int_t)end->out_bytes, "stderr",
	                 (json_int_t)end->err_bytes, "dropped", (json_int_t)dropped);
}

static json_t *children_of(const struct channel_end *end)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < end->n_children && i < CHANNEL_CHILDREN_MAX; i++)
		json_array_append_new(list, json_pack("{si,so}", "pid", end->children[i].pid,
		                                      "name", foreign_text(end->children[i].name)));
	return list;
}

static json_t *execs_of(const struct channel_end *end)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < end->n_execs && i < CHANNEL_EXECS_MAX; i++)
		json_array_append_new(list, foreign_text(end->execs[i]));
	return json_pack("{si,so}", "count", (int)end->n_execs, "first", list);
}

static void add_violation(json_t *list, const char *target, uint64_t count)
{
	if (count > 0)
		json_array_append_new(list, json_pack("{ss,ss,sI}", "kind", "limit", "target",
		                                      target, "count", (json_int_t)count));
}

static json_t *violations_of(const struct channel_end *end)
{
	json_t *list = json_array();

	add_violation(list, "mem", end->oom_kills);
	add_violation(list, "pids", end->pids_denied);
	add_violation(list, "output", end->dropped_bytes);
	add_violation(list, "disk", end->is_disk_full);
	add_violation(list, "inodes", end->is_inodes_full);
	return list;
}

static json_t *enforced_of(const struct run_session *s)
{
	json_t *o = json_object();

	for (size_t i = 0; i < s->n_enforced; i++)
		json_object_set_new(o, s->enforced[i].field,
		                    json_string(s->enforced[i].by ? s->enforced[i].by : "none"));
	return o;
}

static void dump(json_t *o, struct str *out)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);

	str_add(out, text ? text : "{}");
	str_add(out, "\n");
	free(text);
	json_decref(o);
}

void result_print(const struct result_input *in, struct str *out)
{
	const struct channel_end *end = in->end;
	json_t *o = json_object();
	uint64_t random = 0;
	char id[32];

	if (getrandom(&random, sizeof random, 0) < 0)
		random = end->ms; /* an id only has to be new to its caller */
	snprintf(id, sizeof id, "px_%016llx", (unsigned long long)random);
	json_object_set_new(o, "id", json_string(id));
	json_object_set_new(o, "state", json_string(run_state_name((enum run_state)end->state)));
	json_object_set_new(o, "exit_code",
	                    end->exit_code < 0 ? json_null() : json_integer(end->exit_code));
	json_object_set_new(o, "signal",
	                    end->signal == 0 ? json_null() : json_integer(end->signal));
	json_object_set_new(o, "reason", end->reason[0] ? foreign_text(end->reason) : json_null());
	add_streams(o, in->kept);
	json_object_set_new(o, "bytes", bytes_of(end, in->kept));
	json_object_set_new(o, "cwd", foreign_text(in->cwd));
	json_object_set_new(o, "ms", json_integer((json_int_t)end->ms));
	json_object_set_new(o, "usage",
	                    json_pack("{sI,sI,sI}", "cpu_ms", (json_int_t)end->cpu_ms, "mem_peak",
	                              (json_int_t)end->mem_peak, "io", (json_int_t)end->io_bytes));
	json_object_set_new(o, "children", children_of(end));
	json_object_set_new(o, "violations", violations_of(end));
	json_object_set_new(o, "execs", execs_of(end));
	json_object_set_new(o, "enforced", enforced_of(in->session));
	dump(o, out);
}

void result_print_error(const struct err *e, struct str *out)
{
	json_t *error =
	    json_pack("{ss,so}", "code", err_kind_name(e->kind), "message", foreign_text(e->msg));

	dump(json_pack("{so}", "error", error), out);
}
