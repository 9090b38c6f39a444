/*
 * opts.h - inside of the spec module: what one option is, and how a value reaches it.
 *
 * A row (struct opt) says everything about one option: key, flag, type, default, help. Flags,
 * JSON and YAML all become a jansson value first, and opt_set() gives it to the row's type.
 * Printing, help and reference walk the same rows, so a new option is one new row.
 *
 * 1. A check or setter does not say where the value stood: whoever started the walk adds the
 *    path ("fs[1].at") and the line, once, from what the walk left in struct input.
 * 2. A setter handles one item. opt_set() walks a list, and clears what a document replaces.
 * 3. No message contains what may be a secret: quote() hides it, creds.c and env never quote.
 */
#pragma once

#include <jansson.h>

#include "base/limits.h"
#include "spec/spec.h"
#include "wire/span.h"

#define SPEC_LIST_MAX 4096         /* entries of one list; people read it, the gate walks it */
#define SPEC_TEXT_MAX (128u << 10) /* one command or variable: the kernel's MAX_ARG_STRLEN */
#define FLAGS_MAX 32               /* rows with a flag; a test counts them */

struct opt;

/* Where the walk is. */
struct input {
	struct arena *arena;
	bool document; /* replaces what was said before; a flag adds */
	bool listed;   /* the value is an entry of a list */
	char path[192];
	size_t path_len;
	const json_t *parent; /* the container of the value, */
	size_t index;         /* and its place there: enough to find the line */
};

/* Checks `text` and gives its canonical form, owned by the arena. */
typedef int opt_check(const struct opt *o, struct arena *a, const char *text, const char **out,
                      struct err *e);

struct opt_type {
	const char *wants; /* "text": completes "wants ..., not a list" */
	bool items;        /* takes a list of what `set` takes */
	bool repeat;       /* a second flag adds to the first */
	int (*set)(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e);
	json_t *(*get)(const struct opt *o, const void *from); /* NULL when not set */
	void (*clear)(const struct opt *o, void *into);
};

struct unit {
	int (*parse)(const char *text, uint64_t *out, struct err *e);
	void (*print)(uint64_t value, char buf[32]);
};

struct limit_rule {
	enum limit_id id;
	const struct unit *unit;
	uint64_t min, max;
};

struct opt_table {
	const struct opt *at;
	size_t count;
};

struct opt {
	const char *key;   /* in documents */
	const char *flag;  /* on the command line; NULL: documents only */
	const char *brief; /* one-letter flag */
	const char *arg;   /* "SIZE" in the help */
	const char *help;  /* what it means, one line */
	const char *forms; /* how it is written, for the reference */
	const char *dflt;  /* as one would write it; NULL: none */
	const struct opt_type *type;
	size_t offset; /* of the field in the struct that the table fills */
	opt_check *check;
	opt_check *check_key;            /* opt_map: of the key */
	const char *const *words;        /* the valid words when they are closed; ends with NULL */
	const struct opt_table *members; /* the keys inside, for an object */
	const char *twin;                /* the other key for the same thing: not both */
	struct limit_rule limit;
	size_t max;  /* entries; 0: SPEC_LIST_MAX */
	bool weaker; /* may stand in allow_weaker */
};

static inline void *opt_field(const struct opt *o, void *into)
{
	return (char *)into + o->offset;
}

static inline const void *opt_from(const struct opt *o, const void *from)
{
	return (const char *)from + o->offset;
}

/* What one kind of document is called in messages, and what it holds. */
struct doc_kind {
	const struct opt_table *table;
	const char *noun, *keys; /* "the spec"; "net, fs, limits" */
	const char *when_empty;  /* what to write instead of nothing; NULL: nothing is fine */
};
/* A whole document into the struct of its table; errors name key and value, YAML the line too. */
int doc_json(const struct doc_kind *kind, struct arena *a, void *into, struct span text,
             struct err *e) MUST_USE;
int doc_yaml(const struct doc_kind *kind, struct arena *a, void *into, struct span text,
             struct err *e) MUST_USE;

