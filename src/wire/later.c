#include "wire/later.h"

#include <fnmatch.h>

#include "base/str.h"
#include "wire/fold.h"
#include "wire/jsonwalk.h"

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
static const char of_deploy[] = "a deployment takes commands from it";
static const char of_vcs[] = "a version control system takes commands from it";
static const char of_repl[] = "an interpreter, debugger or linter executes it";
static const char of_config[] = "a tool loads it as code or settings";
static const char of_desktop[] = "a desktop or web server takes commands from it";

/* Patterns have small letters. With a slash behind: all that lies below a folder of that name,
 * wherever it is. */
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
	{ ".hg/",                    of_vcs },
	{ ".hg",                     of_vcs },
	{ ".hgrc",                   of_vcs },
	{ ".svn/",                   of_vcs },
	{ ".svn",                    of_vcs },
	{ ".jj/",                    of_vcs },
	{ ".jj",                     of_vcs },
	{ ".bzr/",                   of_vcs },
	{ ".sl/",                    of_vcs },
	{ ".fossil-settings/",       of_vcs },
	{ ".githooks/",              of_hooks },
	{ ".husky/",                 of_hooks },
	{ ".huskyrc*",               of_hooks },
	{ ".lefthook*",              of_hooks },
	{ "lefthook*",               of_hooks },
	{ ".pre-commit-*",           of_hooks },
	{ ".overcommit.yml",         of_hooks },
	{ "captainhook.json",        of_hooks },
	{ "grumphp.y*ml",            of_hooks },
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
	{ "dagger.json",             of_ci },
	{ ".dagger/",                of_ci },
	{ "dangerfile*",             of_ci },
	{ "fastfile",                of_ci },
	{ "fastlane/",               of_ci },

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
	{ "cargo.toml",                of_build },
	{ "mix.exs",                   of_build },
	{ "go.mod",                    of_build },
	{ "go.work",                   of_build },
	{ "*.gradle",                  of_build },
	{ "*.gradle.kts",              of_build },
	{ "project.clj",               of_build },
	{ "deps.edn",                  of_build },
	{ "bb.edn",                    of_build },
	{ "shadow-cljs.edn",           of_build },
	{ "build.boot",                of_build },
	{ "stack.yaml",                of_build },
	{ "cabal.project*",            of_build },
	{ "*.cabal",                   of_build },
	{ "package.yaml",              of_build },
	{ "setup.hs",                  of_build },
	{ "rebar.config",              of_build },
	{ "*.nimble",                  of_build },
	{ "config.nims",               of_build },
	{ "nim.cfg",                   of_build },
	{ "dub.json",                  of_build },
	{ "dub.sdl",                   of_build },
	{ "shard.yml",                 of_build },
	{ "pubspec.yaml",              of_build },
	{ "*.fsproj",                  of_build },
	{ "*.vbproj",                  of_build },
	{ "*.proj",                    of_build },
	{ "*.sln",                     of_build },
	{ "*.slnx",                    of_build },
	{ "nuget.config",              of_build },
	{ "global.json",               of_build },
	{ "angular.json",              of_build },
	{ "project.json",              of_build },
	{ "turbo.json",                of_build },
	{ "nx.json",                   of_build },
	{ "lerna.json",                of_build },
	{ "rush.json",                 of_build },
	{ "tsconfig*.json",            of_build },
	{ "jsconfig*.json",            of_build },
	{ "deno.jsonc",                of_build },
	{ "brunch-config.*",           of_build },
	{ "ember-cli-build.*",         of_build },
	{ "gatsby-*.js",               of_build },
	{ "gatsby-*.ts",               of_build },
	{ "jakefile*",                 of_build },
	{ "cakefile",                  of_build },
	{ "knexfile*",                 of_build },
	{ "nodemon.json",              of_build },
	{ "hatch_build.py",            of_build },
	{ "tasks.py",                  of_build },
	{ "fabfile.py",                of_build },
	{ "dodo.py",                   of_build },
	{ "conf.py",                   of_build },
	{ "mkdocs.y*ml",               of_build },
	{ "book.toml",                 of_build },
	{ "doxyfile*",                 of_build },
	{ "snakefile*",                of_build },
	{ "nextflow.config",           of_build },
	{ "dvc.yaml",                  of_build },
	{ "mlproject",                 of_build },
	{ "makevars*",                 of_build },
	{ "conanfile.*",               of_build },
	{ "vcpkg.json",                of_build },
	{ "vcpkg-configuration.json",  of_build },
	{ "xmake.lua",                 of_build },
	{ "premake*.lua",              of_build },
	{ "buck",                      of_build },
	{ "targets",                   of_build },
	{ "pants.toml",                of_build },
	{ "tupfile*",                  of_build },
	{ "*.ninja",                   of_build },
	{ "robofile.php",              of_build },
	{ "artisan",                   of_build },
	{ "capfile",                   of_build },
	{ "thorfile",                  of_build },
	{ "guardfile",                 of_build },
	{ "config.ru",                 of_build },
	{ "pixi.toml",                 of_build },

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
	{ "phpunit.xml*",              of_test },
	{ "phpstan.neon*",             of_test },
	{ "psalm.xml*",                of_test },
	{ "*.conf.js",                 of_test },
	{ "*.conf.ts",                 of_test },
	{ "*.conf.mjs",                of_test },
	{ "*.conf.cjs",                of_test },
	{ ".pytest.ini",               of_test },
	{ "nose.cfg",                  of_test },

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
	{ "requirements*.txt",         of_package },
	{ "constraints*.txt",          of_package },
	{ "uv.toml",                   of_package },
	{ "poetry.toml",               of_package },
	{ "pipfile*",                  of_package },
	{ "environment.y*ml",          of_package },
	{ "podfile*",                  of_package },
	{ "cartfile*",                 of_package },
	{ "brewfile*",                 of_package },
	{ "berksfile*",                of_package },
	{ "appraisals",                of_package },

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
	{ ".rprofile",                 of_repl },
	{ "rprofile.site",             of_repl },
	{ ".renviron",                 of_repl },
	{ ".ghci",                     of_repl },
	{ ".haskeline",                of_repl },
	{ ".ocamlinit",                of_repl },
	{ ".pdbrc",                    of_repl },
	{ ".pylintrc",                 of_repl },
	{ "pylintrc",                  of_repl },
	{ ".pythonrc*",                of_repl },
	{ ".irbrc",                    of_repl },
	{ ".pryrc",                    of_repl },
	{ ".iex.exs",                  of_repl },
	{ ".perltidyrc",               of_repl },
	{ ".perlcriticrc",             of_repl },
	{ ".guile",                    of_repl },
	{ ".sbclrc",                   of_repl },
	{ ".clisprc*",                 of_repl },
	{ ".luacheckrc",               of_repl },
	{ ".lldbinit*",                of_repl },
	{ ".gdbinit*",                 of_repl },
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
	{ ".gitpod*",                of_container },
	{ ".replit",                 of_container },
	{ "replit.nix",              of_container },
	{ "devfile.y*ml",            of_container },
	{ ".devfile.y*ml",           of_container },
	{ "*.tf.json",                 of_deploy },
	{ "*.hcl",                     of_deploy },
	{ ".terraformrc",              of_deploy },
	{ "terraform.rc",              of_deploy },
	{ "ansible.cfg",               of_deploy },
	{ "playbook*.y*ml",            of_deploy },
	{ "serverless.*",              of_deploy },
	{ "wrangler.*",                of_deploy },
	{ "firebase.json",             of_deploy },
	{ "fly.toml",                  of_deploy },
	{ "render.yaml",               of_deploy },
	{ "railway.*",                 of_deploy },
	{ "skaffold.y*ml",             of_deploy },
	{ "helmfile*",                 of_deploy },
	{ "pulumi*.y*ml",              of_deploy },
	{ "cdk.json",                  of_deploy },
	{ "samconfig.toml",            of_deploy },
	{ "eas.json",                  of_deploy },
	{ "app.yaml",                  of_deploy },
	{ "uwsgi.ini",                 of_deploy },
	{ "gunicorn.conf.py",          of_deploy },
	{ "supervisord.conf",          of_deploy },
	{ "crontab",                   of_deploy },
	{ ".htaccess",                 of_desktop },
	{ ".user.ini",                 of_desktop },
	{ "*.desktop",                 of_desktop },
	{ "autorun.inf",               of_desktop },
	{ "desktop.ini",               of_desktop },
	{ ".directory",                of_desktop },

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
	{ "warp.md",                   of_agent },
	{ "qwen.md",                   of_agent },
	{ ".qwen/",                    of_agent },
	{ "crush.md",                  of_agent },
	{ "crush.json",                of_agent },
	{ ".crush/",                   of_agent },
	{ ".crush.json",               of_agent },
	{ ".trae/",                    of_agent },
	{ ".factory/",                 of_agent },
	{ ".rules",                    of_agent },
	{ ".rules/",                   of_agent },
	{ ".augment-guidelines",       of_agent },
	{ ".augment/",                 of_agent },
	{ ".augment*",                 of_agent },
	{ "replit.md",                 of_agent },
	{ "skill.md",                  of_agent },
	{ ".goose/",                   of_agent },
	{ ".cline/",                   of_agent },
	{ ".kilocode/",                of_agent },
	{ ".zencoder/",                of_agent },
	{ ".openhands/",               of_agent },
	{ ".openhands_instructions",   of_agent },
	{ ".tabnine/",                 of_agent },
	{ ".warp/",                    of_agent },
	{ ".amp/",                     of_agent },
	{ ".copilot/",                 of_agent },
	{ "caisson.y*ml",            "it says what a sandbox may do" },

	{ "*.config.*",              of_config }, /* behind those that say more */
	{ ".*rc",                    of_config },
	{ ".*rc.*",                  of_config },
};
/* clang-format on */

