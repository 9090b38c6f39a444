/*
 * policy_set.c - `caisson policy set`: new network rules for a sandbox that lives.
 */
#include <signal.h>

#include "base/limits.h"
#include "cli/policy.h"
#include "cli/registry.h"
#include "cli/verb.h"
#include "wire/escape.h"

struct set {
	struct spec spec;
	const char *sandbox;
	struct flag_list allow, deny;
	bool is_json, has_spec;
};

static const char usage[] = "usage: caisson policy set SANDBOX [--allow HOST]... [--deny HOST]... "
			    "| [--net RULE]... [--spec FILE]";

static void set_done(struct set *x)
{
	spec_done(&x->spec);
	vec_done(&x->allow);
	vec_done(&x->deny);
}

/* --allow HOST, --allow=HOST */
static int take_host(const char *name, struct flag_list *into, int argc, char **argv, int *i,
                     struct err *e)
{
	size_t n = strlen(name);

	if (strncmp(argv[*i], name, n) != 0 || (argv[*i][n] && argv[*i][n] != '='))
		return 0;
	if (!argv[*i][n] && *i + 1 >= argc)
		return err_new(e, ERR_INVALID, "%s needs a value", name);
	const char *value = argv[*i][n] ? argv[*i] + n + 1 : argv[++*i];

	vec_push(into, value);
	return 1;
}

static int take_word(struct set *x, int argc, char **argv, int *i, struct err *e)
{
	const char *word = argv[*i];
	int r = take_host("--allow", &x->allow, argc, argv, i, e);

	if (r == 0)
		r = take_host("--deny", &x->deny, argc, argv, i, e);
	if (r != 0)
		return r;
	if (strcmp(word, "--json") == 0) {
		x->is_json = true;
		return 1;
	}
	r = policy_flag(&x->spec, argc, argv, i, e);
	x->has_spec |= r > 0;
	if (r != 0)
		return r;
	if (x->sandbox || word[0] == '-')
		return err_new(e, ERR_INVALID, "policy set takes no \"%s\"; %s", word, usage);
	x->sandbox = word;
	return 1;
}

/* ---- the rules ------------------------------------------------------------------------ */

static json_t *spec_tree(const struct spec *s, struct err *e)
{
	AUTO(str_done) struct str text = { .max = SPEC_BYTES_MAX };

	return spec_print(s, &text, e) < 0 ? NULL : json_loads(str_text(&text), 0, NULL);
}

/* Nothing but the network of a sandbox can be changed while it lives. */
static json_t *net_alone(const struct spec *s, struct err *e)
{
	AUTO(spec_done) struct spec empty;
	AUTO(json_decrefp) json_t *said = spec_tree(s, e);

	spec_init(&empty);
	AUTO(json_decrefp) json_t *nothing = spec_tree(&empty, e);

	if (!said || !nothing)
		return NULL;
	json_t *net = json_incref(json_object_get(said, "net"));

	json_object_del(said, "net");
	json_object_del(nothing, "net");
	if (json_equal(said, nothing))
		return net;
	err_new(e, ERR_INVALID, "policy set: only net can be changed while a sandbox lives");
	json_decref(net);
	return NULL;
}

static void add_hosts(json_t *net, const char *key, const struct flag_list *hosts)
{
	json_t *list = json_object_get(net, key);

	if (!list && hosts->len > 0) {
		list = json_array();
		json_object_set_new(net, key, list);
	}
	for (size_t i = 0; i < hosts->len; i++)
		json_array_append_new(list, json_string(hosts->at[i]));
}

/* What it has now, and more. */
static json_t *net_edited(const struct set *x, struct client *c, struct err *e)
{
	const char *texts[] = { x->sandbox };
	AUTO(str_done) struct str path = { .max = PATH_TEXT_MAX };
	AUTO(json_decrefp) json_t *sandbox = NULL;

	client_path(&path, "/v1/sandboxes/{}", texts);
	if (client_call(c, "GET", str_text(&path), NULL, &sandbox, e) < 0)
		return NULL;
	json_t *net = json_deep_copy(json_object_get(json_object_get(sandbox, "spec"), "net"));

	if (!net)
		net = json_object();
	if (strcmp(text_of(net, "mode"), "allow") != 0 || x->allow.len > 0)
		json_object_del(net, "mode"); /* it follows from the rules */
	add_hosts(net, "allow", &x->allow);
	add_hosts(net, "deny", &x->deny);
	return net;
}

/* Presets are the caller's to read. */
static json_t *net_expanded(json_t *net, struct err *e)
{
	AUTO(spec_done) struct spec s;
	AUTO(json_decrefp) json_t *doc = json_pack("{so}", "net", net);
	AUTO(freep) char *text = json_dumps(doc, JSON_COMPACT);

	spec_init(&s);
	if (!text) {
		err_new(e, ERR_INVALID, "a host is not UTF-8");
		return NULL;
	}
	if (spec_json(&s, text, strlen(text), e) < 0 || registry_expand(&s, e) < 0)
		return NULL;
	return net_alone(&s, e);
}

/* ---- the change ----------------------------------------------------------------------- */

static int print_changed(const json_t *answer, struct err *e)
{
	AUTO(str_done) struct str text = { .max = 256 };
	int64_t generation = number_of(answer, "generation");
	const json_t *asked = json_object_get(answer, "approval");

	if (asked)
		str_addf(&text, "%s waits for a person: the rules change when it is allowed\n",
		         text_of(asked, "id"));
	else if (generation > 0)
		str_addf(&text, "rules %lld hold; %lld open connections were closed\n",
		         (long long)generation, (long long)number_of(answer, "closed"));
	else
		str_add(&text, "the rules hold from the next start on\n");
	return print_text(&text, e);
}

static int change(const struct set *x, struct client *c, struct err *e)
{
	const char *texts[] = { x->sandbox };
	AUTO(str_done) struct str path = { .max = PATH_TEXT_MAX };
	AUTO(json_decrefp) json_t *answer = NULL;
	json_t *net = x->has_spec ? net_alone(&x->spec, e) : net_edited(x, c, e);

	net = net ? net_expanded(net, e) : NULL;
	if (!net)
		return -1;
	client_path(&path, "/v1/sandboxes/{}/net", texts);
	if (client_call(c, "PATCH", str_text(&path), net, &answer, e) < 0)
		return -1;
	return x->is_json ? print_json(json_incref(answer), e) : print_changed(answer, e);
}

int policy_set(int argc, char **argv, struct err *e)
{
	AUTO(set_done) struct set x = { 0 };
	struct client c;

	spec_init(&x.spec);
	for (int i = 0; i < argc; i++)
		if (take_word(&x, argc, argv, &i, e) < 0)
			return EXIT_OURS;
	bool is_edit = x.allow.len > 0 || x.deny.len > 0;

	if (!x.sandbox || is_edit == x.has_spec) {
		err_new(e, ERR_INVALID, "%s", usage);
		return EXIT_OURS;
	}
	signal(SIGPIPE, SIG_IGN);
	client_init(&c);
	int r = change(&x, &c, e);
	bool is_refused = r < 0 && c.problem && e->kind != ERR_INTERNAL;

	if (is_refused && x.is_json) {
		struct err unprinted = { 0 };

		(void)!print_json(json_incref(c.problem),
		                  &unprinted); /* the sentence comes anyway */
	}
	client_done(&c);
	return r == 0 ? 0 : is_refused ? EXIT_REFUSED : EXIT_OURS;
}
