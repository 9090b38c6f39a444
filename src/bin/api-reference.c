/*
 * api-reference - prints docs/api.md, and with --openapi the document of GET /v1/openapi.json;
 * tools/check-docs compares the first.
 */
#include <ctype.h>

#include "api/describe.h"
#include "api/openapi.h"
#include "api/schemas.h"
#include "wire/tree.h"

static const char intro[] =
    "# The API\n"
    "\n"
    "<!-- Written by src/bin/api-reference.c from the tables of src/api. Do not edit. -->\n"
    "\n"
    "JSON over HTTP/1.1. The same is to be had for machines: `GET /v1/openapi.json`.\n"
    "\n"
    "**Where.** A unix socket: `$CAISSON_SOCKET`, else `$XDG_RUNTIME_DIR/caisson/api.sock`, for "
    "root\n"
    "`/run/caisson/api.sock`. The kernel says who calls; nobody but the daemon's own user and root "
    "is\n"
    "served. By TCP (`caisson serve --listen HOST:PORT`) every request needs `Authorization: "
    "Bearer\n"
    "TOKEN`; a token has scopes, and each includes those before it: `read`, `exec`, `manage`, "
    "`admin`.\n"
    "\n"
    "**Results and errors.** That a command fails, runs out of time or is refused something is a "
    "result\n"
    "with status 200. An error is ours: `application/problem+json` with a `code` of the list at "
    "the end.\n"
    "\n"
    "**Once only.** A POST with an `Idempotency-Key` is done once; the same request under the same "
    "key\n"
    "gets the same answer for 24 hours, also after a crash. The same key for another request is a\n"
    "`conflict`, and so is one that was worked on and whose answer is not kept: a stream, a new\n"
    "token, a command whose client left in the middle.\n"
    "\n"
    "**Strict.** An unknown key of a body and an unknown parameter are errors. Answers may get "
    "new\n"
    "members.\n"
    "\n"
    "```sh\n"
    "curl --unix-socket \"$CAISSON_SOCKET\" http://caisson/v1/sandboxes -d "
    "'{\"limits\":{\"mem\":\"1g\"}}'\n"
    "curl --unix-socket \"$CAISSON_SOCKET\" http://caisson/v1/sandboxes/sb_1/exec -d "
    "'{\"cmd\":\"make\"}'\n"
    "```\n"
    "\n";

/* ---- routes -------------------------------------------------------------------------- */

static void add_name(struct str *out, const char *name, size_t n)
{
	char text[64], anchor[64];

	snprintf(text, sizeof text, "%.*s", (int)n, name);
	name_lower(text, anchor);
	if (schema_find(text))
		str_addf(out, "[%s](#%s)", text, anchor);
	else
		str_add(out, text);
}

/* The expression of schemas.h for people: names are links, a bar does not end the cell. */
static void add_type(struct str *out, const char *type)
{
	while (*type) {
		size_t n = strcspn(type, "|[]{}=");

		if (n > 0) {
			add_name(out, type, n);
			type += n;
		} else if (*type == '=') {
			n = strcspn(++type, "|]}");
			str_addf(out, "`%.*s`", (int)n, type);
			type += n;
		} else {
			const char *text = *type == '|'   ? " or "
			                   : *type == '[' ? "list of "
			                   : *type == '{' ? "object of "
			                                  : "";

			str_add(out, text);
			type++;
		}
	}
}

static void add_params(struct str *out, const struct route *r)
{
	const struct param *p;
	char name[32];
	const char *between = "";

	for (size_t i = 0; name_at(r->query, i, name); i++, between = ", ")
		str_addf(out, "%s`%s`", between, name);
	for (size_t i = 0; (p = route_header(r, i)); i++) {
		if (strcmp(p->name, "Idempotency-Key") == 0)
			continue; /* every POST has it: the introduction says so */
		str_addf(out, "%s`%s:`", between, p->name);
		between = ", ";
	}
}

static void add_answers(struct str *out, const struct route *r)
{
	struct answer_form forms[ANSWER_FORMS_MAX];
	size_t n = route_answers(r, forms);

	for (size_t i = 0; i < n; i++) {
		bool is_same = i > 0 && forms[i].status == forms[i - 1].status;

		if (is_same)
			str_add(out, " or ");
		else
			str_addf(out, "%s%d ", i ? "; " : "", forms[i].status);
		if (forms[i].media && strcmp(forms[i].media, "application/json") != 0)
			str_addf(out, "`%s`", forms[i].media);
		else if (forms[i].type)
			add_type(out, forms[i].type);
	}
}

static void add_route(struct str *out, const struct route *r)
{
	struct body_form body;

	str_addf(out, "| `%s ", r->method);
	route_path(r, out);
	str_addf(out, "` | %s | %s | ", r->summary, scope_name(r->scope));
	add_params(out, r);
	str_add(out, " | ");
	if (route_body(r, &body) && strcmp(body.media, "application/json") == 0)
		add_type(out, body.type);
	else if (route_body(r, &body))
		str_addf(out, "`%s`", body.media);
	str_add(out, " | ");
	add_answers(out, r);
	str_add(out, " |\n");
}

