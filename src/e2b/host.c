/*
 * host.c - a request for a port of a sandbox: PORT-ID.DOMAIN, or E2b-Sandbox-Port with
 * E2b-Sandbox-Id. It is relayed (api/relay.c); a sandbox that rests is woken where it was asked to,
 * and a code interpreter that does not run is started.
 */
#include "api/forward.h"
#include "core/details.h"
#include "e2b/e2b-internal.h"

#define TOKEN_FIELD "e2b-traffic-access-token"
#define AGENT_FIELD "X-Access-Token"

static bool take_port(struct span text, uint16_t *out)
{
	unsigned long n = 0;

	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9' || text.len > 5)
			return false;
		n = n * 10 + (unsigned long)(text.at[i] - '0');
	}
	*out = (uint16_t)n;
	return n > 0 && n <= UINT16_MAX;
}

bool e2b_host_split(const struct http_head *h, uint16_t *port, struct span *id)
{
	struct span label = e2b_label(h);
	const char *dash = label.len ? memchr(label.at, '-', label.len) : NULL;

	if (!dash || !take_port((struct span){ label.at, (size_t)(dash - label.at) }, port))
		return false;
	*id = span_after(label, (size_t)(dash - label.at) + 1);
	return true;
}

/* Which port of whom; false: it is for nobody's application. */
static bool meant(const struct http_head *h, uint16_t *port, struct span *id)
{
	const struct span *field = http_header(h, "E2b-Sandbox-Port");
	const struct span *name = http_header(h, "E2b-Sandbox-Id");

	if (e2b_host_split(h, port, id))
		return *port != E2B_ENVD_PORT;
	if (!field || !name || e2b_label(h).len > 0 || !take_port(*field, port))
		return false;
	*id = *name;
	return *port != E2B_ENVD_PORT;
}

static bool takes(const struct request *r)
{
	struct span id;
	uint16_t port;

	return r->door == DOOR_TCP && meant(r->head, &port, &id);
}

/* ---- answers ------------------------------------------------------------------------- */

static void say(struct request *r, int status, const char *message)
{
	struct span id = { "", 0 };
	uint16_t port = 0;

	(void)meant(r->head, &port, &id);
	json_t *o = json_pack("{ss%,ss,si,si}", "sandboxId", id.at, id.len, "message", message,
	                      "port", (int)port, "code", status);
	AUTO(freep) char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	reply(r, status, "application/json", text ? text : "{}", text ? strlen(text) : 2, NULL);
}

static void refuse(struct request *r, int status, const char *detail)
{
	struct call *c = r->route;

	(void)detail;
	c->is_answered = true;
	say(r, status == 502 ? 502 : status,
	    status == 502 ? "The sandbox is running but port is not open"
	                  : "The sandbox does not answer");
}

/* ---- requests ------------------------------------------------------------------------ */

/* "custom.example:${PORT}" */
static const char *masked(struct call *c, const json_t *door, uint16_t port)
{
	static const char word[] = "${PORT}";
	const char *mask = json_string_value(json_object_get(door, "mask"));
	const char *at = mask ? strstr(mask, word) : NULL;
	AUTO(str_done) struct str text = { .max = 512 };

	if (!mask)
		return NULL;
	str_addn(&text, mask, at ? (size_t)(at - mask) : strlen(mask));
	if (at)
		str_addf(&text, "%u%s", (unsigned int)port, at + strlen(word));
	return text.overflow ? NULL : arena_strdup(&c->arena, str_text(&text));
}

static void relay(struct call *c, const struct sbx *s)
{
	static const char *const drops[] = { TOKEN_FIELD, NULL };
	static const char *const more[] = { TOKEN_FIELD, AGENT_FIELD, NULL };
	char envd[E2B_TOKEN_SIZE], traffic[E2B_TOKEN_SIZE];
	json_t *door = e2b_door(s);
	const char **wholes = arena_alloc(&c->arena, 3 * sizeof *wholes);
	struct span id;
	uint16_t port = 0;

	ident_token(s, "envd", envd);
	ident_token(s, "traffic", traffic);
	wholes[0] = arena_strdup(&c->arena, envd);
	wholes[1] = arena_strdup(&c->arena, traffic);
	wholes[2] = NULL;
	(void)meant(c->r->head, &port, &id);
	c->params[0] = arena_strdup(&c->arena, s->id);
	relay_start(c->r, &(struct relay_how){
			      .core = c->api->core,
			      .tenant = c->tenant,
			      .sandbox = c->params[0],
			      .port = port,
			      .way = { .carry.wholes = wholes,
	                               .host = masked(c, door, port),
	                               .proto = c->r->is_tls ? "https" : "http",
	                               .drops = port == E2B_INTERPRETER_PORT ? more : drops },
			      .refuse = refuse });
	json_decref(door);
}

