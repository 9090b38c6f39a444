#include "wire/later.h"

#include "base/str.h"
#include "wire/jsonwalk.h"

#define NAME_MAX_BYTES 255 /* of a part of a path; no file system of Linux has longer ones */
#define TEXT_MAX (4u << 20)

/* ---- the table ----------------------------------------------------------------------- */

static const char of_git[] = "git takes commands from it";
static const char of_ci[] = "a CI service executes it";
static const char of_build[] = "a build executes it";
static const char of_shell[] = "a shell or version manager reads it when the folder is entered";
static const char of_editor[] = "an editor takes commands from it";
static const char of_agent[] = "a coding agent takes orders from it";
static const char of_hooks[] = "a manager of git hooks executes it";
static const char of_package[] = "a package manager takes commands from it";
static const char of_test[] = "a test runner executes it";
static const char of_container[] = "it builds or starts containers";

/* A pattern has one * at most, and small letters. With a slash behind: all that lies below a folder
 * of that name, wherever it is. */
/* clang-format off */
static const struct {
	const char *pattern, *why;
} names[] = {
	{ ".git/",                   of_git },
	{ ".git",                    of_git },
	{ "git~1/",                  of_git },
	{ "git~1",                   of_git },
	{ ".gitattributes",          of_git },
	{ ".gitmodules",             of_git },
	{ ".gitconfig",              of_git },
	{ ".lfsconfig",              of_git },
	{ "*.git/",                  of_git }, /* a bare repository, */
	{ "head",                    of_git }, /* or one that does not say so */
	{ ".githooks/",              of_hooks },
	{ ".husky/",                 of_hooks },
	{ ".huskyrc*",               of_hooks },
	{ ".lefthook*",              of_hooks },
	{ "lefthook*",               of_hooks },
	{ ".pre-commit-*",           of_hooks },
	{ ".overcommit.yml",         of_hooks },
	{ ".lintstagedrc*",          of_hooks },

	{ ".github/",                of_ci },
	{ ".gitea/",                 of_ci },
	{ ".forgejo/",               of_ci },
	{ ".gitlab/",                of_ci },
	{ ".gitlab-ci*",             of_ci },
	{ ".circleci/",              of_ci },
	{ ".buildkite/",             of_ci },
	{ ".woodpecker/",            of_ci },
	{ ".woodpecker.y*",          of_ci },
	{ ".teamcity/",              of_ci },
	{ ".semaphore/",             of_ci },
	{ ".builds/",                of_ci },
	{ ".build.yml",              of_ci },
	{ ".travis.y*",              of_ci },
	{ ".drone.*",                of_ci },
	{ ".cirrus.*",               of_ci },
	{ ".appveyor.y*",            of_ci },
	{ "appveyor.y*",             of_ci },
	{ "azure-pipelines*",        of_ci },
	{ "bitbucket-pipelines.y*",  of_ci },
	{ "buildspec*",              of_ci },
	{ "cloudbuild*",             of_ci },
	{ "jenkinsfile*",            of_ci },
	{ ".onedev-buildspec.yml",   of_ci },
	{ "codemagic.yaml",          of_ci },
	{ "netlify.toml",            of_ci },
	{ "vercel.json",             of_ci },
	{ "procfile*",               of_ci },

	{ "makefile*",               of_build },
	{ "gnumakefile*",            of_build },
	{ "*.mk",                    of_build },
	{ "*.mak",                   of_build },
	{ "cmakelists.txt",          of_build },
	{ "*.cmake",                 of_build },
	{ "cmakepresets.json",       of_build },
	{ "cmakeuserpresets.json",   of_build },
	{ "meson.build",             of_build },
	{ "meson.options",           of_build },
	{ "meson_options.txt",       of_build },
	{ "build.ninja",             of_build },
	{ "configure",               of_build },
	{ "configure.*",             of_build },
	{ "*.m4",                    of_build },
	{ "build.rs",                of_build },
	{ ".cargo/",                 of_build },
	{ "build.gradle*",           of_build },
	{ "settings.gradle*",        of_build },
	{ "gradle.properties",       of_build },
	{ "gradlew*",                of_build },
	{ "gradle/",                 of_build },
	{ "buildsrc/",               of_build },
	{ "pom.xml",                 of_build },
	{ "mvnw*",                   of_build },
	{ ".mvn/",                   of_build },
	{ "build.xml",               of_build },
	{ "build.sbt",               of_build },
	{ "build.zig*",              of_build },
	{ "build",                   of_build },
	{ "build.bazel",             of_build },
	{ "*.bzl",                   of_build },
	{ "workspace",               of_build },
	{ "workspace.bazel",         of_build },
	{ "module.bazel",            of_build },
	{ ".bazelrc",                of_build },
	{ ".bazelversion",           of_build },
	{ "scons*",                  of_build },
	{ "wscript",                 of_build },
	{ "rakefile*",               of_build },
	{ "*.rake",                  of_build },
	{ "justfile",                of_build },
	{ ".justfile",               of_build },
	{ "taskfile*",               of_build },
	{ "earthfile",               of_build },
	{ "magefile*",               of_build },
	{ "dune",                    of_build },
	{ "package.swift",           of_build },
	{ "setup.py",                of_build },
	{ "setup.cfg",               of_build },
	{ "pyproject.toml",          of_build },
	{ "*.gemspec",               of_build },
	{ "gemfile*",                of_build },
	{ "binding.gyp",             of_build },
	{ "*.gyp",                   of_build },
	{ "*.gypi",                  of_build },
	{ "gruntfile*",              of_build },
	{ "gulpfile*",               of_build },
	{ "webpack.*",               of_build },
	{ "rollup.config.*",         of_build },
	{ "vite.config.*",           of_build },
	{ "next.config.*",           of_build },
	{ "babel.config.*",          of_build },
	{ ".babelrc*",               of_build },
	{ "postcss.config.*",        of_build },
	{ "tailwind.config.*",       of_build },
	{ "eslint.config.*",         of_build },
	{ ".eslintrc*",              of_build },
	{ ".prettierrc*",            of_build },
	{ "prettier.config.*",       of_build },
	{ "*.csproj",                of_build },
	{ "*.vcxproj",               of_build },
	{ "*.targets",               of_build },
	{ "*.props",                 of_build },
	{ "*.nix",                   of_build },
	{ "flake.lock",              of_build },
	{ "guix.scm",                of_build },

	{ "conftest.py",             of_test },
	{ "sitecustomize.py",        of_test },
	{ "usercustomize.py",        of_test },
	{ "*.pth",                   of_test },
	{ "tox.ini",                 of_test },
	{ "pytest.ini",              of_test },
	{ "noxfile.py",              of_test },
	{ "jest.config.*",           of_test },
	{ "vitest.*",                of_test },
	{ "playwright.config.*",     of_test },
	{ "cypress.config.*",        of_test },
	{ "karma.conf.*",            of_test },
	{ ".mocharc*",               of_test },
	{ ".rspec",                  of_test },

	{ ".npmrc",                  of_package },
	{ ".yarnrc*",                of_package },
	{ ".yarn/",                  of_package },
	{ ".pnp.*",                  of_package },
	{ ".pnpmfile.*",             of_package },
	{ "pnpm-workspace.yaml",     of_package },
	{ "bunfig.toml",             of_package },
	{ "node_modules/",           of_package },
	{ "pip.conf",                of_package },
	{ ".pypirc",                 of_package },

	{ ".envrc",                  of_shell },
	{ ".env",                    of_shell },
	{ ".env.*",                  of_shell },
	{ ".bashrc",                 of_shell },
	{ ".bash_*",                 of_shell },
	{ ".profile",                of_shell },
	{ ".zsh*",                   of_shell },
	{ ".zprofile",               of_shell },
	{ ".autoenv*",               of_shell },
	{ ".tool-versions",          of_shell },
	{ "mise*.toml",              of_shell },
	{ ".mise*",                  of_shell },
	{ ".mise/",                  of_shell },
	{ ".asdfrc",                 of_shell },
	{ ".nvmrc",                  of_shell },
	{ ".rtx.toml",               of_shell },
	{ "devbox.json",             of_shell },
	{ "devenv.*",                of_shell },
	{ ".direnv/",                of_shell },

	{ ".vscode/",                of_editor },
	{ "*.code-workspace",        of_editor },
	{ ".idea/",                  of_editor },
	{ "*.iml",                   of_editor },
	{ ".run/",                   of_editor },
	{ ".fleet/",                 of_editor },
	{ ".zed/",                   of_editor },
	{ ".vs/",                    of_editor },
	{ ".vim/",                   of_editor },
	{ ".nvim*",                  of_editor },
	{ ".exrc",                   of_editor },
	{ ".vimrc",                  of_editor },
	{ ".gvimrc",                 of_editor },
	{ ".lvimrc",                 of_editor },
	{ ".dir-locals*.el",         of_editor },
	{ ".sublime/",               of_editor },
	{ "*.sublime-project",       of_editor },
	{ ".gdbinit",                of_editor },
	{ ".lldbinit",               of_editor },
	{ ".ipython/",               of_editor },
	{ ".devcontainer/",          of_container },
	{ ".devcontainer.json",      of_container },
	{ "dockerfile*",             of_container },
	{ "*.dockerfile",            of_container },
	{ "containerfile*",          of_container },
	{ "docker-compose*",         of_container },
	{ "compose.*",               of_container },
	{ "vagrantfile",             of_container },
	{ "*.tf",                    of_container },
	{ "tiltfile",                of_container },

	{ ".mcp.json",               of_agent },
	{ "mcp.json",                of_agent },
	{ "agents*.md",              of_agent },
	{ ".agents/",                of_agent },
	{ "claude*.md",              of_agent },
	{ ".claude/",                of_agent },
	{ ".claude.json",            of_agent },
	{ "gemini.md",               of_agent },
	{ ".gemini/",                of_agent },
	{ ".codex/",                 of_agent },
	{ ".cursor/",                of_agent },
	{ ".cursorrules",            of_agent },
	{ ".cursorignore",           of_agent },
	{ ".windsurf/",              of_agent },
	{ ".windsurfrules",          of_agent },
	{ ".clinerules*",            of_agent },
	{ ".clinerules/",            of_agent },
	{ ".roo/",                   of_agent },
	{ ".roomodes",               of_agent },
	{ ".continue/",              of_agent },
	{ ".continuerc*",            of_agent },
	{ ".aider*",                 of_agent },
	{ ".opencode/",              of_agent },
	{ "opencode.json*",          of_agent },
	{ ".goosehints",             of_agent },
	{ ".junie/",                 of_agent },
	{ ".kiro/",                  of_agent },
	{ ".amazonq/",               of_agent },
	{ "caisson.y*ml",            "it says what a sandbox may do" },
};
/* clang-format on */

