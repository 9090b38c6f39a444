/*
 * reference.c - help and docs/spec.md, from the tables.
 */
#include "spec/opts.h"

#define HELP_COLUMN 23

void help_row(struct str *out, const struct opt *o)
{
	char left[64];

	snprintf(left, sizeof left, "%s%s%s--%s %s%s", o->brief ? "-" : "",
	         o->brief ? o->brief : "", o->brief ? ", " : "", o->flag, o->arg,
	         o->type->repeat ? "..." : "");
	str_addf(out, "  %-*s %s", HELP_COLUMN, left, o->help);
	if (o->dflt)
		str_addf(out, " (%s)", o->dflt);
	str_add(out, "\n");
}

void spec_help(struct str *out)
{
	const struct opt *o;

	for (size_t i = 0; (o = flag_row(i)); i++)
		help_row(out, o);
}

static void add_code(struct str *out, const char *before, const char *text, const char *after)
{
	if (text)
		str_addf(out, "`%s%s`%s", before, text, after);
}

/* key, flag, default, how it is written, what it means */
void reference_keys(struct str *out, const struct opt_table *t)
{
	str_add(out, "| key | flag | default | written as | meaning |\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < t->count; i++) {
		const struct opt *o = &t->at[i];

		str_addf(out, "| `%s` | ", o->key);
		add_code(out, "-", o->brief, " ");
		add_code(out, "--", o->flag, o->type->repeat ? ", repeat to add" : "");
		str_add(out, " | ");
		add_code(out, "", o->dflt, "");
		str_addf(out, " | %s | %s |\n", o->forms, o->help);
	}
	str_add(out, "\n");
}

void reference_members(struct str *out, const char *title, const struct opt_table *t)
{
	str_addf(out, "%s\n\n| key | written as | meaning |\n|---|---|---|\n", title);
	for (size_t i = 0; i < t->count; i++)
		str_addf(out, "| `%s` | %s | %s |\n", t->at[i].key, t->at[i].forms, t->at[i].help);
	str_add(out, "\n");
}

static void add_limits(struct str *out)
{
	str_add(out, "| key | flag | default | least | most | written as | meaning |\n"
	             "|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < limit_table.count; i++) {
		const struct opt *o = &limit_table.at[i];
		char least[32], most[32];

		o->limit.unit->print(o->limit.min, least);
		o->limit.unit->print(o->limit.max, most);
		str_addf(out, "| `%s` | ", o->key);
		add_code(out, "--", o->flag, "");
		str_addf(out, " | %s | %s | %s | %s | %s |\n", o->dflt ? o->dflt : "none", least,
		         most, o->forms, o->help);
	}
	str_add(out, "\n");
}

static const char intro[] =
    "# The spec\n"
    "\n"
    "<!-- Written by src/spec/reference.c from the option tables. Do not edit. -->\n"
    "\n"
    "A spec says what a sandbox is. It is written as flags, as JSON or as YAML (`--spec FILE`);\n"
    "all three have the same keys and the same checks. An unknown key, a value that does not fit\n"
    "and an empty file are errors; the message names the key, the value and the nearest valid "
    "one.\n"
    "\n"
    "```sh\n"
    "caisson run --net deny --fs ephemeral:/work --cpu 2 --mem 4g --pids 512 --wall 10m -- pytest\n"
    "```\n"
    "\n"
    "```yaml\n"
    "net: deny\n"
    "fs: ephemeral:/work\n"
    "creds: null\n"
    "limits: {cpu: 2, mem: 4g, pids: 512, wall: 10m}\n"
    "```\n"
    "\n"
    "Both are this spec. The canonical form (`caisson policy show --json`) is the request, one "
    "line:\n"
    "\n"
    "```json\n"
    "{\"net\":{\"mode\":\"deny\"},\"fs\":[{\"kind\":\"ephemeral\",\"at\":\"/work\"}],\"creds\":[],"
    "\"limits\":{\"cpu\":2.0,\"mem\":4294967296,\"pids\":512,\"wall_ms\":600000},"
    "\"user\":\"agent\"}\n"
    "```\n"
    "\n"
    "`caisson policy show` prints it as YAML, `--resolved` adds the defaults, `caisson policy "
    "check\n"
    "FILE` only checks. Later wins: a key of a document replaces what was said before it, limits "
    "one\n"
    "by one; a repeated flag adds to its list.\n"
    "\n"
    "## Keys\n"
    "\n";