static void interpreted(struct call *c, struct sbx *s, const struct fail *f)
{
	if (s)
		relay(c, s);
	else
		say(c->r, f->code == FAIL_NOT_FOUND ? 502 : 500, f->detail);
}

static void enter(struct call *c, struct sbx *s)
{
	struct span id;
	uint16_t port = 0;

	(void)meant(c->r->head, &port, &id);
	if (port == E2B_INTERPRETER_PORT)
		e2b_interpret(c, s, interpreted);
	else
		relay(c, s);
}

static void woken(struct call *c, struct sbx *s)
{
	reply_pause(c->r, false);
	if (s)
		enter(c, s);
	else
		say(c->r, 502, "The sandbox was not found");
}

static void run(struct call *c)
{
	struct sbx *s = roster_find(&c->api->core->sandboxes, c->params[0]);

	if (s && s->state == SANDBOX_RUNNING) {
		enter(c, s);
	} else if (s && e2b_may_wake(s)) {
		reply_pause(c->r, true);
		e2b_wake(c, s, woken);
	} else {
		say(c->r, 502, "The sandbox was not found");
	}
}

static bool has_field(const struct call *c, const struct sbx *s, const char *name, const char *use)
{
	const struct span *token = http_header(c->r->head, name);

	return token && http_header_count(c->r->head, name) == 1 && ident_takes(s, use, *token);
}

/* Of the interpreter's paths those for which their client says no token. Who listens there may
 * read a path in more ways than one (escapes, slashes), so these are known by each byte. */
static bool is_about_contexts(struct span path)
{
	static const char contexts[] = "/contexts";
	size_t n = strlen(contexts);

	for (size_t i = 0; i < path.len; i++) {
		char c = path.at[i];
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		                (c >= '0' && c <= '9') || c == '-' || c == '_';

		if (!is_plain && (c != '/' || (i > 0 && path.at[i - 1] == '/')))
			return false;
	}
	return span_is(path, "/health") || (path.len >= n && memcmp(path.at, contexts, n) == 0 &&
	                                    (path.len == n || path.at[n] == '/'));
}

/* To run code takes the token, as to run a command does. */
static bool is_command(const struct call *c, uint16_t port)
{
	return port == E2B_INTERPRETER_PORT && !is_about_contexts(c->r->path);
}

static int refuse_check(struct call *c, int status, const char *message)
{
	c->is_answered = true;
	say(c->r, status, message);
	return -1;
}

/* Whoever knows the name of a sandbox may, unless it was said that a token is needed; not one that
 * was made by another door: nobody said there that its ports are for everybody. */
static int check(struct call *c, struct fail *f)
{
	struct span name;
	uint16_t port = 0;
	char id[ID_SIZE];
	struct sbx *s = NULL;

	(void)f;
	if (meant(c->r->head, &port, &name) && ident_in(name, id))
		s = roster_find(&c->api->core->sandboxes, id);
	if (!s || !s->door || !e2b_is_there(s))
		return refuse_check(c, 502, "The sandbox was not found");
	json_t *door = e2b_door(s);
	bool is_private = json_is_true(json_object_get(door, "private"));
	json_decref(door);
	if (is_private && !has_field(c, s, TOKEN_FIELD, "traffic"))
		return refuse_check(c, 403, "The traffic access token is needed");
	if (is_command(c, port) && !has_field(c, s, AGENT_FIELD, "envd"))
		return refuse_check(c, 401, AGENT_FIELD " is not this sandbox's");
	c->params[0] = arena_strdup(&c->arena, s->id);
	snprintf(c->tenant, sizeof c->tenant, "%s", s->tenant);
	return 0;
}

static const struct route all = {
	.method = "", .pattern = "", .run = run, .body = BODY_STREAM, .gives = E2B_REST
};

const struct annex e2b_host_annex = { .all = &all, .takes = takes, .check = check };
