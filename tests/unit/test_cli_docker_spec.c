#include "cli/docker-internal.h"

#include "test.h"

/* One option with one value, as the body that it comes to; or why not. */
static const char *shown(struct docker_run *x, struct str *out)
{
	AUTO(json_decrefp) json_t *body = json_object();
	struct err e = { 0 };

	str_clear(out);
	if (docker_spec(x, body, &e) < 0) {
		str_addf(out, "%s", e.msg);
		return str_text(out);
	}
	AUTO(freep) char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);

	str_add(out, text);
	return str_text(out);
}

#define BODY(more, limits, rest)                                                                   \
	"{\"env\":{}" more ",\"limits\":{" limits "}" rest                                         \
	",\"profile\":\"rootful\",\"user\":\"root\"}"

static const struct {
	size_t at; /* of the list in struct docker_run */
	const char *value, *shown;
} lists[] = {
	{ offsetof(struct docker_run, volumes), "/:/mnt:ro",
	  BODY(",\"fs\":[{\"at\":\"/mnt\",\"kind\":\"ro\",\"src\":\"/\"}]", "", "") },
	{ offsetof(struct docker_run, volumes), "/usr/:/mnt:O,z",
	  BODY(",\"fs\":[{\"at\":\"/mnt\",\"kind\":\"overlay\",\"src\":\"/usr\"}]", "", "") },
	{ offsetof(struct docker_run, volumes), "/anonymous",
	  BODY(",\"fs\":[{\"at\":\"/anonymous\",\"kind\":\"ephemeral\"}]", "", "") },
	{ offsetof(struct docker_run, volumes), "/:/mnt:frob", "invalid mode: frob" },
	{ offsetof(struct docker_run, volumes), "/:mnt:ro",
	  "invalid mount path: 'mnt' mount path must be absolute" },
	{ offsetof(struct docker_run, volumes), "/no/such:/mnt:ro",
	  "bind source path does not exist: /no/such" },
	{ offsetof(struct docker_run, mounts), "type=tmpfs,destination=/t",
	  BODY(",\"fs\":[{\"at\":\"/t\",\"kind\":\"ephemeral\"}]", "", "") },
	{ offsetof(struct docker_run, mounts), "type=bind,src=/,dst=/m,readonly",
	  BODY(",\"fs\":[{\"at\":\"/m\",\"kind\":\"ro\",\"src\":\"/\"}]", "", "") },
	{ offsetof(struct docker_run, mounts), "type=npipe,dst=/m",
	  "mount type npipe is not offered here" },
	{ offsetof(struct docker_run, mounts), "type=tmpfs,dst=/t,re",
	  "unexpected key 're' in 're'" },
	{ offsetof(struct docker_run, mounts), "frob=1", "unexpected key 'frob' in 'frob=1'" },
	{ offsetof(struct docker_run, tmpfs), "/tmp:size=1m", BODY("", "", "") },
	{ offsetof(struct docker_run, ulimits), "nofile=100:200", BODY("", "\"files\":100", "") },
	{ offsetof(struct docker_run, storage), "size=1g", BODY("", "\"disk\":1073741824", "") },
	{ offsetof(struct docker_run, storage), "x=1", "--storage-opt x=1 is refused: size=BYTES" },
	{ offsetof(struct docker_run, cap_add), "CAP_CHOWN", BODY("", "", "") },
	{ offsetof(struct docker_run, cap_drop), "NET_RAW", BODY("", "", "") },
	{ offsetof(struct docker_run, cap_drop), "all",
	  "{\"env\":{},\"limits\":{},\"user\":\"root\"}" },
};

TEST(lists_of_options)
{
	AUTO(str_done) struct str out = { .max = 4096 };

	for (size_t i = 0; i < COUNT(lists); i++) {
		struct docker_run x = { 0 };
		struct flag_list *list = (void *)((char *)&x + lists[i].at);

		const char *one[] = { lists[i].value };

		*list = (struct flag_list){ one, 1, 1 };
		CHECK_STR(shown(&x, &out), lists[i].shown);
	}
}

TEST(single_options)
{
	static const struct {
		struct docker_run x;
		const char *shown;
	} rows[] = {
		{ { .memory = "512m" }, BODY("", "\"mem\":536870912", "") },
		{ { .memory = "64MB" }, BODY("", "\"mem\":67108864", "") },
		{ { .memory = "1.5g" }, BODY("", "\"mem\":1610612736", "") },
		{ { .memory = "100000000" }, BODY("", "\"mem\":100000000", "") },
		{ { .memory = "0" }, BODY("", "", "") },
		{ { .memory = "1x" },
		  "invalid argument \"1x\" for \"-m, --memory\" flag: invalid size: '1x'" },
		{ { .memory = "nan" },
		  "invalid argument \"nan\" for \"-m, --memory\" flag: invalid size: 'nan'" },
		{ { .memory = "1e30" },
		  "invalid argument \"1e30\" for \"-m, --memory\" flag: invalid size: '1e30'" },
		{ { .memory = "9999999999t" },
		  "invalid argument \"9999999999t\" for \"-m, --memory\" flag: invalid size: "
		  "'9999999999t'" },
		{ { .cpus = "nan" }, "invalid argument \"nan\" for \"--cpus\" flag" },
		{ { .cpus = "inf" }, "invalid argument \"inf\" for \"--cpus\" flag" },
		{ { .cpus = "1.5" }, BODY("", "\"cpu\":1.5", "") },
		{ { .pids = "7" }, BODY("", "\"pids\":7", "") },
		{ { .network = "none" }, BODY("", "", ",\"net\":\"deny\"") },
		{ { .network = "allow:a.test" }, BODY("", "", ",\"net\":\"allow:a.test\"") },
		{ { .network = "preset:pip" }, BODY("", "", ",\"net\":\"preset:pip\"") },
		{ { .network = "container:x" },
		  "--network container:x is refused: a sandbox has a network of its own; say "
		  "--network "
		  "allow:HOST,HOST" },
		{ { .user = "7:8", .is_read_only = true },
		  "{\"env\":{},\"limits\":{},\"user\":\"7:8\"}" },
		{ { .restart = "no" }, BODY("", "", "") },
		{ { .is_publishing_all = true }, "-P is refused: name the ports: -p 8080:80" },
	};
	AUTO(str_done) struct str out = { .max = 4096 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct docker_run x = rows[i].x;

		CHECK_STR(shown(&x, &out), rows[i].shown);
	}
}