static void add_routes(struct str *out)
{
	const struct group *g;

	for (size_t i = 0; (g = group_at(i)); i++) {
		str_addf(out, "## %s\n\n%s\n\n", g->title, g->help);
		str_add(out, "| request | does | scope | parameters | takes | gives |\n"
		             "|---|---|---|---|---|---|\n");
		for (size_t k = 0; k < n_routes; k++)
			if (route_group(&routes[k]) == g)
				add_route(out, &routes[k]);
		str_add(out, "\n");
	}
}

/* ---- parameters ---------------------------------------------------------------------- */

static bool is_seen(struct str *seen, const char *name)
{
	char word[48];

	snprintf(word, sizeof word, " %s ", name);
	bool is = strstr(str_text(seen), word);
	str_add(seen, word);
	return is;
}

static void add_param(struct str *out, const struct param *p, bool is_header)
{
	str_addf(out, "| `%s%s` | ", p->name, is_header ? ":" : "");
	add_type(out, p->type);
	str_addf(out, " | %s |\n", p->help);
}

static void add_all_params(struct str *out)
{
	AUTO(str_done) struct str seen = { .max = 16u << 10 };
	const struct param *p;
	char name[32];

	str_add(out, "## Parameters\n\n| parameter | type | meaning |\n|---|---|---|\n");
	for (size_t i = 0; i < n_routes; i++)
		for (size_t k = 0; name_at(routes[i].query, k, name); k++)
			if (!is_seen(&seen, name) && (p = query_param(name)))
				add_param(out, p, false);
	str_clear(&seen);
	for (size_t i = 0; i < n_routes; i++)
		for (size_t k = 0; (p = route_header(&routes[i], k)); k++)
			if (!is_seen(&seen, p->name))
				add_param(out, p, true);
	str_add(out, "\n");
}

/* ---- schemas ------------------------------------------------------------------------- */

static void add_member(struct str *out, const struct schema *s, const struct member *m)
{
	const char *when = !(m->flags & NEEDED) ? "" : s->is_request ? "needed" : "always";

	str_addf(out, "| `%s`%s | ", m->key, m->flags & BYTES ? ", `…_base64`" : "");
	add_type(out, m->type);
	str_addf(out, " | %s | %s |\n", when, m->help);
}

static void add_schema(struct str *out, const struct schema *s)
{
	str_addf(out, "### %s\n\n%s", s->name, s->help);
	if (s->is && !islower((unsigned char)s->is[0])) { /* else the sentence says it */
		str_add(out, " It is ");
		add_type(out, s->is);
		str_add(out, ".");
	}
	if (s->has_spec)
		str_addf(out, " The keys are in [spec.md](spec.md)%s",
		         s->n > 0 ? " and below." : ".");
	if (s->has_net)
		str_add(out, " The keys are those of `net` in [spec.md](spec.md).");
	str_add(out, "\n\n");
	if (s->n == 0)
		return;
	str_add(out, "| member | type | there | meaning |\n|---|---|---|---|\n");
	for (size_t i = 0; i < s->n; i++)
		add_member(out, s, &s->members[i]);
	str_add(out, "\n");
}

static void add_schemas(struct str *out)
{
	const struct basic *b;

	str_add(out, "## Types\n\n| type | is |\n|---|---|\n");
	for (size_t i = 0; (b = type_basic(i)); i++) {
		str_addf(out, "| %s | %s", b->name, b->help);
		for (size_t k = 0; b->word && b->word(k) && strcmp(b->name, "error_code") != 0; k++)
			str_addf(out, "%s`%s`", k ? ", " : ": ", b->word(k));
		str_add(out, " |\n");
	}
	str_add(
	    out,
	    "\nWhere a member is there also as `…_base64`, an answer has it when the bytes are not "
	    "UTF-8, and a\nrequest may use it in place of the other.\n\n");
	for (size_t i = 0; i < n_schemas; i++)
		add_schema(out, &schemas[i]);
}

/* ---- errors -------------------------------------------------------------------------- */

static void add_errors(struct str *out)
{
	str_add(out, "## Errors\n\nThe list is closed.\n\n| code | status |\n|---|---|\n");
	for (enum fail_code c = FAIL_NONE + 1; c < FAIL_CODES; c++)
		str_addf(out, "| `%s` | %d |\n", fail_name(c), fail_status(c));
}

int main(int argc, char **argv)
{
	AUTO(str_done) struct str out = { .max = 1u << 20 };

	if (argc > 1 && strcmp(argv[1], "--openapi") == 0) {
		str_addf(&out, "%s\n", openapi_text());
	} else {
		str_add(&out, intro);
		add_routes(&out);
		add_all_params(&out);
		add_schemas(&out);
		add_errors(&out);
	}
	if (out.overflow || fputs(str_text(&out), stdout) < 0 || fflush(stdout) != 0)
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
