#include "test.h"

#include "wire/canary.h"

static const char value[] = "ghp_Zk3qP9sTw7LmX2vB8nC4dF6gH1jK5rY0aQeU";

static const char *look(const char *text)
{
	struct canaries *c = canaries_new();

	canaries_add(c, "one", "npm_00112233445566778899aabbccddeeffgghhi");
	canaries_add(c, "two", value);
	const char *name = canaries_find(c, span_of(text)) ? "found" : NULL;
	struct canary_scan scan = { 0 };
	const char *again = NULL;

	for (const char *at = text; *at && !again; at++) /* byte by byte it is the same */
		again = canaries_look(c, &scan, (struct span){ at, 1 });
	CHECK((name != NULL) == (again != NULL));
	if (again)
		CHECK_STR(again, "two");
	canaries_free(c);
	return name;
}

TEST(it_is_known_in_every_form_that_is_looked_for)
{
	static const char *const texts[] = {
		"ghp_Zk3qP9sTw7LmX2vB8nC4dF6gH1jK5rY0aQeU",
		"GET /?token=ghp_Zk3qP9sTw7LmX2vB8nC4dF6gH1jK5rY0aQeU HTTP/1.1",
		"zk3qp9stw7lmx2vb8nc4df6gh1jk5ry0aqeu.example.org", /* as a name */
		"zk3qp9stw7l.mx2vb8nc4df.example.org",              /* over two labels */
		"Z k 3 q P 9 s T w 7 L m X 2",                      /* and in pieces */
		"7LmX2vB8nC4d",                                     /* twelve of it */
		"%5A%6B%33%71%50%39%73%54",                         /* escaped, all of it */
		"5a6b3371503973547737",                             /* hex */
		"5A:6B:33:71:50:39:73:54:77:37",
		"Z2hwX1prM3FQOXNUdzdMbVgydkI4bkM0ZEY2Z0gxaks1clkwYVFlVQ==", /* base64, all of it */
		/* within something else, and in two lines */
		"eHhnaHBfWmszcVA5c1R3N0xtWDJ2Qjhu\nQzRkRjZnSDFqSzVyWTBhUWVVeHg=",
		"eGdocF9aazNxUDlzVHc3TG1YMnZCOG5DNGRGNmdIMWpLNXJZMGFRZVU",
	};

	for (size_t i = 0; i < COUNT(texts); i++)
		CHECK_STR(look(texts[i]), "found");
	CHECK_STR(look("M5UHAX22NMZXCUBZONKHON2MNVMDE5SCHBXEGNDEIY3GOSBRNJFTK4SZGBQVCZKV"),
	          "found");
}

TEST(what_every_such_token_begins_with_is_nothing)
{
	static const char *const texts[] = {
		"",         "ghp_",     "ghp_Zk3qP9s", "Zk3qP9sTw7L-X2vB8nC4dF6",
		"Z2hwXw==", "6768705f", "AKIAAKIAAKIA"
	};

	for (size_t i = 0; i < COUNT(texts); i++)
		CHECK(look(texts[i]) == NULL);
}

TEST(nothing_is_looked_for_where_there_is_none)
{
	struct canaries *c = canaries_new();

	CHECK(canaries_find(NULL, span_of(value)) == NULL);
	CHECK(canaries_find(c, span_of(value)) == NULL);
	canaries_free(c);
	canaries_free(NULL);
}

TEST(look_alikes_have_the_shape_and_are_known)
{
	uint8_t random[CANARY_VALUE_MAX];
	struct err e;

	for (const struct canary_like *l = canary_likes; l->name; l++) {
		AUTO(str_done) struct str made = { .max = CANARY_VALUE_MAX };
		AUTO(str_done) struct str other = { .max = CANARY_VALUE_MAX };
		struct canaries *c = canaries_new();

		for (size_t i = 0; i < sizeof random; i++)
			random[i] = (uint8_t)(i * 37 + 11);
		CHECK_INT(canary_make(l->name, random, &made, &e), 0);
		CHECK_INT((int)made.len, (int)strlen(l->shape));
		CHECK_INT(strncmp(str_text(&made), l->shape, l->fixed), 0);
		random[20]++;
		random[10]++;
		CHECK_INT(canary_make(l->name, random, &other, &e), 0);
		CHECK(strcmp(str_text(&made), str_text(&other)) != 0);
		canaries_add(c, l->name, str_text(&made));
		CHECK_STR(canaries_find(c, (struct span){ made.data, made.len }), l->name);
		canaries_free(c);
	}
}

TEST(a_sample_gives_its_shape_and_nothing_else)
{
	static const struct {
		const char *like, *made; /* NULL: refused */
	} rows[] = {
		{ "acme_live_Ab1-Cd2+EfGhIjKl/Mn3==", "acme_live_Aa0-Aa0+AaAaAaAa/Aa0==" },
		{ "123e4567-e89b-12d3-a456-426614174000", "000a0000-a00a-00a0-a000-000000000000" },
		{ "short-Ab1Cd2Ef3Gh4I", NULL },
		{ "with a blank 1234567890123456", NULL },
		{ "", NULL },
	};
	static const uint8_t zeros[CANARY_VALUE_MAX];
	struct err e;

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str made = { .max = CANARY_VALUE_MAX };
		int r = canary_make(rows[i].like, zeros, &made, &e);

		CHECK_INT(r, rows[i].made ? 0 : -1);
		if (rows[i].made)
			CHECK_STR(str_text(&made), rows[i].made);
	}
}
