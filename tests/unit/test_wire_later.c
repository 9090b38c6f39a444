#include "wire/later.h"

#include "test.h"

static const char *why(const char *path)
{
	const struct later_file f = { .path = span_of(path), .mode = 0644 };

	return later_why(&f);
}

TEST(names_that_execute_later)
{
	static const char *const names[] = {
		".git",
		".git/config",
		"vendor/x/.git/hooks/pre-commit",
		"bare.git/config",
		"odd/HEAD",
		".gitattributes",
		"a/b/.gitmodules",
		".husky/pre-push",
		".pre-commit-config.yaml",
		".github/workflows/ci.yml",
		".gitlab-ci.yml",
		".circleci/config.yml",
		"Jenkinsfile",
		"azure-pipelines.yml",
		"Makefile",
		"src/makefile.am",
		"rules.mk",
		"CMakeLists.txt",
		"meson.build",
		"build.rs",
		"build.gradle.kts",
		"gradlew.bat",
		"setup.py",
		"pyproject.toml",
		"conftest.py",
		"tests/conftest.py",
		"Rakefile",
		"justfile",
		"vite.config.ts",
		".npmrc",
		".yarnrc.yml",
		"node_modules/x/index.js",
		".envrc",
		".env",
		".env.local",
		".tool-versions",
		".vscode/settings.json",
		"x.code-workspace",
		".idea/workspace.xml",
		".devcontainer/devcontainer.json",
		"Dockerfile",
		"docker-compose.yml",
		"compose.yaml",
		"AGENTS.md",
		".mcp.json",
		".cursor/rules/x.mdc",
		"caisson.yaml",
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		printf("# %s\n", names[i]);
		CHECK(why(names[i]) != NULL);
	}
}

TEST(names_that_do_not)
{
	static const char *const names[] = {
		"main.c",
		"README.md",
		"src/hooks/use.ts",
		"git",
		"a.gitx/b",
		".gitignore",
		".gitkeep",
		"makefile/x",
		"headers/a.h",
		"HEAD.txt",
		"build/out.o",
		"environment",
		"docs/agents/x.md",
		"x.mkd",
		"composer.lock",
		"composed.txt",
		"backup~",
		"notes.~1~",
		"a~b",
		"package-lock.json",
		"env",
		"configure/me",
		"x.envrc",
		"dist/app.js",
		"spec/compose_spec.rb",
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		printf("# %s\n", names[i]);
		CHECK(why(names[i]) == NULL);
	}
}

static bool is_later_new(const char *path)
{
	const struct later_file f = { .path = span_of(path), .mode = 0644, .is_new = true };

	return later_why(&f) != NULL;
}

/* Names of tools that execute something of the file, or take commands from it. */
TEST(names_of_many_tools_ask)
{
	/* clang-format off */
	static const char *const names[] = {
		".hg/hgrc", ".hg", ".svn/entries", ".svn", ".jj/repo/config.toml", ".jj",
		"Cargo.toml", "crates/x/Cargo.toml", "mix.exs", "go.mod", "go.work", "Podfile",
		"Podfile.lock", "Brewfile", ".Rprofile", ".ghci", ".ocamlinit", ".pdbrc",
		".pylintrc", "pylintrc", "ansible.cfg", "tasks.py", "fabfile.py", "hatch_build.py",
		"requirements.txt", "requirements-dev.txt", "uv.toml", "poetry.toml",
		"nuxt.config.ts", "svelte.config.js", "astro.config.mjs", "vue.config.js",
		"metro.config.js", "rspack.config.js", "tsup.config.ts", "drizzle.config.ts",
		"commitlint.config.js", "release.config.js", ".stylelintrc.js", "deno.jsonc",
		"turbo.json", "nx.json", "tsconfig.json", "tsconfig.build.json", "phpunit.xml",
		"phpunit.xml.dist", ".user.ini", ".htaccess", "terragrunt.hcl", ".terraformrc",
		"serverless.yml", "serverless.ts", "wrangler.toml", "wrangler.jsonc", ".gitpod.yml",
		".gitpod.Dockerfile", ".replit", "devfile.yaml", ".dagger/main.go", "dagger.json",
		"pixi.toml", "WARP.md", "QWEN.md", ".qwen/settings.json", "CRUSH.md", "crush.json",
		".trae/rules.md", ".factory/x", ".rules", ".augment-guidelines",
		".augment/rules/a.md", "unknown.config.json", "ecosystem.config.cjs", ".somethingrc",
		".somethingrc.js", ".some.rc.d", ".irbrc", ".swcrc", ".nycrc.json", ".taprc",
		".commitlintrc.yml", ".releaserc", ".c8rc.json", ".oxlintrc.json", "project.clj",
		"deps.edn", "bb.edn", "stack.yaml", "cabal.project", "x.cabal", "rebar.config",
		"x.nimble", "config.nims", "dub.json", "shard.yml", "pubspec.yaml", "App.fsproj",
		"App.sln", "nuget.config", "global.json", "angular.json", "lerna.json", "rush.json",
		"jsconfig.json", "nodemon.json", "knexfile.js", "jakefile", "gatsby-node.js",
		"ember-cli-build.js", "dodo.py", "docs/conf.py", "mkdocs.yml", "book.toml",
		"Doxyfile", "Snakefile", "nextflow.config", "dvc.yaml", "MLproject", "src/Makevars",
		"conanfile.py", "conanfile.txt", "vcpkg.json", "xmake.lua", "premake5.lua", "BUCK",
		"pants.toml", "Tupfile", "x.ninja", "RoboFile.php", "artisan", "Capfile", "Thorfile",
		"Guardfile", "config.ru", "module.gradle", "phpstan.neon", "psalm.xml",
		"wdio.conf.js", "protractor.conf.ts", "constraints.txt", "Pipfile",
		"environment.yml", "Cartfile", "Berksfile", ".iex.exs", ".pryrc", ".Renviron",
		"main.tf.json", "x.hcl", "terraform.rc", "playbook-web.yml", "firebase.json",
		"fly.toml", "render.yaml", "railway.json", "skaffold.yaml", "helmfile.yaml",
		"Pulumi.dev.yaml", "cdk.json", "samconfig.toml", "uwsgi.ini", "gunicorn.conf.py",
		"crontab", "x.desktop", "autorun.inf", "Dangerfile", "fastlane/Fastfile",
		"captainhook.json", "grumphp.yml", "replit.md", "skills/x/SKILL.md",
		".openhands/microagents/x.md",
	};
	/* clang-format on */

	CHECK(COUNT(names) >= 150);
	for (size_t i = 0; i < COUNT(names); i++) {
		printf("# %s\n", names[i]);
		CHECK(why(names[i]) != NULL || names[i][0] == '.');
		CHECK(is_later_new(names[i]));
	}
}

