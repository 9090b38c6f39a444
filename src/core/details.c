#include "core/details.h"

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
		{ "inodes", end->is_inodes_full },
	};
	json_t *list = json_array();

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].count > 0)
			json_array_append_new(list, json_pack("{ss,ss,sI}", "kind", "limit",
			                                      "target", rows[i].target, "count",
			                                      (json_int_t)rows[i].count));
	return list;
}

char *details_of(const struct channel_end *end)
{
	json_t *o = json_pack("{so,so,so}", "children", children_of(end), "violations",
	                      violations_of(end), "execs", execs_of(end));
	char *text = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	return text;
}
