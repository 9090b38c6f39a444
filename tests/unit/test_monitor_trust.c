/* Whom clients inside trust: the CA that a child of the gate tells of. */
#include "test_child.h"

#define PEM "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"

static void say_ca(const char *pem)
{
	p = (struct gate_packet){ .ca.hash = 0x12ab };
	memcpy(p.ca.pem, pem, strlen(pem));
	say(G_CA);
}

static void start_child(const char *const *flags)
{
	child = -1;
	n_fds = 0;
	box_start(&t, true, flags);
	box_await(&t, CH_READY, 0);
	give_rules(3, "{}");
	give_gate();
	await(G_START);
}

static int open_folder(int fd, const char *name)
{
	int dir = os_openat(fd, name, O_RDONLY | O_DIRECTORY, 0);

	CHECK(dir >= 0);
	return dir;
}

static void good(uint32_t num, const char *script, const char *prints)
{
	AUTO(fd_close) int log = box_sh(&t, num, script);
	int code = box_await_exit(&t, num).exit_code;

	printf("# %s: %s\n", script, box_text(log, LOG_ERR));
	CHECK_INT(code, 0);
	CHECK_STR(box_text(log, LOG_OUT), prints);
}

TEST(a_ca_is_where_clients_look_before_anything_is_served)
{
	start_child(FLAGS("net", "allow:example.org"));
	good(1,
	     "cd /etc/ssl/certs && ls -A | grep -c caisson; stat -c %d . | grep -cx $(stat -c %d "
	     "/etc)",
	     "0\n1\n"); /* not even an empty place for it */
	say_ca(PEM);
	say(G_UP);
	CHECK_INT(await_ruled().is_refused, 0);
	good(2, "cat /etc/ssl/certs/caisson.pem /etc/ssl/certs/000012ab.0", PEM PEM);
	good(3, "tail -n 3 /etc/ssl/certs/ca-certificates.crt", PEM);
	good(4, "head -c 2 /etc/ssl/certs/java/cacerts | od -An -tx1", " 30 83\n");
	/* The same as the image's, but for that. */
	good(5,
	     "cd /etc/ssl/certs; for f in *.pem; do [ -e $f ] || echo lost $f; done; "
	     "grep -q BEGIN ca-certificates.crt",
	     "");
	good(6,
	     "cd /etc/ssl/certs; (echo >>ca-certificates.crt) 2>/dev/null || rm -f caisson.pem "
	     "2>/dev/null || "
	     "mv /etc/ssl/certs /etc/ssl/other 2>/dev/null || touch new 2>/dev/null || echo no",
	     "no\n");
	stop();
}

TEST(a_later_child_changes_nothing)
{
	start_child(FLAGS("net", "allow:example.org"));
	say_ca(PEM);
	say(G_UP);
	await_ruled();
	lose_child();
	give_gate();
	await(G_START);
	say_ca("-----BEGIN CERTIFICATE-----\nMAMCAQI=\n-----END CERTIFICATE-----\n");
	say(G_UP);
	CHECK_INT(await_ruled().is_refused, 0);
	good(1, "cat /etc/ssl/certs/caisson.pem; grep -c certs /proc/self/mounts", PEM "1\n");
	stop();
}

/* Rules that need it come when commands run already: they see it too. */
TEST(a_ca_may_come_later)
{
	serve();
	AUTO(fd_close)
	int log = box_sh(&t, 1,
	                 "until [ -e /etc/ssl/certs/caisson.pem ]; do sleep 0.02; done; "
	                 "tail -n 3 /etc/ssl/certs/ca-certificates.crt");
	box_await(&t, CH_STARTED, 1);
	give_rules(8, "eight");
	await(G_RULES);
	say_ca(PEM);
	p = (struct gate_packet){ .ruled = { .generation = 8 } };
	say(G_RULED);
	CHECK_INT(await_ruled().generation, 8);
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), PEM);
	stop();
}

/* In the place of what the host has there. */
static int make_certs(int root_fd)
{
	AUTO(fd_close) int ssl = open_folder(root_fd, "etc/ssl");

	copytree_remove(ssl, "certs");
	CHECK_INT(os_mkdirat(ssl, "certs", 0755), 0);
	return open_folder(ssl, "certs");
}

