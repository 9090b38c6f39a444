#include "cli/report.h"

#include "test.h"

#define EVIL "\"</code><script>x</script>\\u001b[2J\\n# `|\""

static const char records[] =
    "["
    "{\"seq\":5,\"ts\":1000,\"kind\":\"sandbox.created\",\"sandbox\":\"sb_1\",\"data\":"
    "{\"image\":\"host\",\"policy\":\"beef\",\"net\":{\"allow\":[\"ok.test\"]}}},"
    "{\"seq\":6,\"ts\":2000,\"kind\":\"exec.started\",\"sandbox\":\"sb_1\",\"process\":\"px_1\","
    "\"data\":{\"argv\":[\"sh\",\"-c\"," EVIL "]}},"
    "{\"seq\":7,\"ts\":3000,\"kind\":\"net.connection\",\"process\":\"px_1\",\"data\":{\"name\":"
    "\"evil.test\",\"port\":443,\"decision\":\"deny\",\"reason\":\"no_rule\",\"count\":2}},"
    "{\"seq\":8,\"ts\":3000,\"kind\":\"net.connection\",\"process\":\"px_1\",\"data\":{\"name\":"
    "\"ok.test\",\"port\":443,\"decision\":\"allow\",\"close\":\"open\"}},"
    "{\"seq\":9,\"ts\":3100,\"kind\":\"net.request\",\"process\":\"px_1\",\"data\":{\"name\":"
    "\"ok.test\",\"port\":443,\"decision\":\"allow\",\"method\":\"GET\",\"path\":\"/\",\"secrets\":"
    "[\"token\"]}},"
    "{\"seq\":10,\"ts\":3200,\"kind\":\"net.connection\",\"process\":\"px_1\",\"data\":{\"name\":"
    "\"ok.test\",\"port\":443,\"decision\":\"allow\",\"close\":\"client\",\"bytes_up\":7,"
    "\"bytes_down\":9}},"
    "{\"seq\":11,\"ts\":3300,\"kind\":\"net.lookup\",\"process\":\"px_1\",\"data\":{\"name\":" EVIL
    ",\"decision\":\"deny\",\"reason\":\"no_rule\"}},"
    "{\"seq\":12,\"ts\":4000,\"kind\":\"exec.ended\",\"process\":\"px_1\",\"data\":{\"state\":"
    "\"exited\",\"exit_code\":3,\"limits\":{\"pids\":2},\"usage\":{\"ms\":1500},\"programs\":4}},"
    "{\"seq\":13,\"ts\":4100,\"kind\":\"process.started\",\"process\":\"px_1\",\"data\":"
    "{\"program\":\"mount -t tmpfs\",\"pid\":4}},"
    "{\"seq\":14,\"ts\":4200,\"kind\":\"secret.canary\",\"process\":\"px_1\",\"data\":{\"name\":"
    "\"bird\",\"way\":\"net\",\"host\":\"evil.test\"}},"
    "{\"seq\":14,\"ts\":5000,\"kind\":\"approval.decided\",\"actor\":\"uid:0\",\"data\":{\"what\":"
    "\"push main\",\"of\":\"push\",\"state\":\"denied\"}},"
    "{\"seq\":15,\"ts\":5500,\"kind\":\"workspace.files\",\"process\":\"px_1\",\"data\":{\"names\":"
    "["
    "{\"status\":\"A\",\"path\":\"Makefile\",\"type\":\"file\",\"mode\":\"0644\"},"
    "{\"status\":\"A\",\"path\":\".git/index\",\"type\":\"file\",\"mode\":\"0644\"},"
    "{\"status\":\"A\",\"path_base64\":\"/w==\",\"type\":\"file\",\"mode\":\"0644\"},"
    "{\"status\":\"M\",\"path\":" EVIL ",\"type\":\"file\",\"mode\":\"0644\"}],\"unnamed\":3}},"
    "{\"seq\":15,\"ts\":6000,\"kind\":\"git.committed\",\"data\":{\"commit\":\"c0ffee\","
    "\"tree\":\"7ree\",\"branch\":\"b\"}}"
    "]";

