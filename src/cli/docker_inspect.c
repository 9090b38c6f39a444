/*
 * docker_inspect.c - a container as the object that Docker's API would give.
 */
#include "cli/docker-internal.h"
#include "cli/remote.h"

static json_t *time_json(int64_t ms)
{
	AUTO(str_done) struct str text = { .max = 64 };

	docker_time(ms, &text);
	return json_string(str_text(&text));
}

static json_t *state_of(const struct box *b)
{
	enum box_state s = box_state(b);
	bool is_ended = s == BOX_EXITED || s == BOX_DEAD;
	const char *process = text_of(b->main, "state");

	return json_pack("{ss,sb,sb,sb,sb,sb,si,si,ss,so,so}", "Status", box_state_name(s),
	                 "Running", s == BOX_RUNNING || s == BOX_PAUSED, "Paused", s == BOX_PAUSED,
	                 "Restarting", 0, "OOMKilled", strcmp(process, "oom") == 0, "Dead",
	                 s == BOX_DEAD, "Pid", 0, "ExitCode", box_exit_code(b), "Error",
	                 is_ended ? text_of(b->main, "reason") : "", "StartedAt",
	                 time_json(number_of(b->main, "started_ms")), "FinishedAt",
	                 time_json(is_ended ? number_of(b->main, "ended_ms") : 0));
}

static json_t *env_of(const json_t *spec)
{
	json_t *list = json_array(), *v;
	const char *k;

	json_object_foreach(json_object_get(spec, "env"), k, v)
	{
		AUTO(str_done) struct str pair = { .max = ARGV_BYTES_MAX };

		str_addf(&pair, "%s=%s", k, json_string_value(v));
		json_array_append_new(list, json_string(str_text(&pair)));
	}
	return list;
}

static json_t *config_of(const struct box *b, const json_t *spec)
{
	int64_t n_entry = number_of(b->conf, "entry");
	json_t *entry = n_entry > 0 ? json_array() : json_null();
	bool is_tty = json_is_true(json_object_get(b->conf, "tty"));
	bool has_stdin = json_is_true(json_object_get(b->conf, "stdin"));
	json_t *cmd = box_command(b) ? json_copy(box_command(b)) : json_array();

	for (; n_entry > 0 && json_array_size(cmd) > 0; n_entry--) {
		json_array_append(entry, json_array_get(cmd, 0));
		json_array_remove(cmd, 0);
	}
	return json_pack("{ss,ss,ss,sb,sb,so,so,ss,ss,so,so}", "Hostname", "caisson", "Domainname",
	                 "", "User", text_of(spec, "user"), "Tty", is_tty, "OpenStdin", has_stdin,
	                 "Env", env_of(spec), "Cmd", cmd, "Image", box_image(b), "WorkingDir",
	                 box_folder(b), "Entrypoint", entry, "Labels", box_labels(b));
}

static json_t *mounts_of(const struct box *b, const json_t *spec)
{
	json_t *list = json_array(), *m;
	size_t i;

	json_array_foreach(json_object_get(spec, "fs"), i, m)
	{
		const char *kind = text_of(m, "kind"), *src = text_of(m, "src");
		bool is_work = strcmp(kind, "workspace") == 0;
		bool is_bind = strcmp(kind, "ro") == 0 || strcmp(kind, "overlay") == 0;

		json_array_append_new(
		    list,
		    json_pack("{ss,ss,ss,ss,sb}", "Type",
		              is_work   ? "volume"
		              : is_bind ? "bind"
		                        : "tmpfs",
		              "Source", is_work ? text_of(b->sandbox, "workspace") : src,
		              "Destination", *text_of(m, "at") ? text_of(m, "at") : src, "Mode",
		              strcmp(kind, "ro") == 0        ? "ro"
		              : strcmp(kind, "overlay") == 0 ? "O"
		                                             : "",
		              "RW", strcmp(kind, "ro") != 0));
	}
	return list;
}

static json_t *host_of(const struct box *b, const json_t *spec)
{
	const json_t *limits = json_object_get(spec, "limits");
	const json_t *net = json_object_get(spec, "net");
	const char *mode = text_of(net, "mode");
	double cpus = json_number_value(json_object_get(limits, "cpu"));

	return json_pack("{ss,sb,sb,sb,sI,sI,sI,s{ss,si}}", "NetworkMode",
	                 *mode && strcmp(mode, "deny") != 0 ? "bridge" : "none", "AutoRemove",
	                 json_is_true(json_object_get(b->conf, "rm")), "Privileged", 0,
	                 "ReadonlyRootfs", strcmp(text_of(spec, "profile"), "rootful") != 0,
	                 "Memory", (json_int_t)number_of(limits, "mem"), "NanoCpus",
	                 (json_int_t)(cpus * 1e9), "PidsLimit",
	                 (json_int_t)number_of(limits, "pids"), "RestartPolicy", "Name", "no",
	                 "MaximumRetryCount", 0);
}

