/*
 * docker_words.c - options that fill no field: what always holds here, what means nothing here and
 * is said so, what is refused and why; and Docker's words for what it does not know either.
 */
#include "cli/docker-internal.h"

enum verdict { HOLDS, WARNS, REFUSED };

struct word {
	const char *name;
	char letter;
	bool is_switch;
	enum verdict verdict;
	const char *holds; /* values for which it holds whatever the verdict, with spaces around */
	const char *why;
};

#define NO_HOST "a sandbox shares nothing with the host"
#define ONE_NET "a sandbox has a loopback of its own and the gate, and no other network"

/* clang-format off */
static const struct word run_words[] = {
	{ "init", 0, true, HOLDS, NULL, NULL },
	{ "no-healthcheck", 0, true, HOLDS, NULL, NULL },
	{ "disable-content-trust", 0, true, HOLDS, NULL, NULL },
	{ "oom-kill-disable", 0, true, REFUSED, " false ", "whoever runs out of memory ends" },
	{ "sig-proxy", 0, true, REFUSED, " true ", "signals are passed on" },
	{ "expose", 0, false, HOLDS, NULL, NULL },
	{ "memory-swap", 0, false, HOLDS, NULL, NULL }, /* there is no swap in any case */
	{ "memory-swappiness", 0, false, HOLDS, NULL, NULL },
	{ "pull", 0, false, REFUSED, " missing never ", "images are imported, never pulled: caisson image import NAME FILE" },
	{ "log-driver", 0, false, REFUSED, " json-file local ", "`logs` has what a command writes, and nobody else gets it" },
	{ "security-opt", 0, false, REFUSED, " no-new-privileges no-new-privileges:true no-new-privileges=true ", "the walls are the same for everybody: docs/ARCHITECTURE.md" },
	{ "userns", 0, false, REFUSED, NULL, NO_HOST },
	{ "ipc", 0, false, REFUSED, " private none ", NO_HOST },
	{ "pid", 0, false, REFUSED, " private ", NO_HOST },
	{ "uts", 0, false, REFUSED, " private ", NO_HOST },
	{ "cgroupns", 0, false, REFUSED, " private ", NO_HOST },
	{ "cgroup-parent", 0, false, REFUSED, NULL, NO_HOST },
	{ "privileged", 0, true, REFUSED, " false ", "there is no way to switch the walls off; root inside may install packages" },
	{ "device", 0, false, REFUSED, NULL, "devices of the host are never inside" },
	{ "device-cgroup-rule", 0, false, REFUSED, NULL, "devices of the host are never inside" },
	{ "gpus", 0, false, REFUSED, NULL, "devices of the host are never inside" },
	{ "volumes-from", 0, false, REFUSED, NULL, "name the folders: -v SRC:AT:ro, -v SRC:AT:O, -v WORKSPACE:AT" },
	{ "volume-driver", 0, false, REFUSED, " local ", "a volume is a workspace" },
	{ "attach", 'a', false, REFUSED, NULL, "say -i for its input, -d for neither input nor output" },
	{ "runtime", 0, false, REFUSED, NULL, "there is one, and it is none of Docker's" },
	{ "isolation", 0, false, REFUSED, " default ", "there is one" },
	{ "oom-score-adj", 0, false, REFUSED, " 0 ", "each sandbox has memory of its own: --memory" },
	{ "sysctl", 0, false, REFUSED, NULL, "settings of the kernel are the host's" },
	{ "group-add", 0, false, REFUSED, NULL, "say --user UID:GID" },
	{ "cpu-quota", 0, false, REFUSED, NULL, "say --cpus" },
	{ "cpu-period", 0, false, REFUSED, NULL, "say --cpus" },
	{ "link", 0, false, REFUSED, NULL, ONE_NET },
	{ "ip", 0, false, REFUSED, NULL, ONE_NET },
	{ "ip6", 0, false, REFUSED, NULL, ONE_NET },
	{ "mac-address", 0, false, REFUSED, NULL, ONE_NET },
	{ "network-alias", 0, false, REFUSED, NULL, ONE_NET },
	{ "net-alias", 0, false, REFUSED, NULL, ONE_NET },
	{ "add-host", 0, false, REFUSED, NULL, "names are looked up by the gate: --network allow:HOST" },
	{ "dns", 0, false, REFUSED, NULL, "names are looked up by the gate: --network allow:HOST" },
	{ "dns-search", 0, false, REFUSED, NULL, "names are looked up by the gate: --network allow:HOST" },
	{ "dns-option", 0, false, REFUSED, NULL, "names are looked up by the gate: --network allow:HOST" },
	{ "hostname", 'h', false, WARNS, " caisson ", "--hostname: inside it is `caisson`" },
	{ "domainname", 0, false, WARNS, NULL, "--domainname: there is none inside" },
	{ "shm-size", 0, false, WARNS, NULL, "--shm-size: /dev/shm is part of the scratch space (--storage-opt size=)" },
	{ "memory-reservation", 0, false, WARNS, NULL, "--memory-reservation: only --memory bounds" },
	{ "kernel-memory", 0, false, WARNS, NULL, "--kernel-memory: counted with --memory" },
	{ "cpu-shares", 'c', false, WARNS, NULL, "--cpu-shares: only --cpus bounds" },
	{ "cpuset-cpus", 0, false, WARNS, NULL, "--cpuset-cpus: only --cpus bounds" },
	{ "cpuset-mems", 0, false, WARNS, NULL, "--cpuset-mems: only --memory bounds" },
	{ "blkio-weight", 0, false, WARNS, NULL, "--blkio-weight: nothing is weighed" },
	{ "log-opt", 0, false, WARNS, NULL, "--log-opt: a log keeps its first and last bytes" },
	{ "annotation", 0, false, WARNS, NULL, "--annotation: use --label" },
	{ "health-cmd", 0, false, WARNS, NULL, "--health-cmd: nobody looks at health" },
	{ "health-interval", 0, false, WARNS, NULL, "--health-interval: nobody looks at health" },
	{ "health-retries", 0, false, WARNS, NULL, "--health-retries: nobody looks at health" },
	{ "health-start-period", 0, false, WARNS, NULL, "--health-start-period: nobody looks at health" },
	{ "health-timeout", 0, false, WARNS, NULL, "--health-timeout: nobody looks at health" },
	{ "detach-keys", 0, false, WARNS, NULL, "--detach-keys: there are none here" },
};