/* Of these only some members are commands. */
static const struct {
	const char *name;
	const char *keys[8];
	const char *why;
} texts[] = {
	{ "package.json",
	  { "scripts", "simple-git-hooks", "husky", "lint-staged", "pre-commit", "pre-push",
	    "packageManager" },
	  "its scripts are other ones" },
	{ "composer.json", { "scripts" }, "its scripts are other ones" },
	{ "deno.json", { "tasks" }, "its tasks are other ones" },
};

/* ---- names --------------------------------------------------------------------------- */

/* A character that HFS+ does not see, or that is a letter of ASCII without regard to case. */
static const struct {
	char bytes[4];
	char letter; /* 0: nothing */
} folded[] = {
	{ "\xe2\x80\x8c", 0 }, { "\xe2\x80\x8d", 0 },   { "\xe2\x80\x8e", 0 },
	{ "\xe2\x80\x8f", 0 }, { "\xe2\x80\xaa", 0 },   { "\xe2\x80\xab", 0 },
	{ "\xe2\x80\xac", 0 }, { "\xe2\x80\xad", 0 },   { "\xe2\x80\xae", 0 },
	{ "\xe2\x81\xaa", 0 }, { "\xe2\x81\xab", 0 },   { "\xe2\x81\xac", 0 },
	{ "\xe2\x81\xad", 0 }, { "\xe2\x81\xae", 0 },   { "\xe2\x81\xaf", 0 },
	{ "\xef\xbb\xbf", 0 }, { "\xe2\x84\xaa", 'k' }, { "\xc5\xbf", 's' },
};

