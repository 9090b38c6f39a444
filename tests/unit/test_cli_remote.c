#include "cli/remote.h"

#include <sys/socket.h>

#include "base/fd.h"
#include "test.h"

struct pair {
	struct client client;
	struct remote remote;
	int peer_fd; /* the daemon's end */
};

static void pair_open(struct pair *p)
{
	int fds[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	client_init(&p->client);
	p->client.fd = fds[0];
	p->peer_fd = fds[1];
	p->remote = (struct remote){ .client = &p->client,
		                     .out = { .max = 4u << 20 },
		                     .part = { .max = 1u << 20 } };
}

static void pair_close(struct pair *p)
{
	remote_done(&p->remote);
	client_done(&p->client);
	fd_close(&p->peer_fd);
}

static void add_frame(struct str *out, enum stream_type type, const char *text, size_t n)
{
	unsigned char head[STREAM_HEAD];

	stream_head(head, type, n);
	str_addn(out, head, sizeof head);
	str_addn(out, text, n);
}

/* Frames that come byte by byte: as events, one letter and the bytes of each. */
TEST(events_wherever_the_bytes_were_cut)
{
	AUTO(pair_close) struct pair p;
	AUTO(str_done) struct str talk = { .max = 4096 }, seen = { .max = 4096 };
	struct remote_event v;
	struct err e = { 0 };

	pair_open(&p);
	add_frame(&talk, STREAM_STARTED, "{\"process\":{\"id\":\"px_1\"}}", 25);
	add_frame(&talk, STREAM_OUT, "out", 3);
	add_frame(&talk, STREAM_ERR, "err", 3);
	add_frame(&talk, STREAM_LOST, "77", 2);
	add_frame(&talk, STREAM_END, "{\"state\":\"exited\"}", 18);
	for (size_t i = 0; i < talk.len; i++) {
		CHECK_INT(write(p.peer_fd, talk.data + i, 1), 1);
		CHECK_INT(remote_fill(&p.remote, &e), 1);
		while (remote_next(&p.remote, &v, &e) > 0) {
			str_addf(&seen, "%c", v.type);
			if (v.object)
				str_addf(&seen, "{%zu}", json_object_size(v.object));
			else
				str_addn(&seen, v.bytes, v.len);
			json_decref(v.object);
		}
	}
	CHECK_STR(str_text(&seen), "S{1}OoutEerrL77X{1}");
	CHECK_INT(remote_fill(&p.remote, &e), 0);
	fd_close(&p.peer_fd);
	CHECK_INT(remote_fill(&p.remote, &e), -1);
	CHECK_STR(e.msg, "lost: the daemon closed the connection");
}

TEST(an_object_may_come_in_several_frames)
{
	/* Also one whose last frame is full. */
	static const size_t lengths[] = { STREAM_DATA_MAX - 1, STREAM_DATA_MAX, STREAM_DATA_MAX + 1,
		                          (size_t)2 * STREAM_DATA_MAX };

	for (size_t i = 0; i < COUNT(lengths); i++) {
		AUTO(pair_close) struct pair p;
		AUTO(str_done) struct str text = { .max = 1u << 20 }, talk = { .max = 1u << 20 };
		struct remote_event v = { 0 };
		struct err e = { 0 };
		int r = 0;

		pair_open(&p);
		str_add(&text, "{\"x\":\"");
		while (text.len < lengths[i] - 2)
			str_add(&text, "y");
		str_add(&text, "\"}");
		for (size_t at = 0; at < text.len; at += STREAM_DATA_MAX) {
			size_t left = text.len - at;

			add_frame(&talk, STREAM_END, text.data + at,
			          left < STREAM_DATA_MAX ? left : STREAM_DATA_MAX);
		}
		for (size_t at = 0; at < talk.len && r == 0; at += 4096) {
			size_t n = talk.len - at < 4096 ? talk.len - at : 4096;

			CHECK_INT(write(p.peer_fd, talk.data + at, n), (long long)n);
			CHECK_INT(remote_fill(&p.remote, &e), 1);
			r = remote_next(&p.remote, &v, &e);
		}
		CHECK_INT(r, 1);
		CHECK_INT((long long)json_string_length(json_object_get(v.object, "x")),
		          (long long)lengths[i] - 8);
		json_decref(v.object);
	}
}

TEST(what_is_no_frame_ends_it)
{
	static const struct {
		const char *bytes;
		size_t n;
	} rows[] = {
		{ "q\0\0\0\0\0\0\0", 8 },     { "O\0\1\0\0\0\0\0", 8 }, { "O\0\0\0\377\0\0\0", 8 },
		{ "X\0\0\0\0\0\0\3{x}", 11 }, { "S\0\0\0\0\0\0\0", 8 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(pair_close) struct pair p;
		struct remote_event v;
		struct err e = { 0 };

		pair_open(&p);
		CHECK_INT(write(p.peer_fd, rows[i].bytes, rows[i].n), (long long)rows[i].n);
		CHECK_INT(remote_fill(&p.remote, &e), 1);
		CHECK_INT(remote_next(&p.remote, &v, &e), -1);
		CHECK(strncmp(e.msg, "lost: ", 6) == 0);
	}
}

TEST(what_goes_out_waits_for_room_and_keeps_its_order)
{
	AUTO(pair_close) struct pair p;
	static char piece[32768];
	AUTO(str_done) struct str got = { .max = 64u << 20 };
	struct stream_frame f;
	size_t n_in = 0, at = 0;
	char buf[65536];
	ssize_t n;
	int used;

	pair_open(&p);
	while (!remote_is_waiting(&p.remote)) {
		remote_send(&p.remote, STREAM_IN, piece, sizeof piece);
		n_in++;
	}
	remote_signal(&p.remote, 15);
	remote_resize(&p.remote, 24, 80);
	remote_send(&p.remote, STREAM_KILL, NULL, 0);
	while (remote_is_waiting(&p.remote) && (n = recv(p.peer_fd, buf, sizeof buf, 0)) > 0) {
		str_addn(&got, buf, (size_t)n);
		remote_flush(&p.remote);
	}
	while ((n = recv(p.peer_fd, buf, sizeof buf, MSG_DONTWAIT)) > 0)
		str_addn(&got, buf, (size_t)n);
	for (size_t i = 0; i < n_in; i++, at += (size_t)used) {
		used = stream_parse(got.data + at, got.len - at, &f);
		CHECK(used > 0 && f.type == STREAM_IN && f.len == sizeof piece);
	}
	CHECK_INT((long long)(got.len - at), 8 + 2 + 8 + 5 + 8);
	CHECK(got.data != NULL);
	CHECK(memcmp(got.data + at,
	             "G\0\0\0\0\0\0\2"
	             "15R\0\0\0\0\0\0\5"
	             "24 80K\0\0\0\0\0\0\0",
	             31) == 0);
}

TEST(the_status_of_an_end)
{
	static const struct {
		const char *process;
		int status;
	} rows[] = {
		{ "{\"state\":\"exited\",\"exit_code\":0,\"signal\":null}", 0 },
		{ "{\"state\":\"exited\",\"exit_code\":3}", 3 },
		{ "{\"state\":\"exited\",\"exit_code\":127,\"reason\":\"execute: x\"}", 127 },
		{ "{\"state\":\"signaled\",\"exit_code\":null,\"signal\":15}", 143 },
		{ "{\"state\":\"killed\",\"signal\":9}", 137 },
		{ "{\"state\":\"killed\",\"exit_code\":2}", 2 },
		{ "{\"state\":\"killed\"}", 137 },
		{ "{\"state\":\"timeout\",\"signal\":15}", 124 },
		{ "{\"state\":\"expired\"}", 124 },
		{ "{\"state\":\"oom\",\"signal\":9}", 137 },
		{ "{\"state\":\"denied\"}", 126 },
		{ "{\"state\":\"lost\"}", 125 },
		{ "{\"state\":\"running\"}", 125 },
		{ "{}", 125 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		json_t *o = json_loads(rows[i].process, 0, NULL);

		CHECK_INT(remote_exit_status(o), rows[i].status);
		json_decref(o);
	}
	CHECK_INT(remote_exit_status(NULL), 125);
}

TEST(what_run_asks_for)
{
	char echo[] = "echo", hi[] = "a b", bad[] = "\xff";
	char *const argv[] = { echo, hi, NULL };
	char *const bytes[] = { echo, bad, NULL };
	struct run_setup run = { .spec_text = "{\"net\":{\"mode\":\"deny\"}}",
		                 .argv = argv,
		                 .cwd = "/work",
		                 .is_tty = true,
		                 .timeout_ms = 1500,
		                 .rows = 24,
		                 .cols = 80 };
	AUTO(str_done) struct str out = { .max = 4096 };
	struct err e = { 0 };

	CHECK_INT(remote_run_body(&run, &out, &e), 0);
	CHECK_STR(str_text(&out),
	          "{\"spec\":{\"net\":{\"mode\":\"deny\"}},\"cmd\":[\"echo\",\"a b\"],\"cwd\":"
	          "\"/work\",\"timeout\":\"1500ms\",\"tty\":true,\"stdin\":false,\"brief\":true,"
	          "\"rows\":24,\"cols\":80}");
	str_clear(&out);
	run.argv = bytes;
	CHECK_INT(remote_run_body(&run, &out, &e), 0);
	CHECK(strstr(str_text(&out), "\"cmd\":[\"echo\",{\"base64\":\"/w==\"}]") != NULL);
	run.cwd = bad;
	CHECK_INT(remote_run_body(&run, &out, &e), -1);
	CHECK_STR(e.msg, "the working directory is not UTF-8");
}
