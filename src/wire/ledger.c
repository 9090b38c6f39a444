#include "wire/ledger.h"

#include "wire/hash.h"

#define HASH_CHARS (LEDGER_HASH_SIZE - 1)
#define FILE_DIGITS 20
#define FILE_END ".jsonl"

/* ---- kinds ---------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
	const char *name;
	bool is_own, is_synced;
} kinds[] = {
	[LEDGER_SEGMENT]           = { "ledger.segment",     true,  false },
	[LEDGER_CHECKPOINT]        = { "ledger.checkpoint",  true,  false },
	[LEDGER_HEADS]             = { "ledger.heads",       true,  false },
	[LEDGER_SEALED]            = { "ledger.sealed",      true,  false },
	[LEDGER_DAMAGED]           = { "ledger.damaged",     true,  false },
	[LEDGER_PRUNED]            = { "ledger.pruned",      true,  false },
	[LEDGER_SUM]               = { "ledger.sum",         true,  false },
	[LEDGER_LOST]              = { "ledger.lost",        false, true  },
	[LEDGER_DAEMON_STARTED]    = { "daemon.started",     false, false },
	[LEDGER_DAEMON_RECOVERED]  = { "daemon.recovered",   false, false },
	[LEDGER_DAEMON_STOPPED]    = { "daemon.stopped",     false, false },
	[LEDGER_SANDBOX_CREATED]   = { "sandbox.created",    false, false },
	[LEDGER_SANDBOX_STATE]     = { "sandbox.state",      false, false },
	[LEDGER_SANDBOX_GONE]      = { "sandbox.gone",       false, false },
	[LEDGER_EXEC_STARTED]      = { "exec.started",       false, false },
	[LEDGER_EXEC_ENDED]        = { "exec.ended",         false, false },
	[LEDGER_EXEC_OUTPUT]       = { "exec.output",        false, false },
	[LEDGER_PROCESS_STARTED]   = { "process.started",    false, false },
	[LEDGER_NET_CONNECTION]    = { "net.connection",     false, false },
	[LEDGER_NET_REQUEST]       = { "net.request",        false, false },
	[LEDGER_NET_LOOKUP]        = { "net.lookup",         false, false },
	[LEDGER_POLICY_CHANGED]    = { "policy.changed",     false, true  },
	[LEDGER_WORKSPACE_CREATED] = { "workspace.created",  false, false },
	[LEDGER_WORKSPACE_FORKED]  = { "workspace.forked",   false, false },
	[LEDGER_WORKSPACE_CHANGED] = { "workspace.changed",  false, false },
	[LEDGER_WORKSPACE_FILES]   = { "workspace.files",    false, false },
	[LEDGER_WORKSPACE_MOVED]   = { "workspace.moved",    false, false },
	[LEDGER_WORKSPACE_REMOVED] = { "workspace.removed",  false, false },
	[LEDGER_GIT_COMMITTED]     = { "git.committed",      false, true  },
	[LEDGER_GIT_MERGED]        = { "git.merged",         false, true  },
	[LEDGER_GIT_PUSHED]        = { "git.pushed",         false, true  },
	[LEDGER_GIT_PROPOSED]      = { "git.proposed",       false, true  },
	[LEDGER_APPLIED]           = { "workspace.applied",  false, true  },
	[LEDGER_EXPORTED]          = { "workspace.exported", false, true  },
	[LEDGER_COLLECTED]         = { "run.collected",      false, true  },
	[LEDGER_SECRET_USED]       = { "secret.used",        false, true  },
	[LEDGER_SECRET_CHANGED]    = { "secret.changed",     false, true  },
	[LEDGER_SECRET_CANARY]     = { "secret.canary",      false, true  },
	[LEDGER_SECRET_MASKED]     = { "secret.masked",      false, true  },
	[LEDGER_APPROVAL_ASKED]    = { "approval.asked",     false, true  },
	[LEDGER_APPROVAL_DECIDED]  = { "approval.decided",   false, true  },
	[LEDGER_IMAGE_ADDED]       = { "image.added",        false, false },
	[LEDGER_IMAGE_REMOVED]     = { "image.removed",      false, false },
	[LEDGER_REPO_ADDED]        = { "repo.added",         false, false },
	[LEDGER_REPO_REFRESHED]    = { "repo.refreshed",     false, false },
	[LEDGER_REPO_REMOVED]      = { "repo.removed",       false, false },
	[LEDGER_TOKEN_MADE]        = { "token.made",         false, true  },
	[LEDGER_TOKEN_REVOKED]     = { "token.revoked",      false, true  },
	[LEDGER_PORT_OPENED]       = { "port.opened",        false, true  },
	[LEDGER_PORT_CLOSED]       = { "port.closed",        false, false },
};
/* clang-format on */
_Static_assert(COUNT(kinds) == LEDGER_KINDS, "a kind has no name");

const char *ledger_kind_name(enum ledger_kind kind)
{
	return kinds[kind].name;
}

enum ledger_kind ledger_kind_of(struct span name)
{
	enum ledger_kind k = 0;

