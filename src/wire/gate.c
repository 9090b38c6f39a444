#include "wire/gate.h"

#include "wire/cache.h"

_Static_assert(sizeof(struct gate_head) == 8, "the body is aligned");
_Static_assert(sizeof(struct gate_record) % 8 == 0, "no padding at the end");
_Static_assert(GATE_RULE_SIZE >= sizeof "allow: " + GATE_NAME_SIZE + sizeof ":65535", "any rule");

/* clang-format off */
static const struct row {
	size_t size, n_fds;
} rows[] = {
	[G_START]  = { sizeof(struct gate_start), GATE_FDS },
	[G_RULES]  = { sizeof(struct gate_rules), 1 },
	[G_CREDIT] = { sizeof(struct gate_credit), 0 },
	[G_ANSWER] = { sizeof(struct gate_answer), 0 },
	[G_UP]     = { 0, 0 },
	[G_CA]     = { sizeof(struct gate_ca), 0 },
	[G_RULED]  = { sizeof(struct gate_ruled), 0 },
	[G_RECORD] = { sizeof(struct gate_record), 0 },
	[G_ASK]    = { sizeof(struct gate_ask), 0 },
	[G_UNASK]  = { sizeof(struct gate_unask), 0 },
	[G_KEY]    = { sizeof(struct gate_key), 0 },
	[G_MARKS]  = { sizeof(struct gate_marks), 0 },
	[G_LOOK]   = { sizeof(struct gate_look), 1 },
};
_Static_assert(COUNT(rows) == G_TYPES, "a type has no row");

static const char *const reasons[] = {
	[GATE_NONE] = "none",
	[GATE_NO_RULE] = "no_rule",
	[GATE_RULE] = "rule",
	[GATE_LITERAL] = "literal",
	[GATE_NAME_MISMATCH] = "name_mismatch",
	[GATE_NO_SNI] = "no_sni",
	[GATE_PROTOCOL] = "protocol",
	[GATE_SPECIAL] = "special",
	[GATE_METADATA] = "metadata",
	[GATE_UNRESOLVED] = "unresolved",
	[GATE_UNREACHABLE] = "unreachable",
	[GATE_BUDGET] = "budget",
	[GATE_SPOOL] = "spool",
	[GATE_ASK_TIMEOUT] = "ask_timeout",
	[GATE_ASK_DENIED] = "ask_denied",
	[GATE_ASK_FULL] = "ask_full",
	[GATE_RELOADED] = "reloaded",
	[GATE_NAME_BAD] = "name_bad",
	[GATE_HTTP_RULE] = "http_rule",
	[GATE_HTTP_BAD] = "http_bad",
	[GATE_TLS] = "tls",
	[GATE_SILENT] = "silent",
	[GATE_OFFLINE] = "offline",
	[GATE_CREDENTIAL] = "credential",
	[GATE_GIT] = "git",
	[GATE_REFLECTED] = "reflected",
	[GATE_CANARY] = "canary",
	[GATE_TOKEN] = "token",
};
_Static_assert(COUNT(reasons) == GATE_REASONS, "a reason has no name");

static const char *const decisions[] = {
	[GATE_ALLOW] = "allow",
	[GATE_DENY] = "deny",
	[GATE_ASKED_DENY] = "ask_deny",
	[GATE_ASKED_ALLOW] = "ask_allow",
};
_Static_assert(COUNT(decisions) == GATE_DECISIONS, "a decision has no name");

static const char *const protos[] = {
	[GATE_UNKNOWN] = "unknown",
	[GATE_PROTO_TLS] = "tls",
	[GATE_PROTO_HTTP] = "http",
	[GATE_PROTO_SSH] = "ssh",
	[GATE_PROTO_TCP] = "tcp",
	[GATE_PROTO_DNS] = "dns",
};
_Static_assert(COUNT(protos) == GATE_PROTOS, "a protocol has no name");
/* clang-format on */

/* Ends with a NUL inside of its field, and no terminal obeys it. */
static bool is_text(const char *text, size_t size)
{
	const char *end = memchr(text, '\0', size);

	for (; end && text < end; text++)
		if (*text < 0x20 || *text > 0x7e)
			return false;
	return end;
}

#define IS_TEXT(field) is_text(field, sizeof(field))