static void make_odd(int root_fd)
{
	static const char text[] = "no certificate, and no end of line";
	AUTO(fd_close) int fd = make_certs(root_fd);

	CHECK_INT(os_make_file(fd, "ca-certificates.crt", text, strlen(text), 0644), 0);
	CHECK_INT(os_make_file(fd, "caisson.pem", "x", 1, 0600), 0);
	CHECK_INT(os_make_file(fd, "java", "x", 1, 0644), 0);
	CHECK_INT(os_symlinkat("/etc/passwd", fd, "000012ab.0"), 0);
	CHECK_INT(os_symlinkat("nowhere", fd, "ca-bundle.crt"), 0);
	CHECK_INT(mkfifoat(fd, "fifo", 0666), 0);
}

TEST(what_an_image_has_there_may_be_anything)
{
	box_image = make_odd;
	start_child(FLAGS("net", "allow:example.org"));
	say_ca(PEM);
	say(G_UP);
	CHECK_INT(await_ruled().is_refused, 0);
	good(1, "cd /etc/ssl/certs; ls -A | tr '\\n' ' '; readlink 000012ab.1",
	     "000012ab.0 000012ab.1 ca-bundle.crt ca-certificates.crt caisson.pem java "
	     "caisson.pem\n");
	good(2, "cat /etc/ssl/certs/caisson.pem", PEM);
	good(3, "cd /etc/ssl/certs; cat ca-certificates.crt; cmp ca-certificates.crt ca-bundle.crt",
	     "no certificate, and no end of line\n" PEM);
	stop();
}

static void make_private(int root_fd)
{
	AUTO(fd_close) int fd = make_certs(root_fd);

	CHECK_INT(os_make_file(fd, "ca-certificates.crt", "secret\n", 7, 0600), 0);
	CHECK_INT(os_make_file(fd, "other.pem", "secret\n", 7, 0640), 0);
	CHECK_INT(os_mkdirat(fd, "private", 0700), 0);
	CHECK_INT(os_make_file(root_fd, "etc/ssl/cert.pem", "public\n", 7, 0644), 0);
}

TEST(what_not_everybody_may_read_is_not_shown_to_everybody)
{
	box_image = make_private;
	start_child(FLAGS("net", "allow:example.org"));
	say_ca(PEM);
	say(G_UP);
	CHECK_INT(await_ruled().is_refused, 0);
	good(1, "cd /etc/ssl/certs; ls -A | tr '\\n' ' '; cat ca-certificates.crt",
	     "000012ab.0 ca-certificates.crt caisson.pem java public\n" PEM);
	stop();
}

/* As Fedora has it: the folder is a link, and Java's store lies elsewhere. */
static void make_other(int root_fd)
{
	static const char *const dirs[] = { "etc/pki/tls", "etc/pki/tls/certs", "etc/pki/java" };
	AUTO(fd_close) int etc = open_folder(root_fd, "etc");

	copytree_remove(etc, "pki");
	copytree_remove(etc, "ssl");
	CHECK_INT(os_mkdirat(root_fd, "etc/pki", 0755), 0);
	for (size_t i = 0; i < COUNT(dirs); i++)
		CHECK_INT(os_mkdirat(root_fd, dirs[i], 0755), 0);
	CHECK_INT(os_mkdirat(root_fd, "etc/ssl", 0755), 0);
	CHECK_INT(os_symlinkat("../pki/tls/certs", root_fd, "etc/ssl/certs"), 0);
	CHECK_INT(os_make_file(root_fd, "etc/pki/bundle.pem", "old\n", 4, 0644), 0);
	CHECK_INT(os_symlinkat("../../bundle.pem", root_fd, "etc/pki/tls/certs/ca-bundle.crt"), 0);
	CHECK_INT(os_symlinkat("../pki/bundle.pem", root_fd, "etc/ssl/cert.pem"), 0);
	CHECK_INT(os_make_file(root_fd, "etc/pki/java/cacerts", "old\n", 4, 0644), 0);
}

TEST(bundles_and_stores_elsewhere_are_covered)
{
	box_image = make_other;
	start_child(FLAGS("net", "allow:example.org"));
	say_ca(PEM);
	say(G_UP);
	CHECK_INT(await_ruled().is_refused, 0);
	good(1, "cat /etc/pki/tls/certs/ca-bundle.crt", "old\n" PEM);
	good(2, "cat /etc/ssl/certs/ca-certificates.crt", "old\n" PEM);
	good(3, "cat /etc/ssl/cert.pem", "old\n" PEM);
	good(4, "cmp /etc/ssl/certs/java/cacerts /etc/pki/java/cacerts", "");
	good(5,
	     "(echo >>/etc/ssl/cert.pem) 2>/dev/null || (echo >/etc/pki/java/cacerts) 2>/dev/null "
	     "|| echo no",
	     "no\n");
	stop();
}

