/*
 * secret.h - secrets: sealed values that the gate of a sandbox may use (spec/bind.h). This process
 * never has one that it could read.
 *
 * A sandbox that names one in `creds` gets a placeholder in a variable, and its rules document the
 * sealed value with what that is bound to. Whatever is said about a secret later reaches the gates
 * of those that have it at once.
 */
#pragma once

#include <jansson.h>

#include "core/sandbox.h"
#include "spec/bind.h"
#include "store/secrets.h"
#include "wire/seal.h"

#define SECRETS_MAX 256 /* of one tenant */
#define SECRET_NONE "-" /* `sealed` of a canary: it is none */

/* The key that values are sealed to, asked of a gate. One of both is NULL. */
typedef void secret_key_fn(void *arg, const uint8_t *key, const struct fail *f);
void secret_key(struct core *c, secret_key_fn *done, void *arg);
void secrets_close(struct core *c);

struct secret_ask {
	const char *tenant, *name;
	const char *bind;   /* the text that was sealed beside the value */
	const char *sealed; /* base64; "": it is a canary */
};
int secret_put(struct core *c, const struct secret_ask *ask, struct store_call call,
               struct fail *f) MUST_USE;
int secret_remove(struct core *c, const char *tenant, const char *name, struct store_call call,
                  struct fail *f) MUST_USE;
int secret_find(struct core *c, const char *tenant, const char *name, struct arena *a,
                struct secret_row *out, struct fail *f) MUST_USE;
/* It was set anew, or is gone: sandboxes that have it hear of it. */
void secret_changed(struct core *c, const char *tenant, const char *name);

/* ---- for sandboxes ---- */
/* Those that it names are there, and for it; its commands find placeholders in `spec`. */
int secret_admit(struct sbx *s, struct fail *f) MUST_USE;
/* What the i-th of its creds is for, if it may have it. */
int secret_bind(const struct sbx *s, size_t i, struct arena *a, struct bind *out) MUST_USE;
void secret_fill_env(const struct sbx *s, struct spec *spec);
/* "creds" and "canaries" of its rules document (wire/gate.h). */
json_t *secret_rules(const struct sbx *s);
void secret_note_use(struct sbx *s, const struct gate_record *r); /* if it was one */