static bool check_content(const struct gate_content *c)
{
	static const uint8_t zero[sizeof c->zero];

	return c->is_partial <= 1 && c->is_stream <= 1 && memcmp(c->zero, zero, sizeof zero) == 0 &&
	       IS_TEXT(c->query_hash) && IS_TEXT(c->body_hash);
}

static bool check_record(const struct gate_record *r)
{
	if (r->kind >= GATE_KINDS || r->decision >= GATE_DECISIONS || r->reason >= GATE_REASONS ||
	    r->proto >= GATE_PROTOS)
		return false;
	if (r->is_v6 > 1 || r->is_terminated > 1 || r->close_by > 3 || r->cache >= CACHE_WORDS)
		return false;
	if ((r->seq == 0 && r->kind != GATE_LOOKUP) || r->unix_ms < 0)
		return false;
	if ((r->kind == GATE_REQUEST || r->kind == GATE_USE) != (r->request > 0))
		return false;
	return IS_TEXT(r->name) && IS_TEXT(r->sni) && IS_TEXT(r->alpn) && IS_TEXT(r->method) &&
	       IS_TEXT(r->path) && IS_TEXT(r->rule) && IS_TEXT(r->secret) &&
	       check_content(&r->content);
}

/* One certificate as PEM, and nothing that a file of them would read as something else. */
static bool check_ca(const struct gate_ca *c)
{
	static const char first[] = "-----BEGIN CERTIFICATE-----\n";
	static const char last[] = "-----END CERTIFICATE-----\n";
	const char *end = memchr(c->pem, '\0', sizeof c->pem);
	size_t len = end ? (size_t)(end - c->pem) : 0, head = strlen(first), tail = strlen(last);

	if (c->zero || len < head + tail || memcmp(c->pem, first, head) != 0 ||
	    memcmp(end - tail, last, tail) != 0)
		return false;
	for (const char *p = c->pem + head; p < end - tail; p++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n",
		            *p))
			return false;
	return true;
}

static bool check_ruled(const struct gate_ruled *r)
{
	return r->is_refused <= 1 && r->zero == 0 && IS_TEXT(r->reason);
}

static bool check_ask(const struct gate_ask *a)
{
	return a->kind < GATE_ASK_KINDS && a->is_first <= 1 && a->seq > 0 && IS_TEXT(a->name) &&
	       IS_TEXT(a->rule) && IS_TEXT(a->method) && IS_TEXT(a->path) && IS_TEXT(a->secret) &&
	       IS_TEXT(a->query) && IS_TEXT(a->refs) && check_content(&a->content);
}

static bool check_body(const struct gate_packet *p)
{
	switch ((enum gate_type)p->head.type) {
	case G_START:
		return IS_TEXT(p->start.id) && p->start.id[0];
	case G_RULES:
		return p->rules.zero == 0;
	case G_CREDIT:
		return p->credit.zero == 0;
	case G_ANSWER:
		return p->answer.is_allowed <= 1 && p->answer.zero == 0;
	case G_CA:
		return check_ca(&p->ca);
	case G_RULED:
		return check_ruled(&p->ruled);
	case G_RECORD:
		return check_record(&p->record);
	case G_ASK:
		return check_ask(&p->ask);
	case G_MARKS:
		return marks_check(&p->marks) && IS_TEXT(p->marks.name);
	case G_KEY:
	case G_LOOK:
	case G_UNASK:
	case G_UP:
		return true;
	case G_TYPES:
		break;
	}
	return false;
}

bool gate_check(const struct gate_packet *p, size_t n, size_t n_fds)
{
	if (n < sizeof p->head || p->head.type >= G_TYPES)
		return false;
	const struct row *row = &rows[p->head.type];

	return p->head.len == row->size && n == sizeof p->head + row->size && n_fds == row->n_fds &&
	       check_body(p);
}

size_t gate_size(const struct gate_packet *p)
{
	return sizeof p->head + (p->head.type < G_TYPES ? rows[p->head.type].size : 0);
}

void gate_plain(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

const char *gate_reason_name(enum gate_reason r)
{
	return (unsigned)r < COUNT(reasons) ? reasons[r] : "unknown";
}

const char *gate_decision_name(enum gate_decision d)
{
	return (unsigned)d < COUNT(decisions) ? decisions[d] : "unknown";
}

const char *gate_proto_name(enum gate_proto p)
{
	return (unsigned)p < COUNT(protos) ? protos[p] : "unknown";
}