/* Else a person says yes to everything. */
TEST(ordinary_names_stay_quiet)
{
	/* clang-format off */
	static const char *const names[] = {
		"src/main.c", "src/main.rs", "src/lib.rs", "src/app.ts", "src/index.tsx",
		"src/App.vue", "src/components/Button.jsx", "README.md", "CHANGELOG.md", "LICENSE",
		"CONTRIBUTING.md", "docs/x.md", "docs/guide/index.md", "docs/img/logo.svg",
		"tests/test_x.py", "tests/x.test.ts", "tests/fixtures/data.json", "spec/x_spec.rb",
		"pkg/server/server.go", "cmd/tool/main.go", "internal/x_test.go", "lib/x.ex",
		"app/models/user.rb", "app/views/x.html.erb", "migrations/0001_init.sql",
		"data/users.csv", "data/config.json", "config/settings.py", "config/app.yml",
		"config.yaml", "settings.json", "values.yaml", "chart/templates/x.yaml",
		"locales/en.json", "public/index.html", "static/app.css", "assets/x.png", "go.sum",
		"Cargo.lock", "package-lock.json", "yarn.lock", "poetry.lock", "uv.lock",
		"pnpm-lock.yaml", "composer.lock", "mix.lock", "src/config.ts", "src/configs/a.ts",
		"src/rc.ts", "src/arc.c", "include/x.h", "x.proto", "schema.graphql",
		"notebook.ipynb", "notes.txt", "VERSION", "AUTHORS", ".gitignore", ".gitkeep",
		".editorconfig", ".dockerignore", "docs/.nojekyll", "src/.keep", ".mailmap",
		"a.patch", "query.sql", "main.py", "manage.py", "utils/tasks.ts", "tasks.md",
		"rules.md", "projects.json", "targets.csv",
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(names); i++) {
		printf("# %s\n", names[i]);
		CHECK(!is_later_new(names[i]));
	}
}

TEST(what_begins_with_a_dot_asks_when_it_is_new)
{
	static const char *const names[] = { ".unheard-of", ".tool/x/y.txt", "src/.hidden/x",
		                             "\xe2\x81\xa0.x", ".x.json" };

	for (size_t i = 0; i < COUNT(names); i++) {
		printf("# %s\n", names[i]);
		CHECK(is_later_new(names[i]));
		CHECK(why(names[i]) == NULL); /* control: one that is there */
	}
	CHECK(!is_later_new("a.b/c.d"));
}

TEST(other_spellings_that_some_file_system_takes_for_the_same)
{
	static const char *const names[] = {
		".GIT/config",
		".Git/hooks/x",
		".git./config",
		".git /config",
		".git . ./x",
		".git::$INDEX_ALLOCATION/x",
		"git~1/config",
		"GIT~1",
		"GIT~27/config",
		".g\xe2\x80\x8cit/config",
		"\xef\xbb\xbf.git/x",
		"MAKEFI~1",
		"MAKEFI~1.AM",
		"ma\342\204\252efile",
		".v\305\277code/tasks.json",
		"MAKEFILE",
		".ENVRC",
		".envrc:stream",
		"makefile. .",
		".cl\342\201\240aude/settings.json", /* U+2060 */
		".clau\302\255de/x",                 /* U+00AD */
		".claude\363\240\201\201/x",         /* U+E0041 */
		".envr\357\270\217c",                /* U+FE0F */
		"make\357\254\201le",                /* U+FB01 */
		"\357\274\255akefile",               /* U+FF2D */
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		printf("# %s\n", names[i]);
		CHECK(why(names[i]) != NULL);
	}
}

