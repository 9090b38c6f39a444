#include "cli/secret_canary.h"

#include <sys/random.h>

#include "wire/canary.h"

static const struct canary_like *like_of(const char *name)
{
	for (const struct canary_like *l = canary_likes; l->name; l++)
		if (strcmp(l->name, name) == 0)
			return l;
	return NULL;
}

int secret_canary(const char *name, const struct canary_opts *o, json_t *bind, struct err *e)
{
	AUTO(str_done) struct str value = { .max = CANARY_VALUE_MAX };
	const char *like = o->like ? o->like : like_of(name) ? name : "github";
	const struct canary_like *known = like_of(like);
	const char *env = o->env || o->at || !known ? o->env : known->env;
	uint8_t random[CANARY_VALUE_MAX];

	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return err_sys(e, errno, "random bytes");
	if (canary_make(like, random, &value, e) < 0)
		return -1;
	json_object_set_new(bind, "canary", json_string(str_text(&value)));
	if (env)
		json_object_set_new(bind, "env", json_string(env));
	if (o->at)
		json_object_set_new(bind, "file", json_string(o->at));
	return 0;
}