static const char net_text[] =
    "## net\n"
    "\n"
    "`deny` leaves the loopback and nothing else. In text, hosts need the prefix `allow:`, so that "
    "a\n"
    "slip in `deny` is never a host. A host is a name, `*.name` (one label more) or `**.name` (one "
    "or\n"
    "more), with `:port` if it is for one port only; `*` alone is every name. An address is no "
    "host:\n"
    "it needs `cidr`. `preset:pip` (`npm`, `cargo`, `go`, `apt`) stands for the registry that this "
    "host's\n"
    "own client is configured to use, `set:NAME` for a list of hosts in the operator's "
    "configuration.\n"
    "\n"
    "The first of these that covers a name decides: `deny`, `mock`, `http`, `allow` (or mode "
    "`allow`),\n"
    "`ask`; without any of them it is denied. A host of `http` is restricted to its methods and "
    "paths\n"
    "whatever else allows it. A client must say the name that it looked up, in SNI or Host; TLS "
    "without\n"
    "SNI goes only to hosts of `tls_any`. Port 443 is for TLS unless the rule names that port.\n"
    "Addresses inside the host's own networks are reached only where the operator granted them, "
    "those\n"
    "of cloud metadata never.\n"
    "\n"
    "```yaml\n"
    "net:\n"
    "  allow: [packages.example.org, \"*.cdn.example.net\", \"git.example.com:443\"]\n"
    "  ask: [\"**.example.com\"]\n"
    "  deny: [telemetry.example.com]\n"
    "  cidr: [\"10.1.2.0/24:5432\"]\n"
    "  mock: {payments.example.com: mocks/payments.yaml}\n"
    "  http:\n"
    "    - {host: api.example.com, methods: [GET], paths: [\"/repos/acme/app/**\"]}\n"
    "  inspect: [\"*.example.net\"]\n"
    "  rate: {connections: 200/m, bytes_up: 1g, up: 1m/s}\n"
    "```\n"
    "\n"
    "In a path of `http`, `*` is one segment or a part of one, `**` any number of segments; at the "
    "end\n"
    "at least one: `/a/**` has `/a/` and `/a/b/c`, not `/a`. Requests whose path can be read in "
    "two "
    "ways\n"
    "(`..`, `//`, `%2e`, `%2f`, a backslash) are refused.\n"
    "\n";

static const char fs_text[] =
    "## fs\n"
    "\n"
    "Paths are absolute and without `..`; each mount has a path of its own. `ephemeral` is "
    "writable\n"
    "and gone at the end. `workspace` is the durable tree. `ro` shows a folder of the host "
    "read-only.\n"
    "`overlay` shows one writable, and the changes are thrown away. Reserved inside: `/`, "
    "`/proc`,\n"
    "`/sys`, `/dev`, `/etc`, `/usr` and what leads there, `/run/caisson`. The host's `/proc` and\n"
    "`/sys` cannot be mounted.\n"
    "\n"
    "```yaml\n"
    "fs:\n"
    "  - overlay:/home/me/app:/work\n"
    "  - {kind: ro, src: /opt/tool chain, at: /opt/tc}\n"
    "```\n"
    "\n";

static const char creds_text[] =
    "## creds\n"
    "\n"
    "Names of stored secrets. The gate uses them for their hosts; the values never enter the "
    "sandbox.\n"
    "What looks like a literal secret is refused, and not repeated in the message.\n"
    "\n"
    "```yaml\n"
    "creds: [github, {npm: vault:npm-read-only}]\n"
    "```\n"
    "\n";

static const char gate_text[] =
    "## gate\n"
    "\n"
    "What waits for an approval (docs/approvals.md). A command is the beginning of an argument "
    "list:\n"
    "`git push` has `git push origin main` too. `*` and `?` stand for letters of one argument, "
    "`**` for\n"
    "any number of arguments. A program without a slash goes by its name, one with a slash by its "
    "path.\n"
    "It is a tripwire, not a wall: a program can do what another one does.\n"
    "\n"
    "```yaml\n"
    "gate: {commands: [git ** push, npm publish, rm -rf *]}\n"
    "```\n"
    "\n";

static const char limits_text[] =
    "## limits\n"
    "\n"
    "A limit that is named is enforced, or the start is refused; a default is enforced where the "
    "host\n"
    "can. Sizes: `k`, `m`, `g`, `t`, powers of 1024. Durations: `ms`, `s`, `m`, `h`, `d`; a bare "
    "number\n"
    "is seconds. The scratch space lives in memory, so `disk` is at most `mem`.\n"
    "\n";

static void add_weaker(struct str *out)
{
	const char *between = "`allow_weaker` takes ";
	const struct opt *o;

	for (size_t i = 0; (o = flag_row(i)); i++) {
		if (!o->weaker)
			continue;
		str_addf(out, "%s`%s`", between, o->key);
		between = ", ";
	}
	str_add(out, ".\n");
}

void spec_reference(struct str *out)
{
	str_add(out, intro);
	reference_keys(out, &top_table);
	str_add(out, net_text);
	reference_members(out, "As an object it has", &net_table);
	reference_members(out, "An entry of `http`", &http_table);
	reference_members(out, "`rate`", &rate_table);
	str_add(out, fs_text);
	reference_members(out, "An entry as an object", &fs_table);
	str_add(out, creds_text);
	str_add(out, gate_text);
	reference_members(out, "It has", &gate_table);
	str_add(out, limits_text);
	add_limits(out);
	add_weaker(out);
}