	while (k < LEDGER_KINDS && !span_is(name, kinds[k].name))
		k++;
	return k;
}

bool ledger_is_own(enum ledger_kind kind)
{
	return kinds[kind].is_own;
}

bool ledger_is_synced(enum ledger_kind kind)
{
	return kinds[kind].is_synced;
}

/* ---- print ---------------------------------------------------------------------------- */

static bool is_name_char(char c)
{
	return c > ' ' && c < 0x7f && c != '"' && c != '\\';
}

static bool is_name(const char *text)
{
	size_t n = 0;

	while (text && n < LEDGER_NAME_SIZE && is_name_char(text[n]))
		n++;
	return !text || (n < LEDGER_NAME_SIZE && !text[n]);
}

static bool is_data(const char *data)
{
	size_t n = strlen(data);

	if (n < 2 || n > LEDGER_DATA_MAX || data[0] != '{' || data[n - 1] != '}')
		return false;
	for (size_t i = 0; i < n; i++)
		if (data[i] < ' ' || data[i] > '~')
			return false;
	return true;
}

static void add_member(struct str *out, const char *name, const char *value)
{
	if (!value || !value[0])
		return;
	str_add(out, ",\"");
	str_add(out, name);
	str_add(out, "\":\"");
	str_add(out, value);
	str_add(out, "\"");
}

bool ledger_print(struct str *out, const struct ledger_event *ev, const struct ledger_place *at,
                  char hash[LEDGER_HASH_SIZE])
{
	size_t begin = out->len;

	if (!is_name(ev->tenant) || !is_name(ev->sandbox) || !is_name(ev->workspace) ||
	    !is_name(ev->process) || !is_name(ev->actor) || !is_name(ev->src) || !is_data(ev->data))
		return false;
	str_addf(out, "{\"seq\":%llu,\"ts\":%lld,\"kind\":\"%s\"", (unsigned long long)at->seq,
	         (long long)at->ts_ms, kinds[ev->kind].name);
	add_member(out, "tenant", ev->tenant);
	add_member(out, "sandbox", ev->sandbox);
	if (at->link_seq)
		str_addf(out, ",\"link\":{\"seq\":%llu,\"prev\":\"%s\"}",
		         (unsigned long long)at->link_seq, at->link_prev);
	add_member(out, "workspace", ev->workspace);
	add_member(out, "process", ev->process);
	add_member(out, "actor", ev->actor);
	add_member(out, "src", ev->src);
	str_add(out, ",\"data\":");
	str_add(out, ev->data);
	add_member(out, "prev", at->prev);
	if (out->overflow)
		return false;
	hash_of((struct span){ out->data + begin, out->len - begin }, hash);
	add_member(out, "hash", hash);
	str_add(out, "}\n");
	return !out->overflow;
}

/* ---- parse ---------------------------------------------------------------------------- */

static bool take(struct span *s, const char *text)
{
	size_t n = strlen(text);

	if (s->len < n || memcmp(s->at, text, n) != 0)
		return false;
	*s = span_after(*s, n);
	return true;
}

/* As a printer writes it: no sign, no zero in front. */
static bool take_number(struct span *s, uint64_t *out)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; n < s->len && n < 19 && s->at[n] >= '0' && s->at[n] <= '9'; n++)
		v = v * 10 + (uint64_t)(s->at[n] - '0');
	if (n == 0 || (n > 1 && s->at[0] == '0'))
		return false;
	*s = span_after(*s, n);
	*out = v;
	return true;
}

static bool take_name(struct span *s, struct span *out)
{
	size_t n = 0;

	while (n < s->len && n < LEDGER_NAME_SIZE && is_name_char(s->at[n]))
		n++;
	*out = (struct span){ s->at, n };
	*s = span_after(*s, n);
	return n > 0 && n < LEDGER_NAME_SIZE && take(s, "\"");
}

static bool take_hash(struct span *s, struct span *out)
{
	size_t n = 0;

	while (n < s->len && n < HASH_CHARS &&
	       ((s->at[n] >= '0' && s->at[n] <= '9') || (s->at[n] >= 'a' && s->at[n] <= 'f')))
		n++;
	*out = (struct span){ s->at, n };
	*s = span_after(*s, n);
	return n == HASH_CHARS && take(s, "\"");
}

/* Not there is fine. */
static bool take_member(struct span *s, const char *begin, struct span *out)
{
	return !take(s, begin) || take_name(s, out);
}

/* The end has a fixed length, so that what is in `data` need not be understood. */
static bool take_end(struct span *s, struct ledger_line *l)
{
	static const char prev[] = ",\"prev\":\"", hash[] = ",\"hash\":\"";
	const size_t n = sizeof prev - 1 + HASH_CHARS + 1 + sizeof hash - 1 + HASH_CHARS + 2;

	if (s->len < n + 2)
		return false;
	struct span end = span_after(*s, s->len - n);

	l->data = (struct span){ s->at, s->len - n };
	return take(&end, prev) && take_hash(&end, &l->prev) && take(&end, hash) &&
	       take_hash(&end, &l->hash) && take(&end, "}") && end.len == 0;
}