struct part {
	char text[NAME_MAX_BYTES + 1];
	size_t n;
};

/* How many bytes of it are one of these characters. */
static size_t fold_one(const char *at, size_t left, struct part *out)
{
	for (size_t i = 0; i < COUNT(folded); i++) {
		size_t n = strlen(folded[i].bytes);

		if (n > left || memcmp(at, folded[i].bytes, n) != 0)
			continue;
		if (folded[i].letter)
			out->text[out->n++] = folded[i].letter;
		return n;
	}
	return 0;
}

/* As the most generous file system would find it; the input has at most NAME_MAX_BYTES. */
static void fold(struct span s, struct part *out)
{
	size_t n;

	out->n = 0;
	for (size_t i = 0; i < s.len; i += n) {
		n = fold_one(s.at + i, s.len - i, out);
		if (n > 0)
			continue;
		n = 1;
		out->text[out->n++] = (char)span_lower(s.at[i]);
	}
	const char *stream = memchr(out->text, ':', out->n); /* NTFS: of the same file */
	if (stream && stream > out->text)
		out->n = (size_t)(stream - out->text);
	while (out->n > 0 && (out->text[out->n - 1] == ' ' || out->text[out->n - 1] == '.'))
		out->n--;
	out->text[out->n] = '\0';
}

