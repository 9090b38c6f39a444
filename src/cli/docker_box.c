/*
 * docker_box.c - containers: a sandbox, its settings, its main process; found, and what state that
 * comes to.
 *
 * Settings are JSON in labels, since these can be had with every list: a label has at most 255
 * bytes, so they lie in as many as it takes.
 */
#include <time.h>

#include "base/vec.h"
#include "cli/docker-internal.h"
#include "cli/remote.h"

#define PIECE 240
#define PIECES_MAX 64
#define SETTLE_MS 20000
#define LOOK_EACH_MS 10

void box_done(struct box *b)
{
	json_decref(b->sandbox);
	json_decref(b->conf);
	json_decref(b->main);
	*b = (struct box){ 0 };
}

void box_list_done(struct box_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		box_done(&l->at[i]);
	vec_done(l);
}

/* ---- settings ------------------------------------------------------------------------ */

static void piece_name(char out[NAME_TEXT_MAX], size_t i)
{
	snprintf(out, NAME_TEXT_MAX, DOCKER_LABEL ".%zu", i);
}

static bool is_own(const char *label)
{
	return strncmp(label, DOCKER_LABEL, strlen(DOCKER_LABEL)) == 0;
}

int box_label(json_t *labels, json_t *conf, struct err *e)
{
	AUTO(freep) char *text = json_dumps(conf, JSON_COMPACT | JSON_ENSURE_ASCII);
	size_t len = text ? strlen(text) : 0, i = 0;
	char name[NAME_TEXT_MAX];
	const char *given;
	json_t *v;

	if (!text)
		return err_new(e, ERR_INVALID, "command and settings: not UTF-8");
	json_object_foreach(labels, given, v)
	{
		if (is_own(given))
			return err_new(e, ERR_INVALID, "label %s is refused: it is one of ours",
			               given);
	}
	if (len > (size_t)PIECE * PIECES_MAX)
		return err_new(e, ERR_INVALID,
		               "command and settings are too long: at most %d bytes",
		               PIECE * PIECES_MAX);
	json_object_set_new(labels, DOCKER_LABEL, json_string("1"));
	for (size_t at = 0; at < len; at += PIECE) {
		piece_name(name, i++);
		json_object_set_new(labels, name,
		                    json_stringn(text + at, len - at < PIECE ? len - at : PIECE));
	}
	return 0;
}

/* NULL when there are none, or none of ours: labels are anybody's to set. */
static json_t *conf_of(const json_t *sandbox)
{
	const json_t *labels = json_object_get(sandbox, "labels");
	AUTO(str_done) struct str text = { .max = (size_t)PIECE * PIECES_MAX };
	char name[NAME_TEXT_MAX];

	for (size_t i = 0; i < PIECES_MAX; i++) {
		piece_name(name, i);
		str_add(&text, text_of(labels, name));
	}
	json_t *conf = json_loads(str_text(&text), 0, NULL);

	if (json_is_array(json_object_get(conf, "cmd")))
		return conf;
	json_decref(conf);
	return NULL;
}

json_t *box_labels(const struct box *b)
{
	json_t *all = json_object(), *v;
	const char *k;

	json_object_foreach(json_object_get(b->sandbox, "labels"), k, v)
	{
		if (!is_own(k))
			json_object_set(all, k, v);
	}
	return all;
}

/* ---- found --------------------------------------------------------------------------- */

/* Takes the reference. */
static void fill(struct box *b, json_t *sandbox)
{
	*b = (struct box){ .sandbox = sandbox, .conf = conf_of(sandbox) };
	docker_id_of(text_of(sandbox, "id"), b->id);
}

static int find_main(struct client *c, struct box *b, struct err *e)
{
	const char *texts[] = { box_sandbox(b), DOCKER_MAIN };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
	AUTO(json_decrefp) json_t *page = NULL;

	if (!b->conf)
		return 0;
	client_path(&path, "/v1/processes?limit=1&sandbox={}&label={}", texts);
	if (client_call(c, "GET", str_text(&path), NULL, &page, e) < 0)
		return -1;
	json_decref(b->main);
	b->main = json_incref(json_array_get(json_object_get(page, "processes"), 0));
	return 0;
}

/* 1 found, 0 there is none, -1. */
static int try(struct client *c, const char *id, struct box *out, struct err *e)
{
	const char *texts[] = { id };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };
	json_t *sandbox = NULL;

	client_path(&path, "/v1/sandboxes/{}", texts);
	if (client_call(c, "GET", str_text(&path), NULL, &sandbox, e) < 0) {
		if (e->kind != ERR_NOT_FOUND && e->kind != ERR_INVALID)
			return -1;
		*e = (struct err){ 0 };
		return 0;
	}
	if (strcmp(text_of(sandbox, "state"), "gone") == 0) {
		json_decref(sandbox);
		return 0;
	}
	fill(out, sandbox);
	return find_main(c, out, e) < 0 ? -1 : 1;
}

