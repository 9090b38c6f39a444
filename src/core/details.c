#include "core/details.h"

#include <arpa/inet.h>

#include "wire/base64.h"
#include "wire/hash.h"
#include "wire/log.h"

#define KEPT_TEXT_MAX (64u << 20)

json_t *details_text(const char *text)
{
	json_t *j = json_string(text);

	if (j)
		return j;
	AUTO(freep) char *clean = mem_strdup(text);
	for (char *c = clean; *c; c++)
		if (*c & 0x80)
			*c = '?';
	return json_string(clean);
}

static json_t *children_of(const struct channel_end *end)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < end->n_children && i < CHANNEL_CHILDREN_MAX; i++)
		json_array_append_new(list, json_pack("{si,so}", "pid", end->children[i].pid,
		                                      "name", details_text(end->children[i].name)));
	return list;
}

static json_t *execs_of(const struct channel_end *end)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < end->n_execs && i < CHANNEL_EXECS_MAX; i++)
		json_array_append_new(list, details_text(end->execs[i]));
	return json_pack("{si,so}", "count", (int)end->n_execs, "first", list);
}

static json_t *violations_of(const struct channel_end *end)
{
	const struct {
		const char *target;
		uint64_t count;
	} rows[] = {
		{ "mem", end->oom_kills },         { "pids", end->pids_denied },
		{ "output", end->dropped_bytes },  { "disk", end->is_disk_full },
		{ "inodes", end->is_inodes_full }, { "filters", end->filters_denied },
	};
	json_t *list = json_array();

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].count > 0)
			json_array_append_new(list, json_pack("{ss,ss,sI}", "kind", "limit",
			                                      "target", rows[i].target, "count",
			                                      (json_int_t)rows[i].count));
	return list;
}

/* "example.org:443", "[2001:db8::1]:443"; of a lookup only the name. */
static void details_target(const struct gate_record *r, struct str *out)
{
	char text[INET6_ADDRSTRLEN];

	if (r->name[0])
		str_add(out, r->name);
	else if (r->is_v6)
		str_addf(out, "[%s]", inet_ntop(AF_INET6, r->dst, text, sizeof text));
	else
		str_add(out, inet_ntop(AF_INET, r->dst, text, sizeof text));
	if (r->port > 0 && r->kind != GATE_LOOKUP)
		str_addf(out, ":%u", r->port);
}

static bool is_same(const json_t *a, const json_t *b, const char *key)
{
	return json_equal(json_object_get(a, key), json_object_get(b, key));
}

/* Takes the row; one that is there already is counted. */
static void add_counted(json_t *list, json_t *row, json_int_t more)
{
	json_t *old;
	size_t i;

	json_array_foreach(list, i, old)
	{
		if (!is_same(old, row, "target") || !is_same(old, row, "reason"))
			continue;
		more += json_integer_value(json_object_get(old, "count"));
		json_object_set_new(old, "count", json_integer(more));
		json_decref(row);
		return;
	}
	if (json_array_size(list) < DENIALS_MAX)
		json_array_append_new(list, row);
	else
		json_decref(row); /* the records have it */
}

void details_deny(json_t **list, const struct gate_record *r, bool is_certain)
{
	AUTO(str_done) struct str target = { .max = GATE_NAME_SIZE + 64 };
	json_int_t more = r->count > 0 ? r->count : 1;

	*list = *list ? *list : json_array();
	details_target(r, &target);
	json_t *row = json_pack("{ss,ss,ss,ss,sb,sI}", "kind", "net", "target", str_text(&target),
	                        "rule", r->rule[0] ? r->rule : "deny", "reason",
	                        gate_reason_name((enum gate_reason)r->reason), "certain",
	                        is_certain, "count", more);
	add_counted(*list, row, more);
}

void details_refuse(json_t **list, const struct details_refusal *r)
{
	json_t *row = json_pack("{ss,so,ss,so,sb,sI}", "kind", "command", "target",
	                        details_text(r->what), "rule", r->rule, "reason",
	                        details_text(r->reason), "certain", true, "count", (json_int_t)1);

	if (r->approval[0])
		json_object_set_new(row, "approval", json_string(r->approval));
	*list = *list ? *list : json_array();
	add_counted(*list, row, 1);
}

char *details_of(const struct channel_end *end, const json_t *denials)
{
	json_t *o = json_pack("{so,so,so}", "children", children_of(end), "violations",
	                      violations_of(end), "execs", execs_of(end));

	if (denials) /* it only reads them */
		json_array_extend(json_object_get(o, "violations"), (json_t *)(uintptr_t)denials);
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	return text;
}

uint64_t details_streams(json_t *o, const struct keep *kept)
{
	static const char *const names[] = { [LOG_OUT] = "stdout", [LOG_ERR] = "stderr" };
	struct str texts[LOG_STREAMS] = { { .max = KEPT_TEXT_MAX }, { .max = KEPT_TEXT_MAX } };
	uint64_t dropped = 0;
	bool is_text = true;

	for (size_t i = 0; i < LOG_STREAMS; i++)
		is_text &= keep_text(&kept[i], &texts[i]);
	for (size_t i = 0; i < LOG_STREAMS; i++) {
		AUTO(str_done) struct str coded = { .max = 2ul * KEPT_TEXT_MAX };

		if (!is_text)
			base64_encode(texts[i].data, texts[i].len, &coded);
		json_object_set_new(o, names[i],
		                    is_text
		                        ? json_stringn_nocheck(str_text(&texts[i]), texts[i].len)
		                        : json_string(str_text(&coded)));
		dropped += keep_dropped(&kept[i]);
		str_done(&texts[i]);
	}
	json_object_set_new(o, "encoding", json_string(is_text ? "utf-8" : "base64"));
	return dropped;
}

/* ---- arguments ----------------------------------------------------------------------- */

char *details_argv(const char *const *argv)
{
	json_t *list = json_array();
	size_t n = 0;

	for (; *argv && n < ARGV_TEXT_MAX; argv++) {
		AUTO(freep) char *cut = mem_alloc(ARGV_TEXT_MAX + 1);
		size_t len = strlen(*argv);

		snprintf(cut, ARGV_TEXT_MAX - n + 1, "%s", *argv);
		json_array_append_new(list, details_text(cut));
		n += len;
	}
	if (*argv)
		json_array_append_new(list, json_string("..."));
	char *text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return text;
}

/* What the text leaves out can be told from something else all the same. */
void details_argv_hash(const char *const *argv, char out[TREE_HASH_TEXT])
{
	size_t bytes = 0;
	struct hash h;

	for (size_t i = 0; argv[i]; i++)
		bytes += strlen(argv[i]);
	if (bytes <= ARGV_TEXT_MAX)
		return;
	hash_init(&h);
	for (size_t i = 0; argv[i]; i++)
		hash_add(&h, (struct span){ argv[i], strlen(argv[i]) + 1 });
	hash_text(&h, out);
}