/* "MAKEFI~1": on NTFS the other name of any file. */
static bool is_short_name(const struct part *p)
{
	const char *tilde = memchr(p->text, '~', p->n < 8 ? p->n : 8);

	if (!tilde || tilde == p->text || tilde[1] < '0' || tilde[1] > '9')
		return false;
	size_t digits = strspn(tilde + 1, "0123456789");
	return tilde[1 + digits] == '\0' || tilde[1 + digits] == '.';
}

static bool fits(const char *pattern, size_t n, const struct part *p)
{
	const char *star = memchr(pattern, '*', n);
	size_t head = star ? (size_t)(star - pattern) : n, tail = star ? n - head - 1 : 0;

	if (star ? p->n < head + tail : p->n != n)
		return false;
	return memcmp(p->text, pattern, head) == 0 &&
	       (tail == 0 || memcmp(p->text + p->n - tail, star + 1, tail) == 0);
}

static const char *why_name(const struct part *p, bool is_folder)
{
	for (size_t i = 0; i < COUNT(names); i++) {
		size_t n = strlen(names[i].pattern);
		bool is_below = names[i].pattern[n - 1] == '/';

		if (is_below == is_folder && fits(names[i].pattern, n - is_below, p))
			return names[i].why;
	}
	return is_short_name(p) ? "on some file systems it is the short name of another file"
	                        : NULL;
}

/* The next part of a path; false at its end. */
static bool next_part(struct span *rest, struct span *part)
{
	while (rest->len > 0 && rest->at[0] == '/')
		*rest = span_after(*rest, 1);
	const char *end = rest->len ? memchr(rest->at, '/', rest->len) : NULL;

	*part = (struct span){ rest->at, end ? (size_t)(end - rest->at) : rest->len };
	*rest = span_after(*rest, part->len);
	return part->len > 0;
}

static const char *why_path(struct span path)
{
	struct span rest = path, part;
	struct part folder;
	const char *why;

	while (next_part(&rest, &part)) {
		if (part.len > NAME_MAX_BYTES)
			return "its name is too long";
		fold(part, &folder);
		why = why_name(&folder, rest.len > 0);
		if (why)
			return why;
	}
	return NULL;
}

