/*
 * rules.h - what a sandbox may reach, compiled, and the one function that decides.
 *
 * Pure: the gate asks it at every stage of a connection, the daemon asks it for `caisson why`, and
 * both get the same answer. The document is described in wire/gate.h.
 *
 *   host      "example.org", "*.example.org" (one label), "**.example.org" (one or more),
 *             "*" or "**" alone: every name. The bare domain is only covered when it is written.
 *   port      without one a rule covers all. On 443 only TLS is spoken unless the rule says :443.
 *   order     deny, mock, http, allow (or mode allow), ask; nothing of these: denied.
 *   name      TLS must say it in SNI, HTTP in Host. Without SNI only hosts of tls_any.
 *   address   a cidr rule, or mode allow; and the special-purpose filter. A name that is denied,
 *             or that has rules of its own, cannot be reached around them by its address.
 *   addresses deny_cidr holds for those of names too, just before they are dialled
 *   headers   TLS of their hosts ends at the gate, which says them instead of the client
 *   cache     TLS of its hosts ends at the gate. With offline they are all that can be reached, and
 *             nobody is dialled for them.
 *   creds     TLS of their hosts ends at the gate, on every port; only HTTP is spoken there.
 *   special   addresses of special.h only where `grant` covers them, metadata never.
 */
#pragma once

#include "spec/bind.h"
#include "spec/spec.h"
#include "wire/canary.h"
#include "wire/gate.h"
#include "wire/hostname.h"
#include "wire/pkgmeta.h"

enum host_kind { HOST_EVERY, HOST_EXACT, HOST_ONE, HOST_DEEP };

struct host_rule {
	enum host_kind kind;
	const char *name; /* EXACT: itself; ONE, DEEP: what follows the star and its dot */
	size_t len;
	uint16_t port;    /* 0: all */
	const char *text; /* as written */
};

/* "10.0.0.0/8:5432" */
struct range_rule {
	uint8_t addr[16];
	bool is_v6;
	uint8_t bits;
	uint16_t port;
	const char *text;
};

struct request_rule {
	struct host_rule host;
	struct text_list methods, paths; /* empty: all */
	bool is_ask;                     /* wins over one that is not */
};

struct mock_rule {
	struct host_rule host;
	const char *file, *content;
};

/* A field that is said in every request to a host. */
struct header_rule {
	struct host_rule host;
	const char *name, *value;
	const char *text; /* as written */
};

/* A host whose packages the cache serves. */
struct cache_rule {
	struct host_rule host;
	enum pkg_kind kind;
};

/* A secret that this sandbox may use. The value is sealed here, and opened elsewhere. */
struct cred_rule {
	const char *name;                        /* of the secret */
	const char *tenant, *bind_text, *sealed; /* base64 */
	const char *placeholder;                 /* what stands for it inside; NULL: nothing does */
	int64_t until_ms;                        /* since 1970; 0: no end */
	struct bind bind;
	struct host_rule hosts[BIND_HOSTS_MAX]; /* of bind, with their ports */
	size_t n_hosts;
};

struct cred_list {
	struct cred_rule *at;
	size_t len, cap;
};

struct host_rules {
	struct host_rule *at;
	size_t len, cap;
};

struct range_rules {
	struct range_rule *at;
	size_t len, cap;
};

/* 0: no limit */
struct rates {
	uint32_t connections; /* new ones in connections_ms */
	uint32_t connections_ms;
	uint64_t bytes_up, bytes_down; /* in the life of the sandbox */
	uint64_t up, down;             /* bytes in a second */
};

enum rules_proxy { PROXY_NONE, PROXY_HTTP, PROXY_SOCKS5 };

struct rules {
	struct arena arena; /* owns every text below */
	enum net_mode mode;
	enum rules_proxy proxy;
	struct host_rules allow, deny, ask, inspect, tls_any;
	struct range_rules cidr, deny_cidr, grant, own;
	VEC(struct header_rule) headers;
	VEC(struct request_rule) http;
	VEC(struct mock_rule) mock;
	VEC(struct cache_rule) cache;
	struct cred_list creds;
	struct canaries *canaries; /* what may not be in anything that leaves; NULL: none */
	struct rates rates;
	const char *proxy_host; /* a name or an address */
	uint32_t ask_ms;
	uint16_t proxy_port;
	bool is_offline;
};

/* Reads a rules document. On failure *r is what it was: a bad reload keeps the old rules. */
int rules_read(struct rules *r, const char *json, size_t n, struct err *e) MUST_USE;
/* Another proxy than the document says; NULL: none. The text was checked by check_proxy(). */
void rules_proxy_by(struct rules *r, const char *text);
void rules_done(struct rules *r);

