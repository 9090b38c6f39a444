/*
 * spec.h - what a sandbox is: plain data, defaults, validation.
 *
 * A spec is written as CLI flags, JSON or YAML. All three go through the same option
 * tables (opts.h), so they cannot disagree. Pure code: no descriptors, no clock.
 *
 *   spec_init -> spec_flag / spec_json / spec_yaml (any order, later wins)
 *             -> spec_check (cross-field rules) -> spec_resolve (defaults) -> use -> spec_done
 *
 * A key of a document replaces what was said before it (limits: one by one), a flag that holds
 * a list adds to it. After a failure the spec is half filled: only spec_done() it.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

enum net_mode { NET_DENY, NET_ALLOW, NET_LIST };

enum fs_kind { FS_EPHEMERAL, FS_WORKSPACE, FS_RO, FS_OVERLAY };

struct fs_entry {
	enum fs_kind kind;
	const char *src; /* host path (RO, OVERLAY), else NULL */
	const char *at;  /* absolute path inside */
};

/* cpu is in thousandths of a core, times in ms, sizes in bytes, io in bytes per second. */
enum limit_id {
	LIMIT_CPU,
	LIMIT_MEM,
	LIMIT_DISK,
	LIMIT_INODES,
	LIMIT_PIDS,
	LIMIT_WALL,
	LIMIT_IDLE,
	LIMIT_OUTPUT,
	LIMIT_FILES,
	LIMIT_IO,
	LIMIT_COUNT
};

struct limit {
	uint64_t value; /* 0: no limit */
	bool named;     /* the caller asked for it: enforced or refused, never dropped */
};

struct text_pair {
	const char *key, *value;
};

/* VEC(const char *) and VEC(struct text_pair) with a name, so that the tables can point at one. */
struct text_list {
	const char **at;
	size_t len, cap;
};

struct pair_list {
	struct text_pair *at;
	size_t len, cap;
};

struct http_rule {
	const char *host;
	struct text_list methods, paths;
	bool is_ask; /* each request waits for a person */
};

/* An entry of allow, deny and ask: a host rule, or a name that stands for several and has to be
 * expanded before somebody decides by it. */
enum net_entry { NET_HOST, NET_PRESET, NET_SET };

struct net_spec {
	enum net_mode mode;
	struct text_list allow, deny, ask; /* "example.org:443", "preset:pip", "set:NAME" */
	struct text_list cidr, deny_cidr;
	struct text_list headers;          /* "example.org X-Name: text" */
	struct text_list inspect, tls_any; /* hosts */
	struct text_list cache;            /* "pip:example.org": served by the package cache */
	bool is_offline;                   /* packages only, and only from the cache */
	struct pair_list mock;             /* host -> rules file */
	struct pair_list mocks;            /* rules file -> its text */
	VEC(struct http_rule) http;
	struct text_list publish; /* "preset:npm", "npm:example.org": becomes rules of http */
	struct pair_list rate; /* connections, bytes_up, bytes_down, up, down -> text as written */
};

enum profile { PROFILE_DEFAULT, PROFILE_ROOTFUL };

struct spec {
	struct arena arena; /* owns every text below */
	struct net_spec net;
	VEC(struct fs_entry) fs;
	struct pair_list creds; /* name -> source ("" when only named) */
	struct limit limits[LIMIT_COUNT];
	const char *user;    /* "agent" unless set */
	const char *image;   /* NULL until resolved: "host" */
	const char *backend; /* NULL until resolved: "native" */
	const char *workspace;
	enum profile profile;
	bool profile_named;
	struct pair_list env;
	struct text_list services;
	struct text_list setup;
	struct text_list commands; /* gate.commands: held until somebody says yes (trip.h) */
	const char *checkpoint;    /* NULL, "on", "off" or "all" */
	struct text_list allow_weaker;
	bool resolved;
};

void spec_init(struct spec *s);
void spec_done(struct spec *s);

/* One flag as on the command line, without the dashes: spec_flag(s, "mem", "4g", e). */
int spec_flag(struct spec *s, const char *flag, const char *value, struct err *e) MUST_USE;

/* A whole document. Errors name the key, the value and the nearest valid one, YAML the line too. */
int spec_json(struct spec *s, const char *text, size_t len, struct err *e) MUST_USE;
int spec_yaml(struct spec *s, const char *text, size_t len, struct err *e) MUST_USE;
/* A file's content: JSON or YAML by the ending of `name`, else by its first character. */
int spec_document(struct spec *s, const char *name, const char *text, size_t len,
                  struct err *e) MUST_USE;

/* Rules between fields: two mounts at one path, disk larger than memory, ... */
int spec_check(const struct spec *s, struct err *e) MUST_USE;

/* Fills in the defaults; what the caller did not name stays .named == false. */
void spec_resolve(struct spec *s);

/* What an operator adds (spec/config.h). First: defaults for limits that nobody named. */
void spec_default(struct spec *s, const struct limit defaults[LIMIT_COUNT]);
/* Last, after spec_resolve(): a limit that was named is at most this, or the spec is refused; one
 * that was not named is lowered to it. A bound of 0 is none. */
int spec_bound(struct spec *s, const struct limit most[LIMIT_COUNT], struct err *e) MUST_USE;

/* Canonical JSON, one line, no trailing newline. After spec_resolve() it has the defaults too. */
int spec_print(const struct spec *s, struct str *out, struct err *e) MUST_USE;
/* The same as a YAML document with units ("4g", "10m"), for people; spec_yaml() reads it back. */
int spec_print_yaml(const struct spec *s, struct str *out, struct err *e) MUST_USE;

/* "--mem SIZE   memory with page cache and tmpfs, no swap (4g)" ... for `caisson help run`. */
void spec_help(struct str *out);
/* docs/spec.md, whole. */
void spec_reference(struct str *out);

/* True when `name` is a spec flag ("mem", or the short "e"); every one takes a value. */
bool spec_is_flag(const char *name);
/* The flag that was probably meant, or NULL. */
const char *spec_nearest_flag(const char *name);

const char *limit_name(enum limit_id id); /* "cpu", "mem", ... as in allow_weaker and enforced */
void limit_text(enum limit_id id, uint64_t value, char out[32]); /* "4g", "1.5", "10m" */
bool spec_weaker(const struct spec *s, const char *field);       /* it is listed in allow_weaker */

/* What an entry is; *name is then the word behind "preset:" or "set:", else the entry. */
enum net_entry net_entry_kind(const char *entry, const char **name);
bool spec_reads_tls(const struct spec *s); /* for some host TLS ends at the gate */
extern const char *const net_presets[];    /* "pip", ...; ends with NULL */

/* What an imported image may be called: letters, digits, then . _ - : / too; not host, nor
 * with dir: or oci: in front. */
bool image_name_is(const char *text);

/* The image's user by strict rules: name, "uid" or "uid:gid"; nothing is parsed half-way. */
struct user_ref {
	const char *name; /* NULL when numeric */
	uint32_t uid, gid;
	bool has_gid;
};
int user_parse(const char *text, struct user_ref *out, struct err *e) MUST_USE;

/* "4g", "10m", "512": sizes are powers of 1024, durations take ms s m h d and mean seconds else. */
int size_parse(const char *text, uint64_t *out, struct err *e) MUST_USE;
/* "1m/s": bytes in a second. */
#define SPEED_MIN 1024ull
#define SPEED_MAX (1ull << 40)
int speed_parse(const char *text, uint64_t *out, struct err *e) MUST_USE;
int duration_parse(const char *text, uint64_t *out_ms, struct err *e) MUST_USE;
