#include "spec/config.h"

#include "spec/opts.h"
#include "test.h"

static void check_value(const struct config *c, const char *key, const char *want)
{
	AUTO(str_done) struct str value = { .max = 4096 };
	bool is_set = config_value(c, key, &value);

	CHECK_STR(is_set ? str_text(&value) : NULL, want);
}

static int load(struct config *c, const char *text, struct err *e)
{
	config_init(c);
	if (config_yaml(c, text, strlen(text), e) < 0)
		return -1;
	return config_check(c, e);
}

TEST(good_files)
{
	static const struct {
		const char *text, *key, *value;
	} rows[] = {
		{ "", "state", NULL },
		{ "# nothing but a remark\n", "listen", NULL },
		{ "{}", "ttl", NULL },
		{ "state: /var/lib/x/", "state", "/var/lib/x" },
		{ "run: /run/x", "run", "/run/x" },
		{ "listen: [\"127.0.0.1:7300\", \"unix:/run/x/a.sock\"]", "listen",
		  "127.0.0.1:7300,unix:/run/x/a.sock" },
		{ "listen: \"[::1]:1\"", "listen", "[::1]:1" },
		{ "tls: {cert: /c, key: /k}", "tls.key", "/k" },
		{ "host_paths: [/srv, /opt]", "host_paths", "/srv,/opt" },
		{ "service_id: 900", "service_id", "900" },
		{ "keep_ledger: 1g", "keep_ledger", "1g" },
		{ "ledger_burst: 500", "ledger_burst", "500" },
		{ "process_events: \"off\"", "process_events", "off" },
		{ "idle_exit: 90", "idle_exit", "90s" },
		{ "ttl: 36h", "ttl", "36h" },
		{ "keep_records: 7d", "keep_records", "7d" },
		{ "quota: {sandboxes: 5}", "quota.sandboxes", "5" },
		{ "quota: {processes: 50, cpu: 1.5}", "quota.cpu", "1.5" },
		{ "quota: {mem: 16g, pids: 9, disk: 1024m}", "quota.disk", "1g" },
		{ "defaults: {mem: 2g, wall: 1h}", "defaults.wall", "1h" },
		{ "defaults: {wall_ms: 5000}", "defaults.wall", "5s" },
		{ "most: {cpu: 4, mem: 8g}", "most.cpu", "4" },
		{ "net: {presets: {pip: [A.test, b.test:8443]}}", "net.presets",
		  "pip=a.test,b.test:8443" },
		{ "net: {sets: {docs: [a.test], more: ['*.b.test', c.test]}}", "net.sets",
		  "docs=a.test more=*.b.test,c.test" },
		{ "net: {grant: [10.1.0.0/16, \"fd00::/8\"]}", "net.grant",
		  "10.1.0.0/16,fd00::/8" },
		{ "net: {builds: [A.test, \"preset:npm\"]}", "net.builds", "a.test,preset:npm" },
		{ "net: {proxy: \"http://proxy.test:3128\"}", "net.proxy",
		  "http://proxy.test:3128" },
		{ "net: {ca: /etc/own.pem}", "net.ca", "/etc/own.pem" },
		{ "net: {ask: 90}", "net.ask", "90s" },
		{ "most: {mem: 8g}\ndefaults: {mem: 8g}", "most.mem", "8g" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		struct config c;
		int r = load(&c, rows[i].text, &e);

		if (r < 0)
			printf("# %s: %s\n", rows[i].text, e.msg);
		CHECK_INT(r, 0);
		check_value(&c, rows[i].key, rows[i].value);
		config_done(&c);
	}
}

TEST(what_is_wrong_is_named_with_its_line)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "[]", "wants an object of keys such as listen, ttl, quota, not a list" },
		{ "ttl: 1h\nkeep_record: 3d", "line 2: unknown key \"keep_record\"; did you mean "
		                              "\"keep_records\"?" },
		{ "quota:\n  mem: 4g\n  sandbox: 3", "line 3: quota: unknown key \"sandbox\"; did "
		                                     "you mean \"sandboxes\"?" },
		{ "defaults: {memory: 4g}", "line 1: defaults: unknown key \"memory\"" },
		{ "ttl: 1h\nttl: 2h", "line 2: key \"ttl\" is given twice" },
		{ "quota: 5", "line 1: quota: wants an object, not a number" },
		{ "quota: mem=4g", "line 1: quota: wants an object, not text" },
		{ "listen: {a: b}", "line 1: listen: wants a list of texts, not an object" },
		{ "listen: [7300]", "line 1: listen[0]: wants text, not a number" },
		{ "listen: [\"7300\"]", "line 1: listen[0]: \"7300\" is neither unix:PATH nor "
		                        "HOST:PORT" },
		{ "listen: [\"host:http\"]", "is neither unix:PATH nor HOST:PORT" },
		{ "listen: [\"unix:run/x\"]", "line 1: listen[0]: \"run/x\" is relative" },
		{ "state: var", "line 1: state: \"var\" is relative; write \"/var\"" },
		{ "host_paths: [/proc/1]", "\"/proc/1\" cannot be mounted" },
		{ "ttl: soon", "line 1: ttl: \"soon\" is not a duration such as 10m" },
		{ "ttl: 0", "line 1: ttl: \"0\" is too small, the least is 1s" },
		{ "ttl: 9000d", "line 1: ttl: \"9000d\" is too large, the most is 365d" },
		{ "ttl: [1]", "line 1: ttl: wants seconds or a duration: `10m`, not a list" },
		{ "keep_ledger: 1m", "is too small" },
		{ "ledger_burst: 5", "is too small" },
		{ "process_events: maybe", "\"maybe\" is neither on nor off" },
		{ "service_id: 0", "\"0\" is too small, the least is 1" },
		{ "service_id: 1879048192", "is too large, the most is 1879048187" },
		{ "quota: {mem: -1}", "line 1: quota.mem: \"-1\" is negative" },
		{ "quota: {sandboxes: 99999999999}",
		  "quota.sandboxes: \"99999999999\" is too large" },
		{ "most: {mem: 1}", "line 1: most.mem: \"1\" is too small, the least is 4m" },
		{ "tls: {cert: /c}", "tls: a certificate needs its key" },
		{ "net: {cache: 1m}", "line 1: net.cache: \"1m\" is neither a size" },
		{ "net: {cache: some}", "is neither a size from 64m on nor off" },
		{ "net: {presets: {pop: [a.test]}}", "line 1: net.presets: \"pop\" is not valid" },
		{ "net:\n  sets:\n    docs: []", "line 3: net.sets: docs: names no host" },
		{ "net: {sets: {docs: 5}}", "net.sets: wants a list of hosts, not a number" },
		{ "net: {sets: {docs: [10.0.0.1]}}", "docs: \"10.0.0.1\" is an address; use cidr" },
		{ "net: {sets: {docs: ['set:x']}}", "net.sets: docs: \"x\" is not a port" },
		{ "net: {builds: [10.0.0.1]}",
		  "line 1: net.builds[0]: \"10.0.0.1\" is an address" },
		{ "net: {grant: [10.0.0.1/8]}",
		  "line 1: net.grant[0]: \"10.0.0.1/8\" has bits set" },
		{ "net: {proxy: \"http://u:secret@p.test:1\"}",
		  "line 1: net.proxy: wants http://HOST:PORT or socks5://HOST:PORT" },
		{ "net: {proxy: p.test}", "net.proxy: wants http://HOST:PORT" },
		{ "net: {ca: own.pem}", "line 1: net.ca: \"own.pem\" is relative" },
		{ "net: {ask: 48h}", "net.ask: \"48h\" is too large, the most is 1d" },
		{ "most: {mem: 1g}\ndefaults: {mem: 2g}", "defaults.mem: \"2g\" is more than "
		                                          "most.mem, 1g" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		struct config c;

		CHECK_INT(load(&c, rows[i].text, &e), -1);
		if (!strstr(e.msg, rows[i].message))
			printf("# %s: %s\n", rows[i].text, e.msg);
		CHECK(strstr(e.msg, rows[i].message));
		CHECK_INT(e.kind, ERR_INVALID);
		config_done(&c);
	}
}

