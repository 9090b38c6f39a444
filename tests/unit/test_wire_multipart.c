#include "wire/multipart.h"

#include "base/str.h"
#include "test.h"

#define TYPE "multipart/form-data; boundary=xx"

/* All of it as one text: "name|filename|data;" for each part. `step` bytes at a time. */
static bool read_all(const char *type, struct span body, size_t step, struct str *out)
{
	struct multipart m;
	struct multipart_event ev;
	size_t have = 0, at = 0;
	int r = 0;

	if (!multipart_init(&m, span_of(type)))
		return false;
	while (r >= 0 && (have < body.len || r > 0)) {
		have = body.len - have < step ? body.len : have + step;
		struct span in = { body.at + at, have - at };

		while ((r = multipart_next(&m, &in, have == body.len, &ev)) > 0) {
			if (ev.type == MULTIPART_PART)
				str_addf(out, "%s|%s|", ev.name, ev.filename);
			else if (ev.type == MULTIPART_DATA)
				str_addn(out, ev.data.at, ev.data.len);
			else
				str_add(out, ";");
		}
		at = (size_t)(in.at - body.at);
	}
	return r >= 0 && m.step == MULTIPART_DONE;
}

#define DISPOSITION "Content-Disposition: form-data; name=\"file\"; filename=\"a b\\\"c\"\r\n"

TEST(forms_in_pieces_of_any_size)
{
	static const struct {
		const char *body, *want; /* NULL: refused */
	} cases[] = {
		{ "--xx\r\n" DISPOSITION "\r\nhello\r\n--xx--\r\n", "file|a b\"c|hello;" },
		{ "--xx\r\n" DISPOSITION "\r\n\r\n--xx--", "file|a b\"c|;" },
		{ "--xx\r\n" DISPOSITION "Content-Type: a/b\r\n\r\n\r\n--x\r\n--xx\r\n" DISPOSITION
		  "\r\n2\r\n--xx--\r\n",
		  "file|a b\"c|\r\n--x;file|a b\"c|2;" },
		{ "--xx\r\ncontent-disposition:form-data;name=file\r\n\r\n1\r\n--xx--",
		  "file||1;" },
		{ "--xx--\r\n", "" },
		{ "", NULL },
		{ "--xx\r\n" DISPOSITION "\r\nhello", NULL },          /* cut */
		{ "--xx\r\n" DISPOSITION "\r\nhello\r\n--xx", NULL },  /* the end is not said */
		{ "--xx\r\n" DISPOSITION "\r\nhello\r\n--xxy", NULL }, /* neither end nor part */
		{ "preamble\r\n--xx\r\n" DISPOSITION "\r\n1\r\n--xx--", NULL },
		{ "--xx\r\n\r\n1\r\n--xx--", NULL }, /* without a name */
		{ "--xx\r\nContent-Disposition: attachment; name=file\r\n\r\n1\r\n--xx--", NULL },
		{ "--xx\r\nContent-Disposition: form-data; name=\"f\r\n\r\n1\r\n--xx--", NULL },
		{ "--xx\r\n" DISPOSITION "\r\n1\r\n--xx--\r\nmore", NULL },
		{ "--xx\n" DISPOSITION "\r\n1\r\n--xx--", NULL },
	};
	static const size_t steps[] = { 1, 2, 3, 7, 4096 };

	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t s = 0; s < COUNT(steps); s++) {
			AUTO(str_done) struct str out = { .max = 4096 };
			bool is_one = read_all(TYPE, span_of(cases[i].body), steps[s], &out);

			CHECK(is_one == (cases[i].want != NULL));
			if (is_one && cases[i].want)
				CHECK_STR(str_text(&out), cases[i].want);
		}
	}
}

TEST(types_that_are_no_form)
{
	static const struct {
		const char *type;
		bool is_one;
	} cases[] = {
		{ TYPE, true },
		{ "Multipart/Form-Data; charset=utf-8; boundary=\"a-b\"", true },
		{ "multipart/form-data", false },
		{ "multipart/form-data; boundary=", false },
		{ "multipart/form-data; boundary=\"a", false },
		{ "multipart/form-data; boundary=\"a\r\nb\"", false },
		{ "multipart/form-data; boundary="
		  "12345678901234567890123456789012345678901234567890123456789012345678901",
		  false },
		{ "multipart/mixed; boundary=xx", false },
		{ "", false },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct multipart m;

		CHECK(multipart_init(&m, span_of(cases[i].type)) == cases[i].is_one);
	}
}