static int list_sandboxes(struct client *c, json_t **out, struct err *e)
{
	return fetch_list(c, "/v1/sandboxes?label=" DOCKER_LABEL "%3D1", "sandboxes", out, e);
}

static int find_short(struct client *c, const char *digits, struct box *out, struct err *e)
{
	AUTO(json_decrefp) json_t *list = NULL;
	char id[DOCKER_ID_SIZE];
	json_t *s, *found = NULL;
	size_t i;

	if (list_sandboxes(c, &list, e) < 0)
		return -1;
	json_array_foreach(list, i, s)
	{
		docker_id_of(text_of(s, "id"), id);
		if (strncmp(id, digits, strlen(digits)) != 0)
			continue;
		if (found)
			return err_new(e, ERR_INVALID,
			               "multiple IDs found with provided prefix: %s", digits);
		found = s;
	}
	if (!found)
		return 0;
	fill(out, json_incref(found));
	return find_main(c, out, e) < 0 ? -1 : 1;
}

int box_find(struct client *c, const char *name, struct box *out, struct err *e)
{
	char id[NAME_TEXT_MAX];
	int r = 0;

	name += name[0] == '/' && name[1];
	if (snprintf(id, sizeof id, DOCKER_KEY "%s", name) < (int)sizeof id)
		r = try(c, id, out, e);
	if (r == 0 && docker_id_back(name, id))
		r = try(c, id, out, e);
	if (r == 0 && docker_is_digits(name))
		r = find_short(c, name, out, e);
	if (r == 0 && *name)
		r = try(c, name, out, e);
	if (r == 0)
		return err_new(e, ERR_NOT_FOUND, "No such container: %s", name);
	return r < 0 ? -1 : 0;
}

int box_again(struct client *c, struct box *b, struct err *e)
{
	AUTO(box_done) struct box old = *b;

	*b = (struct box){ 0 };
	int r = try(c, box_sandbox(&old), b, e);
	if (r == 0)
		return err_new(e, ERR_NOT_FOUND, "No such container: %s", box_name(&old));
	return r < 0 ? -1 : 0;
}

static bool is_under_way(const struct box *b)
{
	static const char *const words[] = { "creating", "stopping", "replacing", "deleting" };

	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(text_of(b->sandbox, "state"), words[i]) == 0)
			return true;
	return false;
}

int box_settle(struct client *c, struct box *b, struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_EACH_MS * 1000000L };

	for (int i = 0; is_under_way(b) && i < SETTLE_MS / LOOK_EACH_MS; i++) {
		nanosleep(&pause, NULL);
		if (box_again(c, b, e) < 0)
			return -1;
	}
	return 0;
}

int box_stop(struct client *c, struct box *b, struct err *e)
{
	struct err late = { 0 };
	int r = box_post(c, b, "stop", NULL, NULL, e);

	/* It may have ended meanwhile, by itself or by somebody else. */
	if (box_again(c, b, &late) < 0 || box_settle(c, b, &late) < 0 ||
	    (r < 0 && strcmp(text_of(b->sandbox, "state"), "stopped") != 0)) {
		if (r == 0)
			*e = late;
		return -1;
	}
	*e = (struct err){ 0 };
	return 0;
}

/* Looks again and again until `is_enough`, or it is gone. */
static int watch(struct client *c, struct box *b, bool (*is_enough)(const struct box *b),
                 struct err *e)
{
	const struct timespec pause = { .tv_nsec = LOOK_EACH_MS * 1000000L };

	for (int i = 0; !is_enough(b) && i < SETTLE_MS / LOOK_EACH_MS; i++) {
		if (box_again(c, b, e) < 0) {
			if (e->kind != ERR_NOT_FOUND)
				return -1;
			*e = (struct err){ 0 };
			return 0;
		}
		if (!is_enough(b))
			nanosleep(&pause, NULL);
	}
	return 0;
}

static bool is_down(const struct box *b)
{
	return strcmp(text_of(b->sandbox, "state"), "stopped") == 0 ||
	       strcmp(text_of(b->sandbox, "state"), "failed") == 0;
}

static bool is_never(const struct box *b)
{
	(void)b;
	return false;
}

int box_await_end(struct client *c, struct box *b, struct err *e)
{
	bool is_removed = json_is_true(json_object_get(b->conf, "rm"));

	return watch(c, b, is_removed ? is_never : is_down, e);
}

