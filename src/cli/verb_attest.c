/*
 * verb_attest.c - what was promoted of a workspace, signed by the ledger: attest, attest verify.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/address.h"
#include "cli/verbs.h"
#include "io/program.h"

#define PATH_BYTES_MAX 8192
#define ENVELOPE_MAX (2u << 20)

struct attest_opts {
	struct verb_opts common;
	const char *out, *key;
	struct flag_number record;
};

/* By the program that knows signatures; the file and the key are all it needs. */
static int verify_run(const struct verb_call *c, struct err *e)
{
	const struct attest_opts *x = c->opts;
	char program[PATH_TEXT_MAX], own[PATH_TEXT_MAX + 32];
	struct address a;

	if (x->out || x->record.is_set)
		return err_new(e, ERR_INVALID, "-o, --record: not with verify");
	if (!x->key && address_find(&a, e) < 0)
		return -1;
	if (program_find("caisson-ledger", program, e) < 0)
		return -1;
	if (!x->key)
		snprintf(own, sizeof own, "%s/ledger/key.pub", a.state_dir);
	const char *argv[] = { "caisson-ledger",
		               "attested",
		               c->words.at[1],
		               "--key",
		               x->key ? x->key : own,
		               x->common.is_json ? "--json" : NULL,
		               NULL };

	execv(program, (char *const *)argv);
	return err_sys(e, errno, "run %s", program);
}

static int put_out(const struct attest_opts *x, const json_t *envelope, struct err *e)
{
	AUTO(freep) char *text = json_dumps(envelope, JSON_COMPACT | JSON_ENSURE_ASCII);
	AUTO(str_done) struct str line = { .max = ENVELOPE_MAX };
	AUTO(fd_close)
	int fd = x->out ? open(x->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;

	if (x->out && fd < 0)
		return err_sys(e, errno, "write %s", x->out);
	str_addf(&line, "%s\n", text ? text : "");
	return write_all(x->out ? fd : STDOUT_FILENO, str_text(&line), line.len, e);
}

static int attest_run(struct verb_call *c, struct err *e)
{
	const struct attest_opts *x = c->opts;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *envelope = NULL;

	if (c->words.n == 2 && strcmp(c->words.at[0], "verify") == 0)
		return verify_run(c, e);
	if (c->words.n != 1)
		return err_new(e, ERR_INVALID, "caisson attest %s", c->verb->usage);
	if (x->key)
		return err_new(e, ERR_INVALID, "--key: only with verify");
	client_path(&path, "/v1/workspaces/{}/attestation", (const char *[]){ c->words.at[0] });
	if (x->record.is_set)
		str_addf(&path, "?record=%llu", (unsigned long long)x->record.value);
	if (client_call(&c->client, "GET", str_text(&path), NULL, &envelope, e) < 0)
		return -1;
	return put_out(x, envelope, e);
}

/* clang-format off */
#define AT(member) offsetof(struct attest_opts, member)
static const struct flag attest_flags[] = {
	{ 'o',  FLAG_TEXT,   "output", AT(out),    "FILE", "instead of standard output", NULL },
	{ '\0', FLAG_NUMBER, "record", AT(record), "SEQ", "the promotion, by its number in the ledger; the last unless given", NULL },
	{ '\0', FLAG_TEXT,   "key",    AT(key),    "FILE", "of verify: the public key, in PEM; that of the caller's own daemon unless given", NULL },
	{ '\0', FLAG_SWITCH, "json",   offsetof(struct verb_opts, is_json), NULL, "of verify: what was found, as an object", NULL },
};
/* clang-format on */

const struct verb cmd_attest = {
	.name = "attest",
	.usage = "WORKSPACE [-o FILE] | verify FILE [--key FILE]",
	.does = "what was promoted of a workspace, attested by the ledger; or is that genuine",
	.more =
	    "An in-toto statement (SLSA provenance) in a DSSE envelope about the last commit, "
	    "merge, "
	    "push or apply: base commit, image, policies, commands, hosts, result. The ledger "
	    "makes it "
	    "of its own records, and signs it. verify needs the file and the public key, and no "
	    "daemon. Exit status 1: it is not genuine.",
	.flags = attest_flags,
	.n_flags = COUNT(attest_flags),
	.words = "workspace file",
	.opts_size = sizeof(struct attest_opts),
	.words_min = 1,
	.words_max = 2,
	.run = attest_run
};