static bool is_data_span(struct span d)
{
	bool is_good =
	    d.len >= 2 && d.len <= LEDGER_DATA_MAX && d.at[0] == '{' && d.at[d.len - 1] == '}';

	for (size_t i = 0; i < d.len; i++)
		is_good &= d.at[i] >= ' ' && d.at[i] <= '~';
	return is_good;
}

int ledger_parse(struct span line, struct ledger_line *out)
{
	struct ledger_line l = { 0 };
	struct span s = line;
	uint64_t ts = 0;

	bool is_good = line.len <= LEDGER_LINE_MAX && take(&s, "{\"seq\":") &&
	               take_number(&s, &l.seq) && take(&s, ",\"ts\":") && take_number(&s, &ts) &&
	               take(&s, ",\"kind\":\"") && take_name(&s, &l.kind) &&
	               l.kind.len < LEDGER_KIND_SIZE &&
	               take_member(&s, ",\"tenant\":\"", &l.tenant) &&
	               take_member(&s, ",\"sandbox\":\"", &l.sandbox);

	if (is_good && take(&s, ",\"link\":{\"seq\":"))
		is_good = l.sandbox.at && take_number(&s, &l.link_seq) && l.link_seq > 0 &&
		          take(&s, ",\"prev\":\"") && take_hash(&s, &l.link_prev) && take(&s, "}");
	is_good = is_good && take_member(&s, ",\"workspace\":\"", &l.workspace) &&
	          take_member(&s, ",\"process\":\"", &l.process) &&
	          take_member(&s, ",\"actor\":\"", &l.actor) &&
	          take_member(&s, ",\"src\":\"", &l.src) && take(&s, ",\"data\":") &&
	          take_end(&s, &l) && is_data_span(l.data);
	if (!is_good || l.seq == 0)
		return -1;
	l.ts_ms = (int64_t)ts;
	l.hashed = (size_t)(l.hash.at - line.at) - strlen(",\"hash\":\"");
	*out = l;
	return 0;
}

bool ledger_hash_holds(struct span line, const struct ledger_line *l)
{
	char hash[LEDGER_HASH_SIZE];

	hash_of((struct span){ line.at, l->hashed }, hash);
	return span_is(l->hash, hash);
}

/* ---- files ---------------------------------------------------------------------------- */

void ledger_file_name(uint64_t first_seq, char out[LEDGER_FILE_SIZE])
{
	snprintf(out, LEDGER_FILE_SIZE, "%0*llu" FILE_END, FILE_DIGITS,
	         (unsigned long long)first_seq);
}

uint64_t ledger_file_seq(const char *name)
{
	uint64_t v = 0;

	for (int i = 0; i < FILE_DIGITS; i++) {
		if (name[i] < '0' || name[i] > '9' || v > UINT64_MAX / 100)
			return 0;
		v = v * 10 + (uint64_t)(name[i] - '0');
	}
	return strcmp(name + FILE_DIGITS, FILE_END) == 0 ? v : 0;
}

/* ---- packets -------------------------------------------------------------------------- */

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) && is_name(text);
}

bool ledger_hello_check(const struct ledger_hello *h, size_t n)
{
	if (n != sizeof *h || h->type != LEDGER_HELLO || h->version != LEDGER_VERSION ||
	    !memchr(h->life, '\0', sizeof h->life) || !h->life[0])
		return false;
	return strspn(h->life, "0123456789abcdef") == strlen(h->life);
}

bool ledger_append_check(const struct ledger_append *a, size_t n)
{
	return n > sizeof *a && n <= LEDGER_PACKET_MAX && a->type == LEDGER_APPEND &&
	       a->kind < LEDGER_KINDS && !kinds[a->kind].is_own && a->num > 0 &&
	       is_text(a->tenant, sizeof a->tenant) && is_text(a->sandbox, sizeof a->sandbox) &&
	       is_text(a->workspace, sizeof a->workspace) &&
	       is_text(a->process, sizeof a->process) && is_text(a->actor, sizeof a->actor) &&
	       strnlen(a->data, n - sizeof *a) == n - sizeof *a - 1 && is_data(a->data);
}

bool ledger_ack_check(const struct ledger_ack *a, size_t n)
{
	return n == sizeof *a && a->type == LEDGER_ACK && a->synced <= a->written &&
	       memchr(a->life, '\0', sizeof a->life);
}

bool ledger_read_check(const struct ledger_read *r, size_t n)
{
	return n == sizeof *r && r->type == LEDGER_READ;
}

bool ledger_attest_check(const struct ledger_attest *a, size_t n)
{
	return n == sizeof *a && a->type == LEDGER_ATTEST && is_text(a->tenant, sizeof a->tenant) &&
	       a->tenant[0] && is_text(a->workspace, sizeof a->workspace) && a->workspace[0];
}

bool ledger_file_check(const struct ledger_file *f, size_t n, size_t n_fds)
{
	return n == sizeof *f && f->type == LEDGER_FILE && n_fds <= 1 &&
	       (f->next == 0 || f->next > f->first);
}
