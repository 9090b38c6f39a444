#include "cli/result.h"

static const char *const fields[] = { "id",     "state",  "exit_code", "signal",     "reason",
	                              "stdout", "stderr", "encoding",  "bytes",      "cwd",
	                              "ms",     "usage",  "children",  "violations", "execs" };

static void dump(json_t *o, struct str *out)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);

	str_add(out, text ? text : "{}");
	str_add(out, "\n");
	free(text);
	json_decref(o);
}

void result_print(const json_t *hello, const json_t *process, struct str *out)
{
	json_t *o = json_object();

	for (size_t i = 0; i < COUNT(fields); i++) {
		json_t *v = json_object_get(process, fields[i]);

		json_object_set_new(o, fields[i], v ? json_incref(v) : json_null());
	}
	json_t *proved = json_object_get(process, "enforced");

	json_object_set(o, "enforced", proved ? proved : json_object_get(hello, "enforced"));
	dump(o, out);
}

/* A path in it may be any bytes: what is not text is replaced. */
static json_t *message_of(const struct err *e)
{
	json_t *text = json_string(e->msg);
	struct err clean = *e;

	for (char *c = clean.msg; *c && !text; c++)
		if (*c & 0x80)
			*c = '?';
	return text ? text : json_string(clean.msg);
}

void result_print_error(const struct err *e, struct str *out)
{
	json_t *error =
	    json_pack("{ss,so}", "code", err_kind_name(e->kind), "message", message_of(e));

	dump(json_pack("{so}", "error", error), out);
}