TEST(a_name_that_no_file_system_has)
{
	char path[400];

	memset(path, 'x', sizeof path);
	path[399] = '\0';
	CHECK(why(path) != NULL);
	path[255] = '\0';
	CHECK(why(path) == NULL);
}

TEST(links)
{
	static const struct {
		const char *path, *target;
		bool is_later;
	} rows[] = {
		{ "a", "b", false },
		{ "a", "b/c", false },
		{ "a", "./b", false },
		{ "a", "..", true },
		{ "a", "../b", true },
		{ "d/a", "../b", false },
		{ "d/a", "..", false },
		{ "d/a", "../../b", true },
		{ "d/e/a", "../../b", false },
		{ "a", "/etc/passwd", true },
		{ "a", "", true },
		{ "d/a", "b/../c", true },
		{ "a", ".git/hooks", true },
		{ "d/a", "../.GIT/config", true },
		{ "a", "git~1/config", true },
		{ "Makefile", "b", true },
		{ "package.json", "b", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct later_file f = { .path = span_of(rows[i].path),
			                      .target = rows[i].target };

		printf("# %s -> %s\n", rows[i].path, rows[i].target);
		CHECK_INT(later_why(&f) != NULL, rows[i].is_later);
	}
}

TEST(modes)
{
	static const struct {
		uint32_t mode;
		bool was_executable, is_later;
	} rows[] = {
		{ 0644, false, false }, { 0755, false, true },  { 0755, true, false },
		{ 0644, true, false },  { 0645, false, true },  { 04755, true, true },
		{ 04644, true, true },  { 02644, false, true }, { 01644, false, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct later_file f = { .path = span_of("x"),
			                      .mode = rows[i].mode,
			                      .was_executable = rows[i].was_executable };

		CHECK_INT(later_why(&f) != NULL, rows[i].is_later);
	}
}

TEST(of_a_package_only_its_scripts)
{
	static const struct {
		const char *path, *before, *after;
		bool is_later;
	} rows[] = {
		{ "package.json", "{\"scripts\":{\"test\":\"x\"}}",
		  "{\"name\":\"n\",\"scripts\":{\"test\":\"x\"}}", false },
		{ "package.json", "{\"scripts\":{\"test\":\"x\"}}",
		  "{\"scripts\":{\"test\":\"y\"}}", true },
		{ "package.json", "{}", "{\"scripts\":{\"postinstall\":\"x\"}}", true },
		{ "package.json", "{\"scripts\":{\"a\":\"x\"}}", "{}", true },
		{ "package.json", NULL, "{\"name\":\"n\"}", false },
		{ "package.json", NULL, "{\"scripts\":{\"a\":\"x\"}}", true },
		{ "package.json", "{}", "{\"scr\\u0069pts\":{\"a\":\"x\"}}", true },
		{ "package.json", "{}", "{\"husky\":{\"hooks\":{\"pre-push\":\"x\"}}}", true },
		{ "package.json", "{}", "{\"a\":{\"scripts\":{\"b\":\"x\"}}}", false },
		{ "package.json", "{\"scripts\":{\"a\":\"x\"}}", "{\"scripts\":{\"b\":\"x\"}}",
		  true },
		{ "package.json", "{}", "{", true },
		{ "package.json", "{", "{}", false },
		{ "package.json", "{", "{\"scripts\":{\"a\":\"x\"}}", true },
		{ "package.json", "{}", NULL, true },
		{ "sub/PACKAGE.JSON", "{}", "{\"scripts\":{\"a\":\"x\"}}", true },
		{ "composer.json", "{}", "{\"scripts\":{\"a\":[\"x\"]}}", true },
		{ "composer.json", "{}", "{\"require\":{\"a\":\"x\"}}", false },
		{ "deno.json", "{}", "{\"tasks\":{\"a\":\"x\"}}", true },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct later_file f = { .path = span_of(rows[i].path) };

		printf("# %zu: %s\n", i, rows[i].path);
		if (rows[i].before)
			f.before = span_of(rows[i].before);
		if (rows[i].after)
			f.after = span_of(rows[i].after);
		CHECK(later_reads(f.path));
		CHECK_INT(later_why(&f) != NULL, rows[i].is_later);
	}
	CHECK(!later_reads(span_of("package.json/x")) && !later_reads(span_of("a.json")));
}

TEST(the_git_folder_is_spelled_so)
{
	CHECK(later_is_git(span_of(".git")));
	CHECK(later_is_git(span_of("a/.git/x")));
	CHECK(!later_is_git(span_of(".GIT/x")));
	CHECK(!later_is_git(span_of(".gitignore")));
	CHECK(!later_is_git(span_of("")));
}
