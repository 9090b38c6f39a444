#include "wire/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGE_MAX = 300, TEXT_MAX = 1 << 20 };

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

/* What was heard: every whole message as one frame, every control frame, printed by us. */
struct heard {
	struct str frames, message;
	int error;
};

static void heard_done(struct heard *h)
{
	str_done(&h->frames);
	str_done(&h->message);
}

static void hear(struct heard *h, const struct ws_event *ev)
{
	struct ws_frame f = { .opcode = ev->type, .is_final = true };
	struct utf8 u = { 0 };

	if (ev->type == WS_CLOSE) {
		if (ev->code == WS_CLOSE_NONE)
			ws_print(&h->frames, &f, NULL);
		else
			ws_print_close(&h->frames, ev->code, ev->data.at, NULL);
		return;
	}
	str_addn(&h->message, ev->data.at, ev->data.len);
	if (!ev->is_final)
		return;
	expect(ev->type != WS_TEXT ||
	       (utf8_feed(&u, str_text(&h->message), h->message.len) && utf8_is_whole(&u)));
	f.len = h->message.len;
	expect(f.len <= MESSAGE_MAX);
	ws_print(&h->frames, &f, str_text(&h->message));
	str_clear(&h->message);
}

/* A ping may stand inside a message: it is heard at once and does not disturb it. */
static void hear_any(struct heard *h, const struct ws_event *ev)
{
	struct heard control = { .frames = h->frames, .message = { .max = TEXT_MAX } };
	char text[WS_CONTROL_MAX + 1] = "";
	struct ws_event copy = *ev;

	if (ev->type == WS_TEXT || ev->type == WS_BINARY) {
		hear(h, ev);
		return;
	}
	expect(ev->is_final && ev->data.len <= WS_CONTROL_MAX);
	if (ev->data.len > 0)
		memcpy(text, ev->data.at, ev->data.len);
	copy.data.at = text; /* ends with a NUL, for a reason */
	hear(&control, &copy);
	h->frames = control.frames;
	str_done(&control.message);
}

static void listen_to(enum ws_role role, struct span in, size_t step, struct heard *h)
{
	struct ws_reader r = { .role = role, .message_max = MESSAGE_MAX };

	for (size_t at = 0; at < in.len && h->error == 0; at += step) {
		size_t n = in.len - at < step ? in.len - at : step;
		AUTO(freep) char *copy = mem_alloc(n);
		struct ws_event ev;

		memcpy(copy, in.at + at, n);
		for (size_t used = 0; used < n && h->error == 0; used += ev.consumed) {
			int found = ws_read(&r, copy + used, n - used, &ev);

			expect(ev.consumed <= n - used && (found < 0 || ev.consumed > 0));
			if (found == WS_EVENT)
				hear_any(h, &ev);
			h->error = found < 0 ? found : 0;
		}
	}
}

/* The same frames and the same error, however the input was cut; and what we printed of it is
 * heard again as itself. */
static void expect_talk(enum ws_role role, struct span in)
{
	static const size_t steps[] = { 1, 3, 64 };
	AUTO(heard_done) struct heard whole = { { .max = TEXT_MAX }, { .max = TEXT_MAX }, 0 };
	AUTO(heard_done) struct heard again = { { .max = TEXT_MAX }, { .max = TEXT_MAX }, 0 };

	listen_to(role, in, in.len + 1, &whole);
	for (size_t i = 0; i < COUNT(steps); i++) {
		AUTO(heard_done) struct heard cut = { { .max = TEXT_MAX }, { .max = TEXT_MAX }, 0 };

		listen_to(role, in, steps[i], &cut);
		expect(cut.error == whole.error && cut.frames.len == whole.frames.len);
		expect(cut.frames.len == 0 ||
		       memcmp(cut.frames.data, whole.frames.data, cut.frames.len) == 0);
	}
	listen_to(WS_CLIENT, (struct span){ str_text(&whole.frames), whole.frames.len }, TEXT_MAX,
	          &again);
	expect(again.error == 0 && again.frames.len == whole.frames.len);
	expect(again.frames.len == 0 ||
	       memcmp(again.frames.data, whole.frames.data, again.frames.len) == 0);
}

/* Frames as they stand, heard by a server and by a client. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = { (const char *)data, size };

	expect_talk(WS_SERVER, in);
	expect_talk(WS_CLIENT, in);
	return 0;
}