static json_t *network_settings(const struct box *b)
{
	json_t *ports = json_object(), *p;
	size_t i;

	json_array_foreach(json_object_get(b->sandbox, "ports"), i, p)
	{
		char name[32], local[16];

		snprintf(name, sizeof name, "%lld/tcp", (long long)number_of(p, "port"));
		snprintf(local, sizeof local, "%lld", (long long)number_of(p, "local_port"));
		json_object_set_new(
		    ports, name, json_pack("[{ss,ss}]", "HostIp", "127.0.0.1", "HostPort", local));
	}
	return json_pack("{so,ss,s{}}", "Ports", ports, "IPAddress", "", "Networks");
}

static json_t *object_of(const struct box *b)
{
	const json_t *spec = json_object_get(b->sandbox, "spec");
	json_t *cmd = box_command(b), *args = cmd ? json_copy(cmd) : json_array();
	const char *path = json_string_value(json_array_get(cmd, 0));
	AUTO(str_done) struct str name = { .max = NAME_TEXT_MAX };

	json_array_remove(args, 0);
	str_addf(&name, "/%s", box_name(b));
	return json_pack("{ss,so,ss,so,so,ss,ss,si,ss,so,so,so,so,s{ss}}", "Id", b->id, "Created",
	                 time_json(number_of(b->sandbox, "created_ms")), "Path", path ? path : "",
	                 "Args", args, "State", state_of(b), "Image", box_image(b), "Name",
	                 str_text(&name), "RestartCount", 0, "Platform", "linux", "HostConfig",
	                 host_of(b, spec), "Mounts", mounts_of(b, spec), "Config",
	                 config_of(b, spec), "NetworkSettings", network_settings(b), "Caisson",
	                 "Sandbox", box_sandbox(b));
}

/* ---- inspect ------------------------------------------------------------------------- */

struct inspect {
	struct verb_opts common;
	const char *format, *type;
	bool has_size;
};

static int inspect_one(struct verb_call *c, const char *name, json_t *list, struct err *e)
{
	const struct inspect *x = c->opts;
	AUTO(box_done) struct box b = { 0 };
	bool is_any = !x->type || !*x->type;

	if (is_any || strcmp(x->type, "container") == 0) {
		if (box_find(&c->client, name, &b, e) == 0) {
			json_array_append_new(list, object_of(&b));
			return 0;
		}
		if (e->kind != ERR_NOT_FOUND || !is_any)
			return -1;
		*e = (struct err){ 0 };
	}
	if (!is_any && strcmp(x->type, "image") != 0)
		return err_new(e, ERR_INVALID, "--type %s is not offered here", x->type);
	if (docker_image_object(&c->client, name, list, e) == 0)
		return 0;
	return e->kind == ERR_NOT_FOUND && is_any
	           ? err_new(e, ERR_INVALID, "Error: No such object: %s", name)
	           : -1;
}

static int inspect_run(struct verb_call *c, struct err *e)
{
	const struct inspect *x = c->opts;
	AUTO(json_decrefp) json_t *list = json_array();
	int status = 0;

	for (size_t i = 0; i < c->words.n; i++) {
		struct err one = { 0 };

		if (inspect_one(c, c->words.at[i], list, &one) == 0)
			continue;
		docker_say(c->verb, &c->client, &one);
		status = 1;
	}
	if (docker_print_objects(list, x->format, e) < 0)
		return -1;
	return status;
}

static int image_inspect_run(struct verb_call *c, struct err *e)
{
	struct inspect *x = c->opts;

	x->type = "image";
	return inspect_run(c, e);
}

/* clang-format off */
static const struct flag inspect_flags[] = {
	{ 'f',  FLAG_TEXT,   "format", offsetof(struct inspect, format), "TEMPLATE", "json, or TEMPLATE", NULL },
	{ 's',  FLAG_SWITCH, "size",   offsetof(struct inspect, has_size), NULL, "sizes are never counted", NULL },
	{ '\0', FLAG_TEXT,   "type",   offsetof(struct inspect, type), "container|image", "only one of this kind", NULL },
};
/* clang-format on */

const struct verb docker_inspect_cmd = {
	.name = "inspect",
	.usage = "[OPTIONS] NAME|ID [NAME|ID...]",
	.does = "Return low-level information on containers and images",
	.flags = inspect_flags,
	.n_flags = COUNT(inspect_flags),
	.opts_size = sizeof(struct inspect),
	.words_min = 1,
	.words_max = SIZE_MAX,
	.other = docker_word,
	.run = inspect_run
};

const struct verb docker_image_inspect_cmd = { .name = "inspect",
	                                       .usage = "[OPTIONS] IMAGE [IMAGE...]",
	                                       .does = "Display detailed information on images",
	                                       .flags = inspect_flags,
	                                       .n_flags = COUNT(inspect_flags),
	                                       .opts_size = sizeof(struct inspect),
	                                       .words_min = 1,
	                                       .words_max = SIZE_MAX,
	                                       .other = docker_word,
	                                       .run = image_inspect_run };