static const struct word words[] = {
	{ "privileged", 0, true, REFUSED, " false ", "there is no way to switch the walls off" },
	{ "detach-keys", 0, false, WARNS, NULL, "--detach-keys: there are none here" },
};
/* clang-format on */

void docker_warn(const char *text)
{
	fprintf(stderr, "WARNING: %s\n", text);
}

static bool is_listed(const char *list, const char *value)
{
	char word[NAME_TEXT_MAX];

	snprintf(word, sizeof word, " %s ", value);
	return list && strstr(list, word);
}

static int judge(const struct word *w, const char *value, struct err *e)
{
	if (w->verdict == HOLDS || is_listed(w->holds, value))
		return 1;
	if (w->verdict == WARNS) {
		docker_warn(w->why);
		return 1;
	}
	return err_new(e, ERR_INVALID, "--%s%s%s is refused: %s", w->name, w->is_switch ? "" : " ",
	               w->is_switch ? "" : value, w->why);
}

/* Whether it is this option; `value` is behind the equals sign, or NULL. */
static bool is_word(const struct word *w, const char *text, const char **value)
{
	size_t n = strlen(w->name);

	*value = NULL;
	if (w->letter && text[1] == w->letter && text[1] != '-') {
		*value = text[2] ? text + 2 : NULL;
		return true;
	}
	if (strncmp(text, "--", 2) != 0 || strncmp(text + 2, w->name, n) != 0 ||
	    (text[2 + n] && text[2 + n] != '='))
		return false;
	*value = text[2 + n] ? text + 3 + n : NULL;
	return true;
}

static int unknown(const char *text, struct err *e)
{
	if (text[1] == '-')
		return err_new(e, ERR_INVALID, "unknown flag: %.*s", (int)strcspn(text, "="), text);
	return err_new(e, ERR_INVALID, "unknown shorthand flag: '%c' in %s", text[1], text);
}

static int take(const struct word *table, size_t n, int argc, char **argv, int *i, struct err *e)
{
	const char *value;

	for (size_t k = 0; k < n; k++) {
		if (!is_word(&table[k], argv[*i], &value))
			continue;
		if (!value && table[k].is_switch)
			value = "true";
		if (!value && *i + 1 >= argc)
			return err_new(e, ERR_INVALID, "flag needs an argument: %s", argv[*i]);
		return judge(&table[k], value ? value : argv[++*i], e);
	}
	return unknown(argv[*i], e);
}

int docker_run_word(void *into, int argc, char **argv, int *i, struct err *e)
{
	(void)into;
	return take(run_words, COUNT(run_words), argc, argv, i, e);
}

int docker_word(void *into, int argc, char **argv, int *i, struct err *e)
{
	(void)into;
	return take(words, COUNT(words), argc, argv, i, e);
}
