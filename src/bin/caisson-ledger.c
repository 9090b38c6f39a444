/*
 * caisson-ledger - writes what crossed the wall, and nothing else; or verifies what was written.
 *
 * caisson-ledger [--keep-ledger SIZE] [--ledger-burst N], started by the launcher: descriptor 3 is
 * the launcher, which brings the sockets of daemons; 4 the folder that is its own. Whoever takes
 * over the daemon can say new things here, and change nothing that was said.
 *
 * caisson-ledger verify --ledger DIR [--key FILE] [--from SEQ] [--expect SEQ:HASH] [--json]
 * is `caisson events --verify`. Exit status 1: it is not sound.
 *
 * caisson-ledger attested FILE --key FILE [--json] is `caisson attest verify`. Exit status 1: it is
 * not genuine.
 */
#include <openssl/crypto.h>

#include "io/journal.h"
#include "ledger/attest.h"
#include "ledger/serve.h"
#include "ledger/verify.h"
#include "spec/config.h"

#define STATUS_OURS 125
#define TEXT_MAX (1u << 20)

enum { LAUNCHER_FD = 3, DIR_FD = 4 };

/* `value` is NULL behind the last. */
static int take_flag(struct config *c, const char *flag, const char *value, struct err *e)
{
	static const char *const known[] = { "--keep-ledger", "--ledger-burst" };

	for (size_t i = 0; i < COUNT(known) && value; i++)
		if (strcmp(flag, known[i]) == 0)
			return config_flag(c, flag + 2, value, e);
	return err_new(e, ERR_INVALID, "%s is unknown, or nothing follows", flag);
}

static int serve(int argc, char **argv)
{
	struct serve_opts opts = { .launcher_fd = LAUNCHER_FD, .dir_fd = DIR_FD };
	struct config c;
	struct err e = { 0 };

	clearenv(); /* libraries listen to it */
	journal_open("caisson-ledger", JOURNAL_INFO);
	config_init(&c);
	int r = 0;

	for (int i = 1; i < argc && r == 0; i += 2)
		r = take_flag(&c, argv[i], argv[i + 1], &e);
	config_resolve(&c);
	opts.keep_bytes = c.keep_ledger_bytes;
	opts.burst = (uint32_t)c.ledger_burst;
	config_done(&c);
	if (r == 0 && serve_run(&opts, &e) == 0)
		return 0;
	journal(JOURNAL_ERROR, "the ledger ended", "reason", e.msg, NULL);
	return STATUS_OURS;
}

/* ---- verify --------------------------------------------------------------------------- */

struct options {
	struct verify_look look;
	bool is_json;
};

static int read_options(int argc, char **argv, struct options *o)
{
	for (int i = 2; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--json") == 0) {
			o->is_json = true;
			continue;
		}
		if (value && strcmp(argv[i], "--ledger") == 0)
			o->look.dir = value;
		else if (value && strcmp(argv[i], "--key") == 0)
			o->look.key = value;
		else if (value && strcmp(argv[i], "--from") == 0)
			o->look.from = strtoull(value, NULL, 10);
		else if (value && strcmp(argv[i], "--expect") == 0 && strchr(value, ':'))
			o->look.expect = value;
		else
			return -1;
		i++;
	}
	return o->look.dir ? 0 : -1;
}

static int verify(int argc, char **argv)
{
	static struct verify_seen seen;
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	struct options o = { 0 };
	struct err e = { 0 };

	if (read_options(argc, argv, &o) < 0)
		err_new(
		    &e, ERR_INVALID,
		    "verify --ledger DIR [--key FILE] [--from SEQ] [--expect SEQ:HASH] [--json]");
	else if (verify_files(&o.look, &seen, &e) == 0) {
		if (o.is_json)
			verify_print_json(&seen, &out);
		else
			verify_print(&seen, !o.look.key, &out);
		if (fputs(str_text(&out), stdout) >= 0 && fflush(stdout) == 0)
			return seen.n_found ? 1 : 0;
		err_sys(&e, errno, "write");
	}
	fprintf(stderr, "caisson-ledger: %s\n", e.msg);
	return STATUS_OURS;
}

static int attested(int argc, char **argv)
{
	AUTO(str_done) struct str out = { .max = 4ul * TEXT_MAX };
	struct err e = { 0 };
	bool is_json = argc == 6 && strcmp(argv[5], "--json") == 0;
	int r = -1;

	if ((argc != 5 && !is_json) || strcmp(argv[3], "--key") != 0)
		err_new(&e, ERR_INVALID, "attested FILE --key FILE [--json]");
	else
		r = attest_verify(argv[2], argv[4], is_json, &out, &e);
	if (r >= 0 && fputs(str_text(&out), stdout) >= 0 && fflush(stdout) == 0)
		return r;
	fprintf(stderr, "caisson-ledger: %s\n", r < 0 ? e.msg : "cannot write");
	return STATUS_OURS;
}

int main(int argc, char **argv)
{
	(void)OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	if (argc > 1 && strcmp(argv[1], "attested") == 0)
		return attested(argc, argv);
	return argc > 1 && strcmp(argv[1], "verify") == 0 ? verify(argc, argv) : serve(argc, argv);
}