bool later_is_git(struct span path)
{
	struct span part;

	while (next_part(&path, &part))
		if (span_is(part, ".git"))
			return true;
	return false;
}

/* ---- links --------------------------------------------------------------------------- */

/* `..` only in front, and not more often than the link is deep: behind a name it could be taken
 * from another link's target. */
static const char *why_link(struct span path, struct span target)
{
	struct span part;
	size_t depth = 0, up = 0, down = 0;

	if (target.len == 0 || target.at[0] == '/')
		return "a link that leads out of the tree";
	while (next_part(&path, &part))
		depth++;
	for (struct span rest = target; next_part(&rest, &part);) {
		if (!span_is(part, "..") && !span_is(part, "."))
			down++;
		else if (span_is(part, "..") && (down > 0 || ++up >= depth))
			return "a link that leads out of the tree";
	}
	for (struct span rest = target; next_part(&rest, &part);) {
		struct part folder;

		if (part.len > NAME_MAX_BYTES)
			return "its name is too long";
		fold(part, &folder);
		if (strcmp(folder.text, ".git") == 0 || is_short_name(&folder))
			return "a link into a git folder";
	}
	return NULL;
}

/* ---- what is in it ------------------------------------------------------------------- */

struct gather {
	const char *const *keys;
	struct str out;
};

/* Every text below one of the keys, with its path. A key that is no ASCII is none of ours. */
static void gather_text(void *arg, const struct jsonwalk_path *p, struct span raw)
{
	struct gather *g = arg;
	char key[32];
	size_t i = 0;

	if (p->depth == 0 || !p->keys[0].at || jsonwalk_ascii(p->keys[0], key, sizeof key) < 0)
		return;
	while (g->keys[i] && strcmp(g->keys[i], key) != 0)
		i++;
	if (!g->keys[i])
		return;
	for (i = 0; i < p->depth; i++) {
		if (p->keys[i].at)
			str_addn(&g->out, p->keys[i].at, p->keys[i].len);
		str_addn(&g->out, "", 1);
	}
	str_addn(&g->out, raw.at, raw.len);
	str_addn(&g->out, "", 1);
}

static const char *why_text(size_t row, struct span before, struct span after)
{
	static const struct jsonwalk_ops ops = { .text = gather_text };
	struct gather was = { texts[row].keys, { .max = TEXT_MAX } };
	struct gather is = { texts[row].keys, { .max = TEXT_MAX } };
	const char *why = NULL;

	if (!after.at || jsonwalk(after, &ops, &is) < 0 || is.out.overflow)
		why = "what it executes cannot be read";
	else if (before.at && jsonwalk(before, &ops, &was) < 0)
		why = is.out.len > 0 ? texts[row].why : NULL;
	else if (was.out.overflow || was.out.len != is.out.len ||
	         (is.out.len > 0 && memcmp(was.out.data, is.out.data, is.out.len) != 0))
		why = texts[row].why;
	str_done(&was.out);
	str_done(&is.out);
	return why;
}

static size_t text_row(struct span path)
{
	struct span part, last = { "", 0 };
	struct part name;
	size_t i = 0;

	while (next_part(&path, &part))
		last = part;
	if (last.len > NAME_MAX_BYTES)
		return COUNT(texts);
	fold(last, &name);
	while (i < COUNT(texts) && strcmp(texts[i].name, name.text) != 0)
		i++;
	return i;
}

bool later_reads(struct span path)
{
	return text_row(path) < COUNT(texts);
}

const char *later_why(const struct later_file *f)
{
	const char *why = f->mode & 06000 ? "it executes with the rights of its owner" : NULL;
	size_t row = text_row(f->path);

	if (!why && f->target)
		why = why_link(f->path, span_of(f->target));
	if (!why)
		why = why_path(f->path);
	if (!why && row < COUNT(texts) && !f->target)
		why = why_text(row, f->before, f->after);
	if (!why && (f->mode & 0111) && !f->was_executable)
		why = "it becomes executable";
	return why;
}
