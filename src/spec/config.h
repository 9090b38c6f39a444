/*
 * config.h - what an operator says about a daemon: the config file and the flags of `caisson
 * serve`.
 *
 * One table (config.c) for the file, the flags, their checks and docs/config.md. The file is read
 * by whoever starts a daemon; launcher and daemon get flags.
 *
 *   config_init -> config_yaml / config_flag -> config_add (flags over file) -> config_check
 *               -> config_resolve -> use -> config_done
 *
 * A number of 0, a path of NULL and an empty list were not said. After a failure a config is half
 * filled: only config_done() it.
 */
#pragma once

#include "spec/spec.h"

#define CONFIG_LISTEN_MAX 8      /* addresses */
#define CONFIG_HOST_PATHS_MAX 64 /* folders that tokens may name */
#define CONFIG_SETS_MAX 32       /* named sets of hosts */
#define CONFIG_SET_HOSTS_MAX 200 /* of one set: it is one word of a command line */
#define CONFIG_GRANT_MAX 64      /* ranges */
#define CONFIG_SECRETS_MAX 256   /* commands that print one */
#define CONFIG_TEXTS_MAX 320     /* of config_texts(): all lists full, all numbers named */

/* What is counted for a tenant: of sandboxes that are not gone SANDBOXES and DISK, of those that
 * live the rest; and workspaces. */
enum quota_id {
	QUOTA_SANDBOXES,
	QUOTA_PROCESSES,
	QUOTA_CPU, /* thousandths of a core */
	QUOTA_MEM,
	QUOTA_PIDS,
	QUOTA_DISK,
	QUOTA_WORKSPACES,
	QUOTA_COUNT
};

/* Sums, or the ceilings for them; a ceiling of 0 is none. */
struct quota {
	uint64_t of[QUOTA_COUNT];
};

const char *quota_name(enum quota_id id);                        /* "mem" */
void quota_text(enum quota_id id, uint64_t value, char out[32]); /* "4g" */

/* How much workspaces may take; bytes, percent. 0: no bound, or the usual. */
struct config_store {
	uint64_t max, high, low, workspace, layers;
};
#define STORE_HIGH 90
#define STORE_LOW 80
#define STORE_LAYERS 64

/* What holds for the network of every sandbox. */
struct config_net {
	struct pair_list presets, sets; /* name -> hosts, separated by commas */
	struct text_list grant;         /* special-purpose ranges that anybody may name */
	struct text_list builds;        /* what the steps of templates reach */
	const char *proxy;              /* through which the gate goes; NULL: none */
	const char *ca;                 /* PEM file of whom it trusts besides the host's; or NULL */
	const char *key;                /* where the key of secrets is: "env:NAME"; NULL: a file */
	const char *cache;              /* how much packages may take: "10g", "off"; NULL: 10g */
	uint64_t ask_ms;                /* how long a connection waits for a person */
};

uint64_t config_cache_bytes(const struct config_net *c); /* 0: there is no cache */

struct config {
	struct arena arena; /* owns every text below */
	const char *state, *run;
	struct text_list listen, host_paths;
	struct config_tls {
		const char *cert, *key;
	} tls;
	uint64_t service_id, idle_exit_ms, ttl_ms, keep_records_ms, keep_trash_ms;
	uint64_t keep_ledger_bytes, ledger_burst;
	const char *domain;         /* of hosts that are sandboxes (src/e2b); NULL: none */
	const char *ports;          /* that tokens may name: "20000-29999", "none" */
	const char *process_events; /* on or off: programs that commands start are in the ledger */
	const char *log;            /* the least that is said: debug, info, warn or error */
	struct config_net net;
	struct config_approvals {
		const char *webhook, *key; /* both or none */
	} approvals;
	struct pair_list secrets; /* name -> the command that prints its value */
	struct quota quota;       /* per tenant */
	struct config_store store;
	struct spec defaults, most; /* of these only the limits */
};

/* "20000-29999", "none" (then first is 0). -1: neither. */
struct config_ports {
	uint16_t first, last;
};
int config_ports(const char *text, struct config_ports *out, struct err *e) MUST_USE;

void config_init(struct config *c);
void config_done(struct config *c);

/* A whole file. One that says nothing is fine. */
int config_yaml(struct config *c, const char *text, size_t len, struct err *e) MUST_USE;
/* One flag without its dashes: "ttl", "1h"; "quota", "mem=4g". */
int config_flag(struct config *c, const char *flag, const char *value, struct err *e) MUST_USE;
bool config_is_flag(const char *flag);
const char *config_nearest_flag(const char *name); /* that was probably meant, or NULL */
/* What `over` says wins: numbers one by one, lists whole. */
int config_add(struct config *c, const struct config *over, struct err *e) MUST_USE;
int config_check(const struct config *c, struct err *e) MUST_USE; /* rules between keys */
void config_resolve(struct config *c);                            /* fills in the defaults */

/* Every key in order, "quota.mem" for one inside another; NULL after the last. */
const char *config_key(size_t i, char out[64]);
/* Its value as one writes it in the file, a list with commas; false when it was not said. */
bool config_value(const struct config *c, const char *key, struct str *out);
/* All that was said as flags: "--ttl", "1h", ...; returns how many texts. They belong to the
 * config. */
size_t config_texts(struct config *c, const char *out[CONFIG_TEXTS_MAX]);

void config_help(struct str *out);      /* the flags, as spec_help() prints them */
void config_reference(struct str *out); /* docs/config.md, whole */