static void print(enum page_format format, const struct report_proof *proof, struct str *out)
{
	json_t *r = json_loads(records, 0, NULL);
	json_t *w = json_loads("{\"id\":\"ws_1\",\"repo\":\"https://forge.test/x\"}", 0, NULL);
	json_t *counts = json_loads("{\"A\":1,\"M\":1}", 0, NULL);
	const struct report_in in = { .name = "<b>",
		                      .workspace = w,
		                      .records = r,
		                      .counts = counts,
		                      .patch = span_of("+<script>\n"),
		                      .proof = *proof,
		                      .now_ms = 7000 };

	CHECK(r && w && counts);
	report_print(&in, format, out);
	json_decref(r);
	json_decref(w);
	json_decref(counts);
}

TEST(each_thing_has_its_place)
{
	static const char *const wanted[] = {
		"<h1>Task &lt;b&gt;</h1>",
		"<b>1</b>commands",
		"<b>2</b>files differ",
		"<b>1</b>hosts reached",
		"<b>2</b>refused by the gate",
		"<b>1</b>limits met",
		"<code>connect evil.test:443</code></td><td class=\"n\">no rule allows it</td>",
		"no rule allows it</td><td></td><td class=\"n\">2</td>",
		"<code>limit: pids</code>",
		"<code>the canary bird, by net to evil.test</code>",
		"<code>ok.test:443</code></td><td class=\"n\">1</td><td class=\"n\">1</td>",
		"<td class=\"n\">0</td><td class=\"n\">7</td><td class=\"n\">9</td>",
		"<code>token</code></td><td><code>ok.test:443</code></td><td class=\"n\">1</td>",
		"<code>c0ffee</code></td><td><code>7ree</code>",
		"<code>push: push main</code></td><td><code>denied</code></td>",
		"<code>denied</code></td><td></td><td><code>uid:0</code>",
		"<code>mount -t tmpfs</code>",
		"<td class=\"n\">3</td><td class=\"n\">1.500 s</td><td class=\"n\">4</td>",
		"<code>Makefile</code></td><td><code>",
		"<code>base64: /w==</code>",
		"And 4 more",
		"<code>beef</code>",
		"+&lt;script&gt;\n",
		"The ledger is sound",
	};
	static const struct report_proof sound = {
		.n = 11, .first = 5, .last = 15, .is_read = true, .is_sound = true, .key = "abc"
	};
	AUTO(str_done) struct str out = { .max = 1u << 20 };

	print(PAGE_HTML, &sound, &out);
	for (size_t i = 0; i < COUNT(wanted); i++) {
		bool is_there = strstr(str_text(&out), wanted[i]) != NULL;

		if (!is_there)
			CHECK_STR("", wanted[i]);
	}
	CHECK(!strstr(str_text(&out), "<script") && !strchr(str_text(&out), 0x1b));
}

TEST(in_markdown_no_text_of_others_begins_a_line)
{
	static const struct report_proof unread = { .n = 11, .n_broken = 1 };
	AUTO(str_done) struct str out = { .max = 1u << 20 };
	size_t n_fences = 0;

	print(PAGE_MARKDOWN, &unread, &out);
	CHECK(strstr(str_text(&out), "# `Task <b>`\n"));
	CHECK(strstr(str_text(&out), "``connect evil.test:443``") ||
	      strstr(str_text(&out), "`connect evil.test:443`"));
	CHECK(strstr(str_text(&out), "signatures were not looked at"));
	for (const char *at = str_text(&out); *at; at += strcspn(at, "\n") + 1) {
		n_fences += strncmp(at, "```", 3) == 0;
		CHECK(strncmp(at, "# `|", 4) != 0);
		if (!at[strcspn(at, "\n")])
			break;
	}
	CHECK_INT(n_fences, 2);
}

TEST(a_ledger_that_is_not_sound_is_said_to_be)
{
	static const struct report_proof bad = { .n = 11, .is_read = true, .n_findings = 3 };
	AUTO(str_done) struct str out = { .max = 1u << 20 };

	print(PAGE_HTML, &bad, &out);
	CHECK(strstr(str_text(&out), "<p class=\"bad\">THE LEDGER IS NOT SOUND: 3 findings.</p>"));
}
