#include "unit/test_spec.h"

struct row {
	const char *text, *want;
};

TEST(every_form_of_creds)
{
	static const struct row rows[] = {
		{ "{\"creds\":null}", WITH_CREDS("[]") },
		{ "{\"creds\":\"none\"}", WITH_CREDS("[]") },
		{ "{\"creds\":[]}", WITH_CREDS("[]") },
		{ "{\"creds\":{}}", WITH_CREDS("[]") },
		{ "{\"creds\":\"github\"}", WITH_CREDS("[\"github\"]") },
		{ "{\"creds\":\"github=vault:gh-app\"}",
		  WITH_CREDS("[{\"github\":\"vault:gh-app\"}]") },
		{ "{\"creds\":{\"github\":\"vault:gh-app\"}}",
		  WITH_CREDS("[{\"github\":\"vault:gh-app\"}]") },
		{ "{\"creds\":[\"github\",{\"npm\":\"vault:npm.read_only\"}]}",
		  WITH_CREDS("[\"github\",{\"npm\":\"vault:npm.read_only\"}]") },
		{ "{\"creds\":\"550e8400-e29b-41d4-a716-446655440000\"}",
		  WITH_CREDS("[\"550e8400-e29b-41d4-a716-446655440000\"]") },
		{ "{\"creds\":\"deployment-key-of-2024-team-7\"}",
		  WITH_CREDS("[\"deployment-key-of-2024-team-7\"]") },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		takes(rows[i].text, rows[i].want);
}

TEST(wrong_creds)
{
	static const struct row rows[] = {
		{ "{\"creds\":1}", "creds: wants a name" },
		{ "{\"creds\":true}", "creds: wants a name" },
		{ "{\"creds\":\"\"}", "creds: not a name" },
		{ "{\"creds\":[null]}", "creds[0]: wants a name" },
		{ "{\"creds\":[\"github\",\"none\"]}", "creds[1]: \"none\" stands alone" },
		{ "{\"creds\":{\"none\":\"vault:x\"}}", "\"none\" stands alone" },
		{ "{\"creds\":{\"github\":null}}", "creds: wants a source" },
		{ "{\"creds\":{\"github\":{\"secret\":\"x\"}}}", "creds: wants a source" },
		{ "{\"creds\":{\"github\":\"\"}}", "is not vault:NAME" },
		{ "{\"creds\":{\"github\":\"vault:\"}}", "not a name" },
		{ "{\"creds\":{\"github\":\"valut:gh-app\"}}", "did you mean \"vault:\"?" },
		{ "{\"creds\":[\"github\",\"github\"]}", "\"github\" is given twice" },
		{ "{\"creds\":[\"github\",{\"github\":\"vault:x\"}]}",
		  "\"github\" is given twice" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		refuses(rows[i].text, rows[i].want);
}

#define MARK "Zq7" /* stands in every secret below and may stand in no message */

static const char *const secrets[] = {
	"ghp_" MARK,
	"gho_" MARK,
	"ghu_" MARK,
	"ghs_" MARK,
	"ghr_" MARK,
	"github_pat_" MARK,
	"glpat-" MARK,
	"sk-" MARK,
	"AKIA" MARK,
	"ASIA" MARK,
	"AIza" MARK,
	"ya29." MARK,
	"xoxa-" MARK,
	"xoxb-" MARK,
	"xoxp-" MARK,
	"xoxs-" MARK,
	"xapp-" MARK,
	"eyJ" MARK,
	"-----BEGIN " MARK,
	"Bearer " MARK,
	"Basic " MARK,
	MARK "aB3dE5gH7jK9mN1pQ3sT",               /* 23 bytes of letters and digits */
	MARK "0123456789abcdef0123456789abcdef",   /* hex */
	MARK "abcdefghijklmnopqrstuvwxyzabcdefgh", /* letters only, but no word */
	MARK "/wJalrXUtnFEMI/K7MDENG+bPxRfiCY",    /* base64 */
	"correct horse battery " MARK,
	"user:" MARK "@example.org",
	"https://user:" MARK "@example.org",
	"p@ssw0rd" MARK,
	"$ecret" MARK,
	"=" MARK,
	"github=" MARK,
	"github=admin:" MARK,
	"github=env:" MARK,
	"github=vault:ghp_" MARK,
	"github=vault:a b " MARK,
};

static void check_silent(const struct err *e)
{
	printf("# %s\n", e->msg);
	CHECK(!strstr(e->msg, MARK));
}

/* Wherever it is written, it is refused and not repeated. */
TEST(a_literal_secret_is_refused_and_never_shown)
{
	static const char *const forms[] = {
		"{\"creds\":\"%s\"}",
		"{\"creds\":[\"ok\",\"%s\"]}",
		"{\"creds\":{\"github\":\"%s\"}}",
		"{\"creds\":{\"%s\":\"vault:x\"}}",
		"{\"creds\":[{\"github\":\"%s\"}]}",
	};
	for (size_t i = 0; i < COUNT(secrets); i++) {
		for (size_t k = 0; k < COUNT(forms); k++) {
			AUTO(spec_done) struct spec s;
			AUTO(str_done) struct str doc = { .max = TEXT_MAX };
			const char *at = strstr(forms[k], "%s");
			struct err e = { 0 };

			str_addn(&doc, forms[k], (size_t)(at - forms[k]));
			str_add(&doc, secrets[i]);
			str_add(&doc, at + 2);
			spec_init(&s);
			CHECK_INT(spec_json(&s, doc.data, doc.len, &e), -1);
			check_silent(&e);
			CHECK_INT(spec_yaml(&s, doc.data, doc.len, &e), -1);
			check_silent(&e);
		}
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		spec_init(&s);
		CHECK_INT(spec_flag(&s, "creds", secrets[i], &e), -1);
		check_silent(&e);
	}
}

TEST(a_secret_in_the_wrong_place_is_not_shown_either)
{
	static const char *const docs[] = {
		"{\"creds\": ghp_" MARK "}",
		"{\"creds\": \"ghp_" MARK,
		"{\"ghp_" MARK "\": 1}",
		"{\"ghp_" MARK "\": 1, \"ghp_" MARK "\": 1}",
		"{\"net\": \"ghp_" MARK "\"}",
		"{\"image\": \"ghp_" MARK "\"}",
		"{\"user\": \"ghp_" MARK "\"}",
		"{\"limits\": {\"mem\": \"ghp_" MARK "\"}}",
		"{\"env\": {\"TOKEN\": [\"" MARK "\"]}}",
		"{\"env\": [\"ghp_" MARK "\"]}",
		"{\"env\": [\"ghp_" MARK "=1\", \"ghp_" MARK "=2\"]}",
		"{\"env\": {\"ghp_" MARK "\": []}}",
	};
	for (size_t i = 0; i < COUNT(docs); i++) {
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		spec_init(&s);
		CHECK_INT(spec_json(&s, docs[i], strlen(docs[i]), &e), -1);
		check_silent(&e);
		CHECK_INT(spec_yaml(&s, docs[i], strlen(docs[i]), &e), -1);
		check_silent(&e);
	}
}

TEST(flags_add_replace_and_none_clears)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	spec_init(&s);
	CHECK_INT(spec_flag(&s, "creds", "github", &e), 0);
	CHECK_INT(spec_flag(&s, "creds", "npm", &e), 0);
	CHECK_INT(spec_flag(&s, "creds", "github=vault:gh-app", &e), 0);
	check_printed(&s, WITH_CREDS("[{\"github\":\"vault:gh-app\"},\"npm\"]"));
	CHECK_INT(spec_flag(&s, "creds", "none", &e), 0);
	check_printed(&s, WITH_CREDS("[]"));
}