TEST(lists_have_a_ceiling)
{
	AUTO(str_done) struct str text = { .max = 65536 };
	struct err e = { 0 };
	struct config c;

	str_add(&text, "host_paths: [");
	for (int i = 0; i <= CONFIG_HOST_PATHS_MAX; i++)
		str_addf(&text, "%s/p%d", i ? ", " : "", i);
	str_add(&text, "]");
	CHECK_INT(load(&c, str_text(&text), &e), -1);
	CHECK(strstr(e.msg, "has more than 64 entries"));
	config_done(&c);
}

TEST(flags_say_the_same)
{
	static const struct {
		const char *flag, *value, *key, *shown;
	} rows[] = {
		{ "state", "/s", "state", "/s" },
		{ "listen", "127.0.0.1:1", "listen", "127.0.0.1:1" },
		{ "host-path", "/a", "host_paths", "/a" },
		{ "service-id", "77", "service_id", "77" },
		{ "idle-exit", "60", "idle_exit", "1m" },
		{ "quota", "mem=4g", "quota.mem", "4g" },
		{ "quota", "cpu=1.5", "quota.cpu", "1.5" },
		{ "default", "pids=9", "defaults.pids", "9" },
		{ "most", "wall=1h", "most.wall", "1h" },
		{ "tls", "key=/k", "tls.key", "/k" },
	};
	static const struct {
		const char *flag, *value, *message;
	} bad[] = {
		{ "quota", "mem", "--quota: \"mem\" is not NAME=VALUE" },
		{ "quota", "memory=4g", "--quota: unknown key \"memory\"" },
		{ "quota", "mem=much", "--quota mem: \"much\" is not a size" },
		{ "most", "mem=1", "--most mem: \"1\" is too small" },
		{ "ttl", "x", "--ttl: \"x\" is not a duration" },
		{ "colour", "red", "unknown flag --colour" },
		{ "state", "\xff", "--state: the value is not UTF-8" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		struct config c;

		config_init(&c);
		CHECK_INT(config_flag(&c, rows[i].flag, rows[i].value, &e), 0);
		check_value(&c, rows[i].key, rows[i].shown);
		config_done(&c);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err e = { 0 };
		struct config c;

		config_init(&c);
		CHECK_INT(config_flag(&c, bad[i].flag, bad[i].value, &e), -1);
		if (!strstr(e.msg, bad[i].message))
			printf("# %s\n", e.msg);
		CHECK(strstr(e.msg, bad[i].message));
		config_done(&c);
	}
}

/* Numbers one by one, lists whole; defaults fill what nobody said. */
TEST(flags_win_over_the_file)
{
	struct config file, flags, all;
	struct err e = { 0 };

	CHECK_INT(load(&file,
	               "listen: [\"127.0.0.1:1\", \"127.0.0.1:2\"]\nttl: 1h\n"
	               "quota: {mem: 1g, pids: 5}\nmost: {mem: 2g}",
	               &e),
	          0);
	config_init(&flags);
	config_init(&all);
	CHECK_INT(config_flag(&flags, "listen", "127.0.0.1:3", &e), 0);
	CHECK_INT(config_flag(&flags, "quota", "pids=6", &e), 0);
	CHECK_INT(config_add(&all, &file, &e), 0);
	CHECK_INT(config_add(&all, &flags, &e), 0);
	config_resolve(&all);
	check_value(&all, "listen", "127.0.0.1:3");
	check_value(&all, "ttl", "1h");
	check_value(&all, "quota.mem", "1g");
	check_value(&all, "quota.pids", "6");
	check_value(&all, "most.mem", "2g");
	check_value(&all, "keep_records", "30d");
	check_value(&all, "keep_trash", "1d");
	check_value(&all, "idle_exit", NULL);
	config_done(&file);
	config_done(&flags);
	config_done(&all);
}

/* What a launcher is given, it understands as it was said. */
TEST(texts_are_read_back)
{
	const char *texts[CONFIG_TEXTS_MAX];
	struct config c, again;
	struct err e = { 0 };
	char name[64];
	const char *key;

	CHECK_INT(
	    load(&c,
	         "state: /s\nlisten: [\"a:1\", \"b:2\"]\nhost_paths: [/x]\nservice_id: 9\n"
	         "ttl: 90s\nkeep_records: 1d\nidle_exit: 5\n"
	         "net: {presets: {pip: [a.test, b.test], npm: [c.test]}, sets: {x: [d.test]},\n"
	         "      grant: [10.0.0.0/8, 127.0.0.0/8:80], builds: [a.test, \"set:x\"], proxy: "
	         "\"socks5://p.test:1\", ask: "
	         "1m, ca: \"/a=b,c\"}\n"
	         "quota: {sandboxes: 1, processes: 2, cpu: 1.5, mem: 3g, pids: 4, disk: 5m,"
	         " workspaces: 7}\nstore: {max: 4g, high: 70, low: 60, workspace: 64m, layers: 9}\n"
	         "defaults: {cpu: 0.5, wall: 90s}\nmost: {output: 1m, io: 4k}",
	         &e),
	    0);
	size_t n = config_texts(&c, texts);

	config_init(&again);
	for (size_t i = 0; i < n; i += 2) {
		CHECK_INT(strncmp(texts[i], "--", 2), 0);
		CHECK_INT(config_flag(&again, texts[i] + 2, texts[i + 1], &e), 0);
	}
	for (size_t i = 0; (key = config_key(i, name)); i++) {
		AUTO(str_done) struct str value = { .max = 4096 };
		bool is_set = config_value(&c, key, &value);

		check_value(&again, key, is_set ? str_text(&value) : NULL);
	}
	config_done(&c);
	config_done(&again);
}

TEST(a_full_config_has_room)
{
	AUTO(str_done) struct str text = { .max = 65536 };
	const char *texts[CONFIG_TEXTS_MAX];
	struct err e = { 0 };
	struct config c;

	str_add(&text,
	        "state: /s\nrun: /r\nservice_id: 1\nidle_exit: 1\nttl: 1\nkeep_records: "
	        "1\nkeep_trash: 1\n"
	        "quota: {sandboxes: 1, processes: 1, cpu: 1, mem: 1m, pids: 1, disk: 1m,"
	        " workspaces: 1}\nstore: {max: 1m, high: 90, low: 80, workspace: 4m, layers: 2}\n");
	for (int i = 0; i < 2; i++)
		str_addf(&text,
		         "%s: {cpu: 1, mem: 4m, disk: 1m, inodes: 64, pids: 1, wall: 1, "
		         "idle: 1, output: 1k, files: 16, io: 4k}\n",
		         i ? "most" : "defaults");
	str_add(&text, "listen: [");
	for (int i = 0; i < CONFIG_LISTEN_MAX; i++)
		str_addf(&text, "%s\"a:%d\"", i ? ", " : "", i);
	str_add(&text, "]\nhost_paths: [");
	for (int i = 0; i < CONFIG_HOST_PATHS_MAX; i++)
		str_addf(&text, "%s/p%d", i ? ", " : "", i);
	str_add(&text,
	        "]\nnet:\n  proxy: http://p.test:1\n  ask: 1\n  ca: /c\n  grant: [10.0.0.0/8]\n"
	        "  presets: {pip: [a.test], npm: [a.test], cargo: [a.test], go: [a.test], "
	        "apt: [a.test]}\n  sets:\n");
	for (int i = 0; i < CONFIG_SETS_MAX; i++)
		str_addf(&text, "    s%d: [a.test]\n", i);
	CHECK_INT(load(&c, str_text(&text), &e), 0);
	CHECK_INT(config_texts(&c, texts), 304);
	config_done(&c);
}

TEST(the_operator_decides_what_a_spec_gets)
{
	static const struct {
		const char *spec, *defaults, *most;
		uint64_t mem, wall_ms;
		const char *message;
	} rows[] = {
		{ "{}", "{}", "{}", 4ull << 30, 0, NULL },
		{ "{}", "{mem: 1g}", "{}", 1ull << 30, 0, NULL },
		{ "{limits: {mem: 2g}}", "{mem: 1g}", "{}", 2ull << 30, 0, NULL },
		{ "{}", "{}", "{mem: 1g, wall: 1h}", 1ull << 30, 3600000, NULL },
		{ "{}", "{wall: 1m}", "{wall: 1h}", 4ull << 30, 60000, NULL },
		{ "{limits: {mem: 1g, wall: 1h}}", "{}", "{mem: 1g, wall: 1h}", 1ull << 30, 3600000,
		  NULL },
		{ "{limits: {mem: 2g}}", "{}", "{mem: 1g}", 0, 0,
		  "limits.mem: \"2g\" is more than the operator allows, the most is 1g" },
		{ "{limits: {wall: 2h}}", "{}", "{wall: 1h}", 0, 0,
		  "limits.wall: \"2h\" is more than the operator allows, the most is 1h" },
		{ "{limits: {disk: 2g}}", "{}", "{mem: 1g}", 0, 0,
		  "limits.disk: \"2g\" is larger than mem (1g" },
		{ "{limits: {disk: 3g}}", "{mem: 8g}", "{}", 8ull << 30, 0, NULL },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str text = { .max = 4096 };
		struct err e = { 0 };
		struct config c;
		struct spec s;

		str_addf(&text, "defaults: %s\nmost: %s\n", rows[i].defaults, rows[i].most);
		CHECK_INT(load(&c, str_text(&text), &e), 0);
		spec_init(&s);
		CHECK_INT(spec_yaml(&s, rows[i].spec, strlen(rows[i].spec), &e), 0);
		spec_default(&s, c.defaults.limits);
		spec_resolve(&s);
		int r = spec_bound(&s, c.most.limits, &e);
		if (r == 0)
			r = spec_check(&s, &e);
		CHECK_INT(r, rows[i].message ? -1 : 0);
		if (r < 0) {
			CHECK(strstr(e.msg, rows[i].message));
		} else {
			CHECK_INT(s.limits[LIMIT_MEM].value, rows[i].mem);
			CHECK_INT(s.limits[LIMIT_WALL].value, rows[i].wall_ms);
			CHECK(s.limits[LIMIT_DISK].value <= s.limits[LIMIT_MEM].value);
		}
		spec_done(&s);
		config_done(&c);
	}
}

/* Every key stands in the document, and its example is a config. */
TEST(the_reference_is_true)
{
	AUTO(str_done) struct str out = { .max = 1u << 20 };
	struct err e = { 0 };
	struct config c;
	char name[64], row[80];
	const char *key;

	config_reference(&out);
	CHECK(!out.overflow);
	for (size_t i = 0; (key = config_key(i, name)); i++) {
		const char *dot = strchr(key, '.');

		if (dot && strncmp(key, "defaults", 8) != 0 && strncmp(key, "most", 4) != 0)
			key = dot + 1;
		snprintf(row, sizeof row, "| `%.*s` |", (int)strcspn(key, "."), key);
		CHECK(strstr(str_text(&out), row));
	}
	const char *start = strstr(str_text(&out), "```yaml\n") + 8;
	const char *end = strstr(start, "```");

	config_init(&c);
	CHECK_INT(config_yaml(&c, start, (size_t)(end - start), &e), 0);
	CHECK_INT(config_check(&c, &e), 0);
	config_done(&c);
}