int box_remove(struct client *c, struct box *b, struct err *e)
{
	const char *texts[] = { box_sandbox(b) };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };

	client_path(&path, "/v1/sandboxes/{}", texts);
	if (client_call(c, "DELETE", str_text(&path), NULL, NULL, e) == 0)
		return 0;
	/* Gone already; or on its way, because its process has ended. */
	if (e->kind != ERR_NOT_FOUND && strcmp(text_of(c->problem, "code"), "busy") != 0 &&
	    strcmp(text_of(c->problem, "code"), "conflict") != 0)
		return -1;
	*e = (struct err){ 0 };
	return watch(c, b, is_never, e);
}

static void add_box(struct box_list *list, json_t *sandbox)
{
	struct box b;

	fill(&b, json_incref(sandbox));
	vec_push(list, b);
}

static void give_main(struct box_list *list, json_t *process)
{
	for (size_t i = 0; i < list->len; i++) {
		struct box *b = &list->at[i];

		if (!b->main && strcmp(box_sandbox(b), text_of(process, "sandbox")) == 0)
			b->main = json_incref(process);
	}
}

int box_all(struct client *c, struct box_list *out, struct err *e)
{
	AUTO(json_decrefp) json_t *sandboxes = NULL, *processes = NULL;
	json_t *o;
	size_t i;

	if (list_sandboxes(c, &sandboxes, e) < 0 ||
	    fetch_list(c, "/v1/processes?label=docker%3Amain", "processes", &processes, e) < 0)
		return -1;
	json_array_foreach(sandboxes, i, o)
	{
		add_box(out, o);
	}
	json_array_foreach(processes, i, o)
	{
		give_main(out, o); /* newest first */
	}
	return 0;
}

/* ---- what it is ---------------------------------------------------------------------- */

const char *box_sandbox(const struct box *b)
{
	return text_of(b->sandbox, "id");
}

const char *box_name(const struct box *b)
{
	static char brief[DOCKER_SHORT + 1];
	const char *key = text_of(b->sandbox, "key");

	if (strncmp(key, DOCKER_KEY, strlen(DOCKER_KEY)) == 0)
		return key + strlen(DOCKER_KEY);
	if (*key)
		return key;
	snprintf(brief, sizeof brief, "%s", b->id);
	return brief;
}

const char *box_image(const struct box *b)
{
	const char *asked = text_of(b->conf, "image");
	const char *image = text_of(json_object_get(b->sandbox, "spec"), "image");

	return *asked ? asked : *image ? image : "host";
}

bool box_is_over(const json_t *process)
{
	const char *state = text_of(process, "state");

	return strcmp(state, "running") != 0 && strcmp(state, "queued") != 0 &&
	       strcmp(state, "awaiting_approval") != 0;
}

enum box_state box_state(const struct box *b)
{
	const char *state = text_of(b->sandbox, "state");
	bool is_up = strcmp(state, "running") == 0 || strcmp(state, "creating") == 0 ||
	             strcmp(state, "replacing") == 0;

	if (strcmp(state, "failed") == 0 || strcmp(state, "unreachable") == 0 ||
	    strcmp(state, "deleting") == 0)
		return BOX_DEAD;
	if (strcmp(state, "paused") == 0)
		return BOX_PAUSED;
	if (!b->conf) /* somebody else's: it has no process that it stands and falls with */
		return is_up ? BOX_RUNNING : BOX_EXITED;
	if (!b->main)
		return BOX_CREATED;
	return is_up && !box_is_over(b->main) ? BOX_RUNNING : BOX_EXITED;
}

const char *box_state_name(enum box_state s)
{
	static const char *const names[] = { [BOX_CREATED] = "created",
		                             [BOX_RUNNING] = "running",
		                             [BOX_PAUSED] = "paused",
		                             [BOX_EXITED] = "exited",
		                             [BOX_DEAD] = "dead" };
	_Static_assert(COUNT(names) == BOX_STATES, "a state has no name");

	return names[s];
}

int box_exit_code(const struct box *b)
{
	if (!b->main || !box_is_over(b->main))
		return box_state(b) == BOX_EXITED ? 137 : 0;
	return remote_exit_status(b->main);
}

json_t *box_command(const struct box *b)
{
	return json_object_get(b->conf, "cmd");
}

const char *box_folder(const struct box *b)
{
	const char *folder = text_of(b->conf, "wd");

	return *folder ? folder : b->conf ? "/" : "/work";
}

int box_post(struct client *c, const struct box *b, const char *what, json_t *body, json_t **out,
             struct err *e)
{
	const char *texts[] = { box_sandbox(b) };
	AUTO(str_done) struct str path = { .max = DOCKER_PATH_MAX };

	client_path(&path, "/v1/sandboxes/{}/", texts);
	str_add(&path, what);
	return client_call(c, "POST", str_text(&path), body, out, e);
}
