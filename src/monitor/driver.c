#include "monitor/driver.h"

#include "base/limits.h"

#define STATUS_MAX 3 /* digits */
#define REPORT_MAX (SHELL_TEXT_MAX + STATUS_MAX + 1)
#define SCRIPT_MAX (4u << 20) /* with a dash before each line; the client's ceiling is lower */

/* bash where there is one. */
static const char look[] = "if [ -x /bin/bash ]; then exec /bin/bash -c \"$1\" bash \"$2\"; fi; "
			   "exec /bin/sh -c \"$1\" sh \"$2\"";

/* One line, so that the shell counts the lines of a script from 1. The condition of the inner loop
 * reports and reads, the body runs. A script may do what it likes:
 *   continue, break    lead back to the condition, which finds the exit status there
 *   set -e, -u, exit   end the shell, as they end a script; its exit status is the script's
 *   set -x, -a         are off while we work: nothing of ours is traced or exported; the script
 *                      turns them on again by a prefix of ours, if it can be parsed at all
 *   functions          named as a builtin are not called by us: `command`
 *   descriptors        SHELL_FD is closed in there; what it does to the number is undone
 * The first report comes before any script. No descriptor left, or nobody at the other end: the
 * condition fails, and the shell ends. */
static const char driver[] =
    "_cs_n=$1; shift; _cs_o= _cs_b=1; "
    "case ${BASH_VERSION:+b} in b) shopt -s expand_aliases;; esac; "
    "while command :; do while { _cs_r=$?; "
    "case $- in *x*) set +x; _cs_o=${_cs_o}x;; esac; "
    "case $- in *a*) set +a; _cs_o=${_cs_o}a;; esac; "
    "case $_cs_b in 1) "
    "command printf '%s\\0%s\\0%s\\0' \"$_cs_r\" \"${BASH_VERSION:+bash}\" \"${PWD-}\" >&9; "
    "command export -p >&9; command printf '\\0' >&9;; esac; "
    "unset _cs_r; _cs_s= _cs_b= _cs_m=; "
    "while IFS= command read -r _cs_l; do case $_cs_l in .) _cs_b=1; break;; "
    "-*) _cs_s=$_cs_s${_cs_l#-}$_cs_n;; *) _cs_m=$_cs_l;; esac; done <&9; "
    "case $_cs_o in ?*) _cs_s=\"_cs_o=; set -$_cs_o; $_cs_s\";; esac; "
    "case $_cs_b in '') ! command :;; esac; } >/dev/null 2>&1 || ! _cs_b=; do "
    "case $_cs_m in "
    "n) command eval \"$_cs_s\" 9>&- </dev/null;; "
    "nm) command eval \"$_cs_s\" 9>&- </dev/null 2>&1;; "
    "i) command eval \"$_cs_s\" 9>&-;; "
    "im) command eval \"$_cs_s\" 9>&- 2>&1;; "
    "q) command eval \"$_cs_s\" 9>&- </dev/null >/dev/null 2>&1;; "
    "esac; done; case $_cs_b in '') command exit 125;; esac; done";

const char *const driver_argv[DRIVER_ARGC] = { "/bin/sh", "-c", look, "sh", driver, "\n" };

/* ---- to the shell ------------------------------------------------------------------- */

void driver_script(struct str *out, struct driver_mode mode, const char *script)
{
	str_addf(out, "%s%s\n",
	         mode.is_quiet    ? "q"
	         : mode.has_stdin ? "i"
	                          : "n",
	         mode.is_merged && !mode.is_quiet ? "m" : "");
	for (const char *at = script;;) {
		size_t n = strcspn(at, "\n");

		str_add(out, "-");
		str_addn(out, at, n);
		str_add(out, "\n");
		if (!at[n])
			break;
		at += n + 1;
	}
	str_add(out, ".\n");
}

static void add_quoted(struct str *s, const char *text)
{
	str_add(s, "'");
	for (const char *at = text; *at;) {
		size_t n = strcspn(at, "'");

		str_addn(s, at, n);
		at += n;
		if (*at) {
			str_add(s, "'\\''");
			at++;
		}
	}
	str_add(s, "'");
}