/* Tables: of a document (opts.c), of its objects (net.c, fs.c, limits.c). */
extern const struct opt_table top_table, net_table, http_table, rate_table, fs_table, limit_table,
    gate_table;
extern const struct opt_type opt_net, opt_fs, opt_creds, opt_env, opt_profile, opt_switch, opt_gate;

const struct opt *table_find(const struct opt_table *t, const char *key);
const struct opt *flag_row(size_t i);             /* the i-th row that has a flag; NULL: no more */
const struct opt *opt_by_limit(enum limit_id id); /* the row with the flag */

/* limits.c: the number of a row with a unit, within its bounds. */
int number_parse(const struct opt *o, const json_t *v, uint64_t *out, struct err *e) MUST_USE;

/* walk.c */
int opt_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e) MUST_USE;
int members_apply(struct input *in, const struct opt_table *t, void *into, json_t *v,
                  struct err *e) MUST_USE;
json_t *members_get(const struct opt_table *t, const void *from);
void input_at(struct input *in, const json_t *parent, size_t index); /* before parent[index] */
int wrong_type(const char *wants, const json_t *v, struct err *e);
const char *scalar_text(const json_t *v, char buf[24]); /* string or integer, else NULL */
int list_room(const struct opt *o, size_t len, struct err *e) MUST_USE;
/* A flag replaces the value of the same key; a document may not name one twice. */
int pair_add(struct input *in, const struct opt *o, struct pair_list *l, struct text_pair pair,
             struct err *e) MUST_USE;

extern const struct opt_type opt_text, opt_bool, opt_list, opt_map, opt_members;
int members_set(struct input *in, const struct opt *o, void *into, json_t *v,
                struct err *e) MUST_USE;
int map_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e) MUST_USE;
json_t *map_get(const struct opt *o, const void *from);
void map_clear(const struct opt *o, void *into);

/* text.c */
struct quoted {
	char text[112];
};
struct quoted quote(const char *text); /* short, printable ASCII; hides a secret */
int text_plain(const char *text, size_t max, struct err *e) MUST_USE; /* not empty, no control */
opt_check check_word, check_name, check_command;

/* nearest.c */
struct hint {
	char text[256];
};
const char *nearest(const char *text, const char *const *words); /* NULL: none is near */
struct hint hint(const char *text, const char *const *words);    /* "; did you mean ...?" */
int word_find(const char *const *words, const char *text, struct err *e) MUST_USE; /* index */

/* units.c */
extern const struct unit unit_cores, unit_count, unit_size, unit_duration;

/* path.c, host.c, net.c, rest.c, creds.c */
opt_check check_path, check_mount_point, check_source, check_host, check_entry, check_cidr,
    check_header, check_rules_file, check_any, check_proxy, check_webhook;
opt_check check_url_path;
opt_check check_user, check_image, check_env_name, check_env_value, check_weaker, check_trip;
bool secret_prefix(const char *text);
/* The name of a secret; one that may be a secret itself is not repeated. */
int secret_word_check(struct arena *a, const char *text, const char **out, struct err *e) MUST_USE;
extern const char *const http_methods[]; /* that a rule can name */

/* print.c: limits with their units; reference.c: tables, and one line of help. */
json_t *limits_tree(const struct spec *s);
void reference_keys(struct str *out, const struct opt_table *t);
void reference_members(struct str *out, const char *title, const struct opt_table *t);
void help_row(struct str *out, const struct opt *o);

/* net.c */
void net_clear(struct net_spec *n);

/* yaml.c: the value tree of a document, and the line of each value. */
struct yaml_mark {
	const json_t *parent;
	size_t index, line;
};
struct yaml_doc {
	json_t *root;
	VEC(struct yaml_mark) marks;
};
/* A document of nothing but comments has the root NULL. */
int yaml_load(const char *text, size_t len, struct yaml_doc *out, struct err *e) MUST_USE;
size_t yaml_line(const struct yaml_doc *d, const json_t *parent, size_t index); /* 0: unknown */
void yaml_doc_done(struct yaml_doc *d);
json_t *yaml_plain(const char *text, size_t len); /* what a plain scalar stands for */