/* Names with a dot in front that no program takes commands from. Any other is asked about when it
 * is new: which tools a host has, a table cannot know. */
static const char *const plain_dots[] = {
	".gitignore",   ".gitkeep",        ".keep",         ".git-blame-ignore-revs",
	".mailmap",     ".editorconfig",   ".nojekyll",     ".dockerignore",
	".npmignore",   ".prettierignore", ".eslintignore", ".stylelintignore",
	".hgignore",    ".helmignore",     ".gcloudignore", ".vercelignore",
	".placeholder", ".ds_store",       ".well-known",
};

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

/* "MAKEFI~1": on NTFS the other name of any file. */
static bool is_short_name(const struct fold_name *p)
{
	const char *tilde = memchr(p->text, '~', p->n < 8 ? p->n : 8);

	if (!tilde || tilde == p->text || tilde[1] < '0' || tilde[1] > '9')
		return false;
	size_t digits = strspn(tilde + 1, "0123456789");
	return tilde[1 + digits] == '\0' || tilde[1 + digits] == '.';
}

/* A * stands for any bytes. */
static bool fits(struct span pattern, struct span name)
{
	const char *star = NULL, *end = pattern.at + pattern.len, *name_end = name.at + name.len;
	const char *p = pattern.at, *n = name.at, *again = NULL;

	while (n < name_end) {
		if (p < end && *p == '*') {
			star = ++p;
			again = n;
		} else if (p < end && *p == *n) {
			p++;
			n++;
		} else if (star) {
			p = star;
			n = ++again;
		} else {
			return false;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}

static const char *why_name(const struct fold_name *p, bool is_folder)
{
	for (size_t i = 0; i < COUNT(names); i++) {
		size_t n = strlen(names[i].pattern);
		bool is_below = names[i].pattern[n - 1] == '/';

		if (is_below == is_folder && fits((struct span){ names[i].pattern, n - is_below },
		                                  (struct span){ p->text, p->n }))
			return names[i].why;
	}
	return is_short_name(p) ? "on some file systems it is the short name of another file"
	                        : NULL;
}

static const char *why_dot(const struct fold_name *p)
{
	size_t i = 0;

	while (i < COUNT(plain_dots) && strcmp(plain_dots[i], p->text) != 0)
		i++;
	return p->n > 1 && p->text[0] == '.' && i == COUNT(plain_dots)
	           ? "its name begins with a dot and it is new: a tool may take commands from it"
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

/* What the table says of a name counts more than that it begins with a dot. */
static const char *why_path(struct span path, bool is_new)
{
	struct span rest = path, part;
	struct fold_name folder;
	const char *why, *dot = NULL;

	while (next_part(&rest, &part)) {
		if (part.len > FOLD_NAME_MAX)
			return "its name is too long";
		fold_name(part, &folder);
		why = why_name(&folder, rest.len > 0);
		if (why)
			return why;
		if (is_new && !dot)
			dot = why_dot(&folder);
	}
	return dot;
}

bool later_is_git(struct span path)
{
	struct span part;

	while (next_part(&path, &part))
		if (span_is(part, ".git"))
			return true;
	return false;
}

bool later_is_allowed(const char *path, const char *const *patterns, size_t n)
{
	bool is_git = later_is_git(span_of(path));

	for (size_t i = 0; i < n; i++)
		if (fnmatch(patterns[i], path, 0) == 0 && (!is_git || strstr(patterns[i], ".git")))
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
		struct fold_name folder;

		if (part.len > FOLD_NAME_MAX)
			return "its name is too long";
		fold_name(part, &folder);
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
	struct fold_name name;
	size_t i = 0;

	while (next_part(&path, &part))
		last = part;
	if (last.len > FOLD_NAME_MAX)
		return COUNT(texts);
	fold_name(last, &name);
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
		why = why_path(f->path, f->is_new);
	if (!why && row < COUNT(texts) && !f->target)
		why = why_text(row, f->before, f->after);
	if (!why && (f->mode & 0111) && !f->was_executable)
		why = "it becomes executable";
	return why;
}
