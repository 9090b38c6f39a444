/*
 * verb_events.c - the ledger: what crossed the wall (events), and whether it is whole (--verify).
 */
#include <time.h>
#include <unistd.h>

#include "cli/address.h"
#include "cli/otlp.h"
#include "cli/verbs.h"
#include "io/program.h"
#include "wire/ledger_export.h"
#include "wire/ledger_text.h"

#define PATH_BYTES_MAX 8192

struct events_opts {
	struct verb_opts common;
	bool is_followed, is_verified;
	const char *sandbox, *workspace, *process, *since, *format, *otlp, *cursor;
	struct flag_list kinds;
	struct flag_number after;
	const char *ledger, *key, *expect;
	struct flag_number from;
};

enum format { FORMAT_TEXT, FORMAT_JSONL, FORMAT_OCSF, FORMAT_OTLP, FORMATS };

static const char *const formats[] = { "text", "jsonl", "ocsf", "otlp" };
_Static_assert(COUNT(formats) == FORMATS, "a format has no name");

/* ---- one record ----------------------------------------------------------------------- */

static void add_time(struct str *out, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char text[32];

	localtime_r(&seconds, &tm);
	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
	str_addf(out, "%s.%03d", text, (int)(ms % 1000));
}

/* "7  2026-01-31 12:00:00.250  exec.started  sb_… px_…  {…}": ASCII, as the ledger has it. */
static void print_record(const struct ledger_line *l, struct str *out)
{
	const struct span places[] = { l->workspace, l->sandbox, l->process, l->actor };

	str_addf(out, "%llu  ", (unsigned long long)l->seq);
	add_time(out, l->ts_ms);
	str_addf(out, "  %-18.*s", (int)l->kind.len, l->kind.at);
	for (size_t i = 0; i < COUNT(places); i++)
		if (places[i].at)
			str_addf(out, " %.*s", (int)places[i].len, places[i].at);
	str_addf(out, "  %.*s\n", (int)l->data.len, l->data.at);
}

static int print_as(json_t *value, struct err *e)
{
	AUTO(str_done) struct str out = { .max = 4ul * LEDGER_LINE_MAX };

	if (!value)
		return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: a record");
	ledger_text(value, &out);
	json_decref(value);
	str_add(&out, "\n");
	return print_text(&out, e);
}

/* The strict parser lets no byte through that a terminal acts on. */
static int take_record(void *arg, struct span line, struct err *e)
{
	const enum format *format = arg;
	AUTO(str_done) struct str out = { .max = 2ul * LEDGER_LINE_MAX };
	struct ledger_line l;

	if (ledger_parse(line, &l) < 0)
		return err_new(e, ERR_INTERNAL, "the daemon's answer is malformed: a record");
	switch (*format) {
	case FORMAT_OCSF:
		return print_as(ledger_ocsf(line), e);
	case FORMAT_OTLP:
		return print_as(ledger_otlp_request(json_pack("[o]", ledger_otlp(line))), e);
	case FORMAT_JSONL:
		str_addn(&out, line.at, line.len);
		str_add(&out, "\n");
		break;
	case FORMAT_TEXT:
	case FORMATS:
		print_record(&l, &out);
		break;
	}
	return print_text(&out, e);
}

/* ---- asking --------------------------------------------------------------------------- */

/* "10m" ago, seconds since 1970, or a day and perhaps a time: 2026-01-31T12:00:00. */
static int since_ms(const char *text, uint64_t *out, struct err *e)
{
	static const struct {
		char unit;
		uint64_t ms;
	} units[] = { { 's', 1000 }, { 'm', 60000 }, { 'h', 3600000 }, { 'd', 86400000 } };
	char *end;
	unsigned long long n = strtoull(text, &end, 10);
	uint64_t now = (uint64_t)time(NULL) * 1000;
	struct tm tm = { .tm_isdst = -1 };

	for (size_t i = 0; i < COUNT(units) && end != text; i++)
		if (end[0] == units[i].unit && !end[1] && n <= now / units[i].ms) {
			*out = now - n * units[i].ms;
			return 0;
		}
	if (end != text && !*end && n < (1ull << 40)) {
		*out = n * 1000;
		return 0;
	}
	const char *rest = strptime(text, "%Y-%m-%d", &tm);

	if (rest && *rest)
		rest = strptime(rest, "T%H:%M:%S", &tm);
	if (!rest || *rest)
		return err_new(e, ERR_INVALID,
		               "--since: 10m, 2h, 3d, seconds since 1970, or 2026-01-31T12:00:00");
	*out = (uint64_t)mktime(&tm) * 1000;
	return 0;
}