static void make_large(int root_fd)
{
	AUTO(freep) char *bytes = mem_alloc(4u << 20);
	AUTO(fd_close) int fd = make_certs(root_fd);

	memset(bytes, 'x', 4u << 20);
	for (char name[] = "a"; name[0] < 'g'; name[0]++)
		CHECK_INT(os_make_file(fd, name, bytes, 4u << 20, 0644), 0);
}

TEST(rules_whose_ca_finds_no_place_are_refused)
{
	box_image = make_large;
	start_child(FLAGS("net", "allow:example.org"));
	say(G_UP);
	CHECK_INT(await_ruled().is_refused, 0);
	for (int i = 0; i < 2; i++) { /* the second finds what the first has left */
		give_rules(8, "eight");
		await(G_RULES);
		say_ca(PEM);
		struct gate_ruled r = await_ruled();
		CHECK_INT(r.generation, 8);
		CHECK_INT(r.is_refused, 1);
		printf("# %s\n", r.reason);
		CHECK(strstr(r.reason, "place the certificate: copy /etc/ssl/certs"));
		CHECK(strstr(r.reason, "No space left"));
		box_await(&t, CH_GATELESS, 0);
		give_gate();
		await(G_START);
		CHECK_INT(p.start.generation, 3); /* the old ones */
		say(G_UP);
		await_ruled();
	}
	good(1, "ls /etc/ssl/certs | wc -l", "6\n");
	stop();
}

static int held(uint32_t num, bool is_final)
{
	char *const argv[] = { (char *)(uintptr_t) "/bin/cat",
		               (char *)(uintptr_t) "/etc/ssl/certs/caisson.pem", NULL };

	return box_exec(
	    &t, num,
	    (struct command_ask){
		.argv = argv, .is_gated = true, .is_final = is_final, .wants_usage = true });
}

TEST(a_command_that_needs_the_gate_waits_for_it)
{
	start_child(FLAGS("net", "allow:example.org"));
	AUTO(fd_close) int log = held(1, false);
	good(2, "true", ""); /* others do not */
	struct pollfd client = { .fd = t.fd, .events = POLLIN };
	CHECK_INT(poll(&client, 1, 100), 0);
	say_ca(PEM);
	CHECK_INT(poll(&client, 1, 100), 0);
	say(G_UP);
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), PEM);
	lose_child(); /* what is placed stays */
	AUTO(fd_close) int later = held(3, false);
	CHECK_INT(box_await_exit(&t, 3).exit_code, 0);
	stop();
}

/* Its walls are built together with it. */
TEST(the_one_command_of_a_sandbox_waits_too)
{
	child = -1;
	n_fds = 0;
	box_start(&t, false, FLAGS("net", "allow:example.org"));
	AUTO(fd_close) int log = held(1, true);
	give_rules(3, "{}");
	give_gate();
	await(G_START);
	say_ca(PEM);
	say(G_UP);
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), PEM);
	fd_close(&child);
	box_await(&t, CH_END, 0);
	box_end(&t);
}

TEST(a_held_command_can_be_ended)
{
	start_child(FLAGS("net", "allow:example.org"));
	AUTO(fd_close) int log = held(1, false);
	struct pollfd client = { .fd = t.fd, .events = POLLIN };
	CHECK_INT(poll(&client, 1, 100), 0);
	box_say(&t, CH_KILL, 1, NULL, 0);
	CHECK_INT(box_await_exit(&t, 1).state, RUN_KILLED);
	CHECK_STR(box_text(log, LOG_OUT), "");
	say(G_UP);
	await_ruled();
	stop();
}

TEST(without_a_gate_a_held_command_is_refused)
{
	struct err e;

	start_child(FLAGS("net", "allow:example.org"));
	fd_close(&child);
	AUTO(fd_close) int log = held(1, false);
	box_await(&t, CH_FAIL, 1);
	memcpy(&e, t.packet.data, sizeof e);
	CHECK_STR(e.msg, "the gate of the sandbox does not serve");
	CHECK_STR(box_text(log, LOG_OUT), "");
	stop();
}
