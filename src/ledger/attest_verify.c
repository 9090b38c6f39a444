/*
 * attest_verify.c - is an attestation genuine? With nothing but the file and a public key.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "ledger/attest.h"
#include "wire/dsse.h"
#include "wire/ledger_text.h"

static int read_all(const char *path, struct str *out, struct err *e)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[16384];
	ssize_t n = -1;

	while (fd >= 0 && !out->overflow && (n = read(fd, buf, sizeof buf)) > 0)
		str_addn(out, buf, (size_t)n);
	if (n < 0)
		return err_sys(e, errno, "read %s", path);
	return out->overflow ? err_new(e, ERR_INVALID, "%s is too long", path) : 0;
}

/* ASCII: nothing in it moves a terminal. */
static void add_value(struct str *out, const char *name, const json_t *value)
{
	AUTO(json_decrefp) json_t *whole = json_pack("{sO}", "v", value);
	AUTO(str_done) struct str text = { .max = ATTEST_BYTES_MAX };

	if (!whole)
		return;
	ledger_text(whole, &text); /* {"v":…} */
	if (text.len > 6)
		str_addf(out, "%s: %.*s\n", name, (int)(text.len - 6), text.data + 5);
}

static const json_t *at(const json_t *o, const char *first, const char *second)
{
	const json_t *one = json_object_get(o, first);

	return second ? json_object_get(one, second) : one;
}

/* What it is about, a line each. */
static void describe(const json_t *statement, struct str *out)
{
	const json_t *predicate = at(statement, "predicate", NULL);
	const json_t *definition = at(predicate, "buildDefinition", NULL);
	const json_t *product;
	size_t i;

	add_value(out, "subject", json_array_get(at(statement, "subject", NULL), 0));
	add_value(out, "from", at(definition, "resolvedDependencies", NULL));
	add_value(out, "policies", at(definition, "internalParameters", "policies"));
	add_value(out, "workspace", at(definition, "externalParameters", "workspace"));
	add_value(out, "commands", at(definition, "externalParameters", "commands_total"));
	json_array_foreach(at(predicate, "runDetails", "byproducts"), i, product)
	{
		const char *name = json_string_value(at(product, "name", NULL));

		add_value(out, name ? name : "?", at(product, "annotations", NULL));
	}
}

static void print_json(const json_t *statement, const struct ledger_key *k, const char *why,
                       struct str *out)
{
	AUTO(json_decrefp)
	json_t *o = json_pack("{sb,ss,ss*,sO*}", "genuine", statement != NULL, "key", k->name,
	                      "reason", why, "statement", statement);

	ledger_text(o, out);
	str_add(out, "\n");
}

int attest_verify(const char *file, const char *key, bool is_json, struct str *out, struct err *e)
{
	AUTO(str_done) struct str envelope = { .max = DSSE_BYTES_MAX };
	AUTO(str_done) struct str pem = { .max = LEDGER_PEM_MAX };
	AUTO(str_done) struct str payload = { .max = DSSE_BYTES_MAX };
	AUTO(ledger_key_done) struct ledger_key k = { 0 };
	AUTO(json_decrefp) json_t *statement = NULL;
	struct err why = { 0 };

	if (read_all(file, &envelope, e) < 0 || read_all(key, &pem, e) < 0 ||
	    ledger_key_read(&k, (struct span){ str_text(&pem), pem.len }, false, e) < 0)
		return -1;
	if (dsse_open(&k, (struct span){ str_text(&envelope), envelope.len }, &payload, &why) ==
	    0) {
		statement = attest_read((struct span){ str_text(&payload), payload.len });
		if (!statement)
			err_new(&why, ERR_INVALID, "it is signed, and no statement of ours");
	}
	if (is_json) {
		print_json(statement, &k, statement ? NULL : why.msg, out);
	} else if (statement) {
		str_addf(out, "genuine: signed by key %s\n", k.name);
		describe(statement, out);
	} else {
		str_addf(out, "NOT GENUINE: %s\n", why.msg);
	}
	return statement ? 0 : 1;
}