static int make_path(const struct events_opts *x, uint64_t after_seq, struct str *path,
                     struct err *e)
{
	AUTO(str_done) struct str kinds = { .max = 1024 };
	char after[32], since[32] = "0";
	uint64_t ms = 0;

	if (x->since && since_ms(x->since, &ms, e) < 0)
		return -1;
	snprintf(after, sizeof after, "%llu", (unsigned long long)after_seq);
	snprintf(since, sizeof since, "%llu", (unsigned long long)ms);
	for (size_t i = 0; i < x->kinds.len; i++)
		str_addf(&kinds, "%s%s", i ? "," : "", x->kinds.at[i]);
	const char *texts[] = { after, since, str_text(&kinds) };

	client_path(path, "/v1/events?after={}&since={}&kind={}", texts);
	const struct {
		const char *pattern, *value;
	} more[] = { { "&sandbox={}", x->sandbox },
		     { "&workspace={}", x->workspace },
		     { "&process={}", x->process } };

	for (size_t i = 0; i < COUNT(more); i++)
		if (more[i].value)
			client_path(path, more[i].pattern, &more[i].value);
	str_add(path, x->is_followed ? "&follow=1" : "");
	return path->overflow ? err_new(e, ERR_INVALID, "these names are too long") : 0;
}

static int choose_format(const struct events_opts *x, enum format *out, struct err *e)
{
	*out = x->common.is_json ? FORMAT_JSONL : FORMAT_TEXT;
	if (!x->format)
		return 0;
	for (*out = 0; *out < FORMATS; ++*out)
		if (strcmp(x->format, formats[*out]) == 0)
			return 0;
	return err_new(e, ERR_INVALID, "--format: text, jsonl, ocsf or otlp");
}

/* ---- verifying ------------------------------------------------------------------------ */

/* By the program that writes it: it knows the signatures, and needs nothing but the files. */
static int verify_run(const struct events_opts *x, struct err *e)
{
	char program[PATH_TEXT_MAX], dir[PATH_TEXT_MAX + 16], from[32];
	const char *argv[12] = { "caisson-ledger", "verify", "--ledger", dir };
	size_t n = 4;
	struct address a;

	if (!x->ledger && address_find(&a, e) < 0)
		return -1;
	if (program_find("caisson-ledger", program, e) < 0)
		return -1;
	snprintf(dir, sizeof dir, "%s%s", x->ledger ? x->ledger : a.state_dir,
	         x->ledger ? "" : "/ledger");
	snprintf(from, sizeof from, "%llu", (unsigned long long)x->from.value);
	const struct {
		const char *flag, *value;
	} more[] = { { "--key", x->key },
		     { "--from", x->from.is_set ? from : NULL },
		     { "--expect", x->expect } };

	for (size_t i = 0; i < COUNT(more); i++) {
		if (!more[i].value)
			continue;
		argv[n++] = more[i].flag;
		argv[n++] = more[i].value;
	}
	if (x->common.is_json)
		argv[n] = "--json";
	execv(program, (char *const *)argv);
	return err_sys(e, errno, "run %s", program);
}

/* ---- pushing -------------------------------------------------------------------------- */

/* The collector has heard all that the cursor says; what it says is where the next one begins. */
static int push_run(struct verb_call *c, const struct events_opts *x, struct err *e)
{
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(otlp_done) struct otlp o;
	uint64_t after = x->after.value;

	otlp_init(&o);
	if (x->format || x->common.is_json)
		return err_new(e, ERR_INVALID, "--otlp: has its own format");
	if (otlp_open(&o, x->otlp, x->cursor, x->after.is_set ? NULL : &after, e) < 0 ||
	    make_path(x, after, &path, e) < 0)
		return -1;
	int r = otlp_push(&o, &c->client, str_text(&path), e);

	if (r == 0)
		fprintf(stderr, "caisson: %llu records sent, the last is %llu\n",
		        (unsigned long long)o.n_sent, (unsigned long long)o.seq);
	return r;
}