struct rules_addr {
	uint8_t at[16]; /* an IPv4 one in the first four */
	bool is_v6;
	uint16_t port;
};

/* The gate's own interfaces: special as well, since what listens there is the host. Replaces what
 * was said before. */
void rules_own(struct rules *r, const struct rules_addr *at, size_t n);

enum rules_stage {
	STAGE_LOOKUP,  /* a name was asked for; no port yet */
	STAGE_CONNECT, /* a connection came */
	STAGE_BYTES,   /* and its first bytes say what it is */
};

struct question {
	enum rules_stage stage;
	const char *name;     /* canonical (hostname_read); NULL: the client used an address */
	struct rules_addr to; /* what the client connected to; with a name only the port counts */
	bool is_answered;     /* a person said yes: ask is allow */
	/* STAGE_BYTES */
	enum gate_proto proto; /* TLS, HTTP, SSH or TCP */
	struct said said;      /* SNI of TLS, Host of HTTP */
};

enum verdict_what { VERDICT_DENY, VERDICT_ALLOW, VERDICT_ASK };

struct verdict {
	enum verdict_what what;
	enum gate_reason reason;   /* of a denial; else GATE_NONE */
	char rule[GATE_RULE_SIZE]; /* "deny: *.example.org:443": what decided, or was about to; "":
	                              nothing covers it */
	bool is_terminated;        /* TLS ends at the gate, and only HTTP is spoken */
	bool has_http;             /* every request goes through rules_http() */
	const struct mock_rule *mock; /* answered by the gate, nothing is dialled; NULL: not so */
	enum pkg_kind cache;          /* the package cache is asked first; PKG_NONE: not so */
};

/* The one decision. */
struct verdict rules_decide(const struct rules *r, const struct question *q);

/* How the registry of that name speaks, when the cache serves it. Port 0: on any. */
enum pkg_kind rules_cached(const struct rules *r, const char *name, uint16_t port);

/* DNS: the name has an address here. The same as STAGE_LOOKUP. */
bool rules_resolves(const struct rules *r, const char *name);

/* The rule of headers for that field of a request, in whatever case; NULL: none. */
const struct header_rule *rules_header(const struct rules *r, const char *name, uint16_t port,
                                       struct span field);
bool rules_has_headers(const struct rules *r, const char *name, uint16_t port);

/* An upstream address, just before it is dialled; *why is GATE_SPECIAL, GATE_METADATA or GATE_RULE
 * (deny_cidr). */
bool rules_may_dial(const struct rules *r, const struct rules_addr *to, enum gate_reason *why);

/* One request of a connection that was allowed, terminated or in plain text; `said` is its own
 * Host, `path` is from http_target_normal(), or NULL when that refused (which only matters where a
 * rule of http with paths applies). CONNECT and TRACE are never allowed; VERDICT_ASK: a rule says
 * so, and the reason is GATE_NONE. */
struct verdict rules_http(const struct rules *r, const struct question *q, const char *method,
                          const char *path);

/* Some secret is bound to that name, on whatever port. */
bool rules_is_bound(const struct rules *r, const char *name);
/* The same, and for that path of it (NULL: it could be read in two ways): no other credential goes
 * there. */
bool rules_is_exclusive(const struct rules *r, const char *name, const char *path);
/* Some secret that is bound to that name wants no request there but those of a binding. */
bool rules_is_only_bound(const struct rules *r, const char *name);
/* Method or path of a request to that host decide something: a rule of http, or a binding. */
bool rules_judges_requests(const struct rules *r, const char *name, uint16_t port);
/* The secret is for this host and port; for this request of it, at this time. `path` as in
 * rules_http(); NULL: none. Git is not judged here. */
bool cred_has_host(const struct cred_rule *c, const char *name, uint16_t port);
bool cred_has_request(const struct cred_rule *c, const char *method, const char *path,
                      int64_t now_ms);

/* `*` in a segment: any of its bytes; alone: one segment that is not empty. `**` alone: any number
 * of segments, at the end at least one ("/a/" has an empty one, "/a" none). */
bool path_matches(const char *pattern, const char *path);

/* For `caisson why`. `rule`: what decides, or "" ; `narrowest`: the rule to add, or "" when it is
 * allowed already. With a deny rule in the way the answer is that rule and no rule to add. */
struct verdict rules_explain(const struct rules *r, const char *name, uint16_t port,
                             struct str *rule, struct str *narrowest);

/* True when everything that `next` allows is allowed by `now` too. In doubt false. */
bool rules_tightens(const struct rules *now, const struct rules *next);
