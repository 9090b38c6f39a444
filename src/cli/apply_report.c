/*
 * apply_report.c - what an apply does, or why it does not. Names are of any bytes.
 */
#include "cli/apply_job.h"
#include "wire/base64.h"
#include "wire/escape.h"
#include "wire/later.h"

static bool is_told(const struct apply_entry *e)
{
	return e->act != ACT_NONE && e->act != ACT_LEAVE && e->act != ACT_CONFLICT;
}

static void put_path(json_t *o, const char *path)
{
	AUTO(str_done) struct str text = { .max = SIZE_MAX };
	json_t *plain = json_string(path);

	if (plain) {
		json_object_set_new(o, "path", plain);
		return;
	}
	escape_text(path, &text);
	json_object_set_new(o, "path", json_string(str_text(&text)));
	str_clear(&text);
	base64_encode(path, strlen(path), &text);
	json_object_set_new(o, "path_base64", json_string(str_text(&text)));
}

static void put_mode(json_t *o, const char *key, mode_t mode)
{
	char text[8];

	snprintf(text, sizeof text, "%04o", (unsigned int)(mode & 07777));
	json_object_set_new(o, key, json_string(text));
}

static bool has_mode(const struct apply_entry *e)
{
	return apply_act_writes(e->act) && e->head.type == NODE_FILE;
}

static json_t *change_json(const struct apply_entry *e, const struct apply_note *n)
{
	json_t *o = json_object();

	put_path(o, e->path);
	json_object_set_new(o, "action", json_string(apply_act_name(e->act)));
	if (has_mode(e))
		put_mode(o, "mode", e->mode);
	if (has_mode(e) && e->host.type == NODE_FILE && (e->host.mode & 07777) != e->mode)
		put_mode(o, "mode_before", e->host.mode);
	if (n->later)
		json_object_set_new(o, "executes_later", json_string(n->later));
	return o;
}

static json_t *reason_json(const char *path, const char *why)
{
	json_t *o = json_object();

	put_path(o, path);
	json_object_set_new(o, "why", json_string(why));
	return o;
}

bool apply_is_empty(const struct apply_job *j)
{
	for (size_t i = 0; i < j->change.n; i++)
		if (is_told(&j->change.at[i]))
			return false;
	return true;
}

/* Files that execute later, and that nothing has allowed yet. */
static bool is_asked(const struct apply_job *j, size_t i)
{
	return j->change.at[i].act != ACT_LEAVE && j->notes[i].later && !j->notes[i].is_allowed;
}

json_t *apply_json(const struct apply_job *j)
{
	json_t *changes = json_array(), *conflicts = json_array(), *refused = json_array(),
	       *left = json_array();

	for (size_t i = 0; i < j->change.n; i++) {
		const struct apply_entry *e = &j->change.at[i];
		const struct apply_note *n = &j->notes[i];

		if (e->act == ACT_CONFLICT)
			json_array_append_new(conflicts, reason_json(e->path, e->why));
		else if (e->act == ACT_LEAVE)
			json_array_append_new(left, reason_json(e->path, e->why));
		else if (is_told(e))
			json_array_append_new(changes, change_json(e, n));
		if (is_asked(j, i))
			json_array_append_new(refused, reason_json(e->path, n->later));
	}
	return json_pack("{so,so,so,so}", "changes", changes, "conflicts", conflicts, "refused",
	                 refused, "left_out", left);
}

void apply_text(const struct apply_job *j, struct str *out)
{
	for (size_t i = 0; i < j->change.n; i++) {
		const struct apply_entry *e = &j->change.at[i];

		if (!is_told(e))
			continue;
		str_addf(out, "%-9s ", apply_act_name(e->act));
		escape_text(e->path, out);
		if (has_mode(e) && e->host.type == NODE_FILE && (e->host.mode & 07777) != e->mode)
			str_addf(out, " (mode %04o -> %04o)", (unsigned int)(e->host.mode & 07777),
			         (unsigned int)e->mode);
		else if (has_mode(e) && (e->mode & 07111))
			str_addf(out, " (mode %04o)", (unsigned int)e->mode);
		str_add(out, "\n");
	}
}

static void complain(struct str *out, const char *path, const char *why)
{
	str_add(out, "caisson: ");
	escape_text(path, out);
	str_addf(out, ": %s\n", why);
}

static bool is_asked_for(const struct apply_job *j, size_t i, const char *why)
{
	return is_asked(j, i) && strcmp(j->notes[i].later, why) == 0;
}

/* All names of one reason, when `first` is the first of them. */
static void group_later(const struct apply_job *j, size_t first, struct str *out)
{
	const char *why = j->notes[first].later;

	for (size_t i = 0; i < first; i++)
		if (is_asked_for(j, i, why))
			return;
	str_addf(out, "caisson: %s:\n", why);
	for (size_t i = first; i < j->change.n; i++) {
		if (!is_asked_for(j, i, why))
			continue;
		str_add(out, "    ");
		escape_text(j->change.at[i].path, out);
		str_add(out, "\n");
	}
}

void apply_later_text(const struct apply_job *j, struct str *out)
{
	for (size_t i = 0; i < j->change.n; i++)
		if (is_asked(j, i))
			group_later(j, i, out);
}

static bool is_left(const struct apply_job *j, size_t i, const char *why)
{
	return j->change.at[i].act == ACT_LEAVE && j->change.at[i].why == why;
}

/* How many were left out for each reason: the same text is at one address. */
static void count_left(const struct apply_job *j, size_t first, struct str *out)
{
	const char *why = j->change.at[first].why;
	size_t n = 0;

	for (size_t i = 0; i < first; i++)
		if (is_left(j, i, why))
			return; /* told already */
	for (size_t i = first; i < j->change.n; i++)
		n += is_left(j, i, why);
	str_addf(out, "caisson: left out %zu: %s\n", n, why);
}

void apply_complaints(const struct apply_job *j, struct str *out)
{
	for (size_t i = 0; i < j->change.n; i++) {
		const struct apply_entry *e = &j->change.at[i];

		if (has_mode(e) && e->head.mode != later_mode(e->head.mode))
			complain(out, e->path,
			         "its setuid, setgid and sticky bits stay in the workspace");
		if (e->act == ACT_LEAVE)
			count_left(j, i, out);
		else if (e->act == ACT_CONFLICT)
			complain(out, e->path, e->why);
	}
	apply_later_text(j, out);
}