static int events_run(struct verb_call *c, struct err *e)
{
	const struct events_opts *x = c->opts;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	enum format format;

	if (x->is_verified)
		return verify_run(x, e);
	if (x->ledger || x->key || x->expect || x->from.is_set)
		return err_new(e, ERR_INVALID,
		               "--ledger, --key, --from, --expect: only with --verify");
	if (x->otlp)
		return push_run(c, x, e);
	if (x->cursor)
		return err_new(e, ERR_INVALID, "--cursor: only with --otlp");
	if (choose_format(x, &format, e) < 0 || make_path(x, x->after.value, &path, e) < 0)
		return -1;
	return fetch_raw_lines(&c->client, str_text(&path), take_record, &format, e);
}

/* clang-format off */
#define AT(member) offsetof(struct events_opts, member)
static const struct flag events_flags[] = {
	{ 'f',  FLAG_SWITCH, "follow",    AT(is_followed), NULL, "go on with new ones", NULL },
	{ '\0', FLAG_TEXT,   "sandbox",   AT(sandbox),   "SANDBOX", "only of this sandbox", NULL },
	{ '\0', FLAG_TEXT,   "workspace", AT(workspace), "WS", "only of this workspace", NULL },
	{ '\0', FLAG_TEXT,   "process",   AT(process),   "PROCESS", "only of this command", NULL },
	{ '\0', FLAG_LIST,   "kind",      AT(kinds),     "KIND", "only this kind, or all that begin so: exec, git.pushed; may be repeated", NULL },
	{ '\0', FLAG_TEXT,   "since",     AT(since),     "TIME", "only what is not older: 10m, 2h, 3d, or 2026-01-31T12:00:00", NULL },
	{ '\0', FLAG_NUMBER, "after",     AT(after),     "SEQ", "only what comes behind this record", NULL },
	{ '\0', FLAG_TEXT,   "format",    AT(format),    "FORMAT", "text; jsonl, as they are in the ledger; ocsf; otlp", "text jsonl ocsf otlp" },
	{ '\0', FLAG_TEXT,   "otlp",      AT(otlp),      "URL", "send them to an OpenTelemetry collector: http://HOST:PORT, with /v1/logs unless a path is given", NULL },
	{ '\0', FLAG_TEXT,   "cursor",    AT(cursor),    "FILE", "of --otlp: the last record that was taken; the next run goes on behind it", NULL },
	{ '\0', FLAG_SWITCH, "verify",    AT(is_verified), NULL, "is the ledger whole? Reads its files, and asks no daemon", NULL },
	{ '\0', FLAG_TEXT,   "ledger",    AT(ledger),    "DIR", "the folder to verify; the caller's own daemon's unless given", NULL },
	{ '\0', FLAG_TEXT,   "key",       AT(key),       "FILE", "the public key, in PEM", NULL },
	{ '\0', FLAG_NUMBER, "from",      AT(from),      "SEQ", "begin with the file of this record", NULL },
	{ '\0', FLAG_TEXT,   "expect",    AT(expect),    "SEQ:HASH", "this record was there once: `last` of an earlier --verify", NULL },
	{ '\0', FLAG_SWITCH, "json",      offsetof(struct verb_opts, is_json), NULL, "as --format jsonl; of --verify what was found", NULL },
};
/* clang-format on */

const struct verb cmd_events = {
	.name = "events",
	.usage = "[options] | --verify [--ledger DIR] [--key FILE]",
	.does = "the ledger: commands, connections, promotions; and is it whole",
	.more =
	    "Every record has the hash of the one before it, and signed ones stand in between: "
	    "--verify "
	    "finds what was changed, removed, moved or added, and says where. Exit status 1: it is "
	    "not sound. What was cut off together with the signed head is found by --expect.",
	.flags = events_flags,
	.n_flags = COUNT(events_flags),
	.opts_size = sizeof(struct events_opts),
	.run = events_run
};