/* Only what can be a name in a shell. */
static void add_names(struct str *s, const char *env, size_t n)
{
	for (; n > 0; n--, env += strlen(env) + 1) {
		size_t len =
		    strspn(env, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

		if (len > 0 && env[len] == '=' && !(env[0] >= '0' && env[0] <= '9'))
			str_addf(s, " %.*s", (int)len, env);
	}
}

/* What was unset stays unset: first all goes that a new shell has. */
void driver_restore_env(struct str *out, const char *text, const char *env, size_t n)
{
	AUTO(str_done) struct str s = { .max = SCRIPT_MAX };

	str_addf(&s, "case ${BASH_VERSION:+bash} in '%s') unset _", text);
	add_names(&s, env, n);
	str_add(&s, "; eval ");
	add_quoted(&s, shell_text_env(text));
	str_add(&s, " || :;; *) ! :;; esac");
	driver_script(out, (struct driver_mode){ .is_quiet = true }, str_text(&s));
}

/* The variables have set PWD: when the folder is gone, it is set right again. */
void driver_restore_cwd(struct str *out, const char *text)
{
	AUTO(str_done) struct str s = { .max = SCRIPT_MAX };

	str_add(&s, "cd -- ");
	add_quoted(&s, shell_text_cwd(text));
	str_add(&s, " || { cd -P .; ! :; }");
	driver_script(out, (struct driver_mode){ .is_quiet = true }, str_text(&s));
}

/* ---- from the shell ----------------------------------------------------------------- */

static bool is_status(const struct driver_report *r)
{
	size_t n = strspn(str_text(&r->text), "0123456789");

	return n > 0 && n <= STATUS_MAX && n == strlen(str_text(&r->text)) &&
	       strtoul(str_text(&r->text), NULL, 10) <= 255;
}

/* What follows the last NUL is nothing that anybody has asked for. */
enum driver_word driver_hear(struct driver_report *r, const char *bytes, size_t n)
{
	r->text.max = REPORT_MAX;
	for (size_t i = 0; i < n; i++) {
		if (r->nuls == 4)
			return DRIVER_GARBAGE;
		r->nuls += bytes[i] == '\0';
	}
	size_t room = REPORT_MAX - r->text.len;
	str_addn(&r->text, bytes, n < room ? n : room);
	if (r->nuls == 0 && r->text.len > STATUS_MAX)
		return DRIVER_GARBAGE;
	if (r->nuls > 0 && !is_status(r))
		return DRIVER_GARBAGE;
	return r->nuls == 4 ? DRIVER_WHOLE : DRIVER_PART;
}

void driver_report_done(struct driver_report *r)
{
	str_done(&r->text);
	r->nuls = 0;
}

/* The i-th string of a report; NULL: it was cut off. */
static const char *field(const struct str *report, unsigned int i)
{
	const char *at = str_text(report), *end = at + report->len;

	for (; at < end; i--) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));

		if (!nul || i == 0)
			return nul ? at : NULL;
		at = nul + 1;
	}
	return NULL;
}

static void put(struct str *state, const char *const texts[3])
{
	struct str s = { .max = SHELL_TEXT_MAX };

	for (size_t i = 0; i < 3; i++)
		str_addn(&s, texts[i], strlen(texts[i]) + 1);
	if (s.overflow) {
		str_done(&s);
		return;
	}
	str_done(state);
	*state = s;
}

int driver_read(const struct driver_report *r, struct str *state, bool *is_whole)
{
	const char *was = state->len > 0 ? state->data : "\0\0";
	const char *kind = field(&r->text, 1), *cwd = field(&r->text, 2), *env = field(&r->text, 3);
	bool has_cwd = cwd && cwd[0] == '/' && strlen(cwd) < PATH_TEXT_MAX;

	*is_whole = env != NULL;
	put(state, (const char *const[]){ kind && strcmp(kind, "bash") == 0 ? "bash" : "",
	                                  has_cwd ? cwd : shell_text_cwd(was),
	                                  env ? env : shell_text_env(was) });
	return (int)strtoul(str_text(&r->text), NULL, 10);
}
