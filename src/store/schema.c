/*
 * schema.c - the tables, as the steps that lead to them.
 *
 * A step is never edited once it has been released: a change is a new step at the end. All
 * missing steps run in one transaction, and PRAGMA user_version counts them.
 */
#include <inttypes.h>

#include "store/store-internal.h"

#define APPLICATION_ID 0x43414953    /* "CAIS", so that file(1) and we know it */
#define CHECK_BYTES_MAX (64ll << 20) /* a full look at 64 MiB takes a fraction of a second */

/* Rows are found by seq (order of birth, never given twice) and by id. Types are held to
 * (STRICT), so a row that is there can be read. */
static const char first[] =
    "CREATE TABLE meta("
    " key TEXT PRIMARY KEY,"
    " value TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE sandboxes("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " key TEXT,"
    " generation INTEGER NOT NULL,"
    " state TEXT NOT NULL,"
    " state_reason TEXT,"
    " spec TEXT NOT NULL CHECK(json_valid(spec)),"
    " labels TEXT NOT NULL CHECK(json_valid(labels) AND json_type(labels)='object'),"
    " enforced TEXT CHECK(enforced IS NULL OR json_valid(enforced)),"
    " backend TEXT,"
    " boot_id TEXT,"
    " socket TEXT,"
    " slot INTEGER,"
    " created_ms INTEGER NOT NULL,"
    " started_ms INTEGER,"
    " ended_ms INTEGER,"
    " expires_ms INTEGER,"
    " idle_ms INTEGER,"
    " last_active_ms INTEGER,"
    " mem_bytes INTEGER NOT NULL,"
    " cpu_milli INTEGER NOT NULL,"
    " pids INTEGER NOT NULL,"
    " disk_bytes INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX sandboxes_key ON sandboxes(tenant,key)"
    " WHERE key IS NOT NULL AND state<>'gone';"
    "CREATE INDEX sandboxes_there ON sandboxes(tenant,seq) WHERE state<>'gone';"
    "CREATE INDEX sandboxes_gone ON sandboxes(ended_ms) WHERE state='gone';"

    "CREATE TABLE sandbox_labels("
    " tenant TEXT NOT NULL,"
    " key TEXT NOT NULL,"
    " value TEXT NOT NULL,"
    " seq INTEGER NOT NULL,"
    " PRIMARY KEY(tenant,key,value,seq)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX sandbox_labels_seq ON sandbox_labels(seq);"

    "CREATE TABLE processes("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " sandbox TEXT NOT NULL,"
    " generation INTEGER NOT NULL,"
    " num INTEGER NOT NULL,"
    " state TEXT NOT NULL,"
    " argv TEXT NOT NULL CHECK(json_valid(argv) AND json_type(argv)='array'),"
    " cwd TEXT,"
    " label TEXT,"
    " shell TEXT,"
    " exit_code INTEGER CHECK((exit_code IS NOT NULL OR state<>'exited') AND"
    "  (exit_code IS NULL OR state IN ('exited','timeout','killed','expired'))),"
    " signal INTEGER,"
    " reason TEXT,"
    " created_ms INTEGER NOT NULL,"
    " started_ms INTEGER,"
    " ended_ms INTEGER CHECK((ended_ms IS NULL)="
    "  (state IN('queued','awaiting_approval','running'))),"
    " ms INTEGER NOT NULL,"
    " cpu_ms INTEGER NOT NULL,"
    " mem_peak INTEGER NOT NULL,"
    " io_bytes INTEGER NOT NULL,"
    " bytes_out INTEGER NOT NULL,"
    " bytes_err INTEGER NOT NULL,"
    " bytes_dropped INTEGER NOT NULL,"
    " log_id TEXT,"
    " details TEXT CHECK(details IS NULL OR json_valid(details)),"
    " UNIQUE(sandbox,generation,num)"
    ") STRICT;"
    "CREATE INDEX processes_tenant ON processes(tenant,seq);"
    "CREATE INDEX processes_sandbox ON processes(sandbox,seq);"
    "CREATE INDEX processes_open ON processes(sandbox,seq) WHERE ended_ms IS NULL;"
    "CREATE INDEX processes_ended ON processes(ended_ms) WHERE ended_ms IS NOT NULL;"

    "CREATE TABLE shells("
    " seq INTEGER PRIMARY KEY,"
    " sandbox TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " process TEXT,"
    " cwd TEXT,"
    " env TEXT NOT NULL CHECK(json_valid(env) AND json_type(env)='object'),"
    " restarts INTEGER NOT NULL,"
    " UNIQUE(sandbox,name)"
    ") STRICT;"

    "CREATE TABLE ports("
    " seq INTEGER PRIMARY KEY,"
    " sandbox TEXT NOT NULL,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " port INTEGER NOT NULL CHECK(port BETWEEN 1 AND 65535),"
    " local_port INTEGER,"
    " token_hash BLOB NOT NULL UNIQUE CHECK(length(token_hash)=32),"
    " created_ms INTEGER NOT NULL,"
    " expires_ms INTEGER,"
    " UNIQUE(sandbox,port)"
    ") STRICT;"

    "CREATE TABLE tokens("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " name TEXT,"
    " hash BLOB NOT NULL UNIQUE CHECK(length(hash)=32),"
    " scopes TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " expires_ms INTEGER,"
    " revoked_ms INTEGER,"
    " last_used_ms INTEGER"
    ") STRICT;"
    "CREATE INDEX tokens_tenant ON tokens(tenant,seq);"

    "CREATE TABLE idempotency("
    " tenant TEXT NOT NULL,"
    " key TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " boot TEXT NOT NULL," /* which run of the daemon began it */
    " route_hash BLOB NOT NULL,"
    " body_hash BLOB NOT NULL,"
    " status INTEGER," /* NULL: in progress */
    " body BLOB,"
    " created_ms INTEGER NOT NULL,"
    " PRIMARY KEY(tenant,key)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX idempotency_created ON idempotency(created_ms);";

/* How many rows a sandbox has is counted as they come and go: they are many. */
static const char connections[] =
    "CREATE TABLE connections("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " sandbox TEXT NOT NULL,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " generation INTEGER NOT NULL,"
    " kind TEXT NOT NULL,"
    " num INTEGER NOT NULL,"
    " request INTEGER NOT NULL,"
    " ts_ms INTEGER NOT NULL,"
    " process TEXT,"
    " name TEXT,"
    " dst TEXT,"
    " real TEXT,"
    " port INTEGER NOT NULL,"
    " proto TEXT,"
    " sni TEXT,"
    " alpn TEXT,"
    " decision TEXT NOT NULL,"
    " denied INTEGER NOT NULL,"
    " rule TEXT,"
    " reason TEXT,"
    " approval TEXT,"
    " secrets TEXT NOT NULL CHECK(json_valid(secrets) AND json_type(secrets)='array'),"
    " rules INTEGER NOT NULL,"
    " bytes_up INTEGER NOT NULL,"
    " bytes_down INTEGER NOT NULL,"
    " ms INTEGER NOT NULL,"
    " close TEXT,"
    " method TEXT,"
    " path TEXT,"
    " status INTEGER,"
    " count INTEGER NOT NULL,"
    " UNIQUE(sandbox,generation,num,request)"
    ") STRICT;"
    "CREATE INDEX connections_sandbox ON connections(sandbox,seq);"
    "CREATE INDEX connections_open ON connections(sandbox) WHERE close='open';"
    "CREATE INDEX connections_ts ON connections(ts_ms);"

    "CREATE TABLE connection_totals("
    " sandbox TEXT PRIMARY KEY,"
    " rows INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TRIGGER connections_come AFTER INSERT ON connections BEGIN"
    " INSERT INTO connection_totals VALUES(NEW.sandbox,1)"
    "  ON CONFLICT(sandbox) DO UPDATE SET rows=rows+1;"
    " END;"
    "CREATE TRIGGER connections_go AFTER DELETE ON connections BEGIN"
    " UPDATE connection_totals SET rows=rows-1 WHERE sandbox=OLD.sandbox;"
    " DELETE FROM connection_totals WHERE sandbox=OLD.sandbox AND rows<=0;"
    " END;";

/* Trees, points and workspaces have numbers of one row: on disk nothing else names them. Who needs
 * what is asked of these rows, never of the disk. */
static const char workspaces[] =
    "CREATE TABLE trees("
    " num INTEGER PRIMARY KEY,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " kind TEXT NOT NULL CHECK(kind IN('repo','checkout','top','layer','image')),"
    " state TEXT NOT NULL,"
    " owner TEXT NOT NULL," /* rp_..., ws_..., the name of an image */
    " key TEXT,"            /* what it is of its owner: a commit */
    " bytes INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX trees_key ON trees(owner,kind,key)"
    " WHERE key IS NOT NULL AND state IN('making','ready');"
    "CREATE INDEX trees_owner ON trees(owner);"

    "CREATE TABLE workspaces("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " key TEXT,"
    " repo TEXT,"
    " base TEXT,"
    " base_commit TEXT,"
    " branch TEXT,"
    " mode TEXT NOT NULL CHECK(mode IN('edit','read')),"
    " state TEXT NOT NULL,"
    " state_reason TEXT,"
    " spec TEXT NOT NULL CHECK(json_valid(spec)),"
    " parent TEXT,"
    " num INTEGER NOT NULL UNIQUE,"
    " top INTEGER NOT NULL,"
    " stack TEXT NOT NULL CHECK(json_valid(stack) AND json_type(stack)='array'),"
    " begins INTEGER NOT NULL,"
    " origin INTEGER NOT NULL,"
    " head INTEGER NOT NULL,"
    " ahead TEXT NOT NULL CHECK(json_valid(ahead) AND json_type(ahead)='array'),"
    " rev INTEGER NOT NULL,"
    " clean INTEGER NOT NULL,"
    " pending TEXT CHECK(pending IS NULL OR json_valid(pending)),"
    " pin INTEGER NOT NULL,"
    " ttl_ms INTEGER,"
    " expires_ms INTEGER,"
    " created_ms INTEGER NOT NULL,"
    " used_ms INTEGER NOT NULL,"
    " ended_ms INTEGER,"
    " disk_bytes INTEGER NOT NULL,"
    " inodes INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX workspaces_key ON workspaces(tenant,key)"
    " WHERE key IS NOT NULL AND state NOT IN('trash','gone');"
    "CREATE INDEX workspaces_there ON workspaces(tenant,seq) WHERE state<>'gone';"
    "CREATE INDEX workspaces_ended ON workspaces(ended_ms) WHERE ended_ms IS NOT NULL;"
    "CREATE INDEX workspaces_pending ON workspaces(seq) WHERE pending IS NOT NULL;"

    "CREATE TABLE points("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " workspace TEXT NOT NULL,"
    " num INTEGER NOT NULL,"
    " before INTEGER NOT NULL,"
    " stack TEXT NOT NULL CHECK(json_valid(stack) AND json_type(stack)='array'),"
    " kind TEXT NOT NULL,"
    " label TEXT,"
    " process TEXT,"
    " created_ms INTEGER NOT NULL,"
    " files INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL,"
    " durable INTEGER NOT NULL,"
    " boot_id TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX points_num ON points(num);"
    "CREATE INDEX points_workspace ON points(workspace,seq);"
    "CREATE INDEX points_process ON points(process) WHERE process IS NOT NULL;"
    "CREATE INDEX points_volatile ON points(num) WHERE durable=0;"

    "ALTER TABLE sandboxes ADD COLUMN workspace TEXT;"
    "CREATE INDEX sandboxes_workspace ON sandboxes(workspace) WHERE workspace IS NOT NULL;";

/* One mirror for a URL and a credential. What a name meant is kept until the next fetch. */
static const char repos[] =
    "CREATE TABLE repos("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " key TEXT NOT NULL,"
    " url TEXT NOT NULL,"
    " cred TEXT,"
    " refs TEXT NOT NULL CHECK(json_valid(refs) AND json_type(refs)='array'),"
    " refresh TEXT NOT NULL,"
    " state TEXT NOT NULL,"
    " state_reason TEXT,"
    " tree INTEGER NOT NULL,"
    " head TEXT,"
    " generation INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " fetched_ms INTEGER,"
    " ended_ms INTEGER"
    ") STRICT;"
    "CREATE UNIQUE INDEX repos_key ON repos(tenant,key) WHERE state<>'gone';"
    "CREATE UNIQUE INDEX repos_url ON repos(tenant,url,coalesce(cred,'')) WHERE state<>'gone';"
    "CREATE INDEX repos_there ON repos(tenant,seq) WHERE state<>'gone';"

    "CREATE TABLE repo_refs("
    " repo TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " sha TEXT NOT NULL,"
    " branch TEXT,"
    " generation INTEGER NOT NULL,"
    " PRIMARY KEY(repo,name)"
    ") STRICT, WITHOUT ROWID;";

/* A name of a tenant's for a sealed tree; and which tree a sandbox has below it, whatever became of
 * the name. */
static const char images[] = "CREATE TABLE images("
			     " tenant TEXT NOT NULL,"
			     " node TEXT NOT NULL,"
			     " name TEXT NOT NULL,"
			     " tree INTEGER NOT NULL UNIQUE,"
			     " source TEXT NOT NULL,"
			     " digest TEXT NOT NULL,"
			     " bytes INTEGER NOT NULL,"
			     " files INTEGER NOT NULL,"
			     " layers INTEGER NOT NULL,"
			     " dropped INTEGER NOT NULL,"
			     " passwd TEXT,"
			     " created_ms INTEGER NOT NULL,"
			     " PRIMARY KEY(tenant,name)"
			     ") STRICT, WITHOUT ROWID;"
			     "ALTER TABLE sandboxes ADD COLUMN image_tree INTEGER;";

/* Of `checkpoint: all`. */
static const char roots[] =
    "ALTER TABLE workspaces ADD COLUMN root_num INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE workspaces ADD COLUMN root_top INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE workspaces ADD COLUMN root_begins INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE workspaces ADD COLUMN root_tree INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE workspaces ADD COLUMN root_image TEXT;"
    "CREATE INDEX workspaces_root ON workspaces(root_tree) WHERE root_tree>0;"
    "ALTER TABLE points ADD COLUMN root INTEGER NOT NULL DEFAULT 0;";
/* Values are sealed to the gate; what is here opens nothing. */
static const char secrets[] = "CREATE TABLE secrets("
			      " tenant TEXT NOT NULL,"
			      " node TEXT NOT NULL,"
			      " name TEXT NOT NULL,"
			      " bind TEXT NOT NULL CHECK(json_valid(bind)),"
			      " sealed TEXT NOT NULL,"
			      " version INTEGER NOT NULL,"
			      " created_ms INTEGER NOT NULL,"
			      " changed_ms INTEGER NOT NULL,"
			      " last_used_ms INTEGER,"
			      " uses INTEGER NOT NULL,"
			      " PRIMARY KEY(tenant,name)"
			      ") STRICT, WITHOUT ROWID;";

/* What waited for a person. */
static const char approvals[] =
    "CREATE TABLE approvals("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " rev INTEGER NOT NULL UNIQUE,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " state TEXT NOT NULL"
    "  CHECK(state IN('pending','allowed','denied','expired','withdrawn')),"
    " kind TEXT NOT NULL,"
    " sandbox TEXT,"
    " workspace TEXT,"
    " process TEXT,"
    " what TEXT NOT NULL,"
    " why TEXT,"
    " suggestion TEXT,"
    " detail TEXT NOT NULL CHECK(json_valid(detail)),"
    " lasting INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " until_ms INTEGER NOT NULL,"
    " scope TEXT CHECK(scope IN('once','sandbox','workspace')),"
    " actor TEXT,"
    " note TEXT,"
    " reason TEXT,"
    " decided_ms INTEGER,"
    " expires_ms INTEGER,"
    " applied_ms INTEGER,"
    " CHECK((state='pending')=(decided_ms IS NULL)),"
    " CHECK((state IN('allowed','denied'))=(scope IS NOT NULL))"
    ") STRICT;"
    "CREATE INDEX approvals_pending ON approvals(tenant,seq) WHERE state='pending';"
    "CREATE INDEX approvals_what ON approvals(tenant,what);"
    "CREATE INDEX approvals_decided ON approvals(decided_ms) WHERE decided_ms IS NOT NULL;";
/* What becomes of a sandbox when its time is over; and what a door was told that it has to say
 * again. */
static const char doors[] = "ALTER TABLE sandboxes ADD COLUMN life INTEGER;"
			    "ALTER TABLE sandboxes ADD COLUMN door TEXT;";

/* What sandboxes can be made from, as somebody built it. */
static const char templates[] =
    "CREATE TABLE templates("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " UNIQUE(tenant,name)"
    ") STRICT;"
    "CREATE TABLE builds("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " tenant TEXT NOT NULL,"
    " template TEXT NOT NULL,"
    " node TEXT NOT NULL,"
    " state TEXT NOT NULL CHECK(state IN('waiting','building','ready','error')),"
    " reason TEXT,"
    " step TEXT,"
    " tags TEXT NOT NULL CHECK(json_valid(tags) AND json_type(tags)='array'),"
    " context TEXT CHECK(context IS NULL OR json_valid(context)),"
    " image TEXT,"
    " workspace TEXT,"
    " created_ms INTEGER NOT NULL,"
    " ended_ms INTEGER"
    ") STRICT;"
    "CREATE INDEX builds_template ON builds(template,seq);"
    "CREATE TABLE template_tags("
    " template TEXT NOT NULL,"
    " tag TEXT NOT NULL,"
    " build TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " PRIMARY KEY(template,tag)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX template_tags_build ON template_tags(build);"
    "CREATE TABLE build_lines("
    " build TEXT NOT NULL,"
    " num INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL,"
    " level TEXT NOT NULL,"
    " text TEXT,"
    " PRIMARY KEY(build,num)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE build_steps("
    " tenant TEXT NOT NULL,"
    " hash TEXT NOT NULL,"
    " workspace TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " PRIMARY KEY(tenant,hash)"
    ") STRICT, WITHOUT ROWID;";

static const struct schema_step our_steps[] = {
	{ "the first tables", first },
	{ "connections", connections },
	{ "the package cache", "ALTER TABLE connections ADD COLUMN cache TEXT" },
	{ "workspaces", workspaces },
	{ "repositories", repos },
	{ "images", images },
	{ "roots of workspaces", roots },
	{ "secrets", secrets },
	{ "approvals", approvals },
	{ "doors", doors },
	{ "templates", templates },
	{ "ends of sandboxes", "ALTER TABLE processes ADD COLUMN at_end INTEGER" },
	{ "settings of images", "ALTER TABLE images ADD COLUMN settings TEXT" },
};

static int run_steps(struct db *db, const struct schema_step *steps, size_t from, size_t to,
                     struct err *e)
{
	char version[64];

	for (size_t i = from; i < to; i++)
		if (db_script(db, steps[i].sql, e) < 0)
			return err_wrap(e, "step %zu, %s", i + 1, steps[i].name);
	snprintf(version, sizeof version, "PRAGMA user_version=%zu; PRAGMA application_id=%d", to,
	         APPLICATION_ID);
	if (db_script(db, version, e) < 0)
		return -1;
	return db_do(db, "COMMIT", e);
}

int schema_apply(struct db *db, const struct schema_step *steps, size_t n, struct err *e)
{
	int64_t version = 0;
	struct err ignored = { 0 };

	if (db_do(db, "BEGIN EXCLUSIVE", e) < 0)
		return -1;
	int r = db_number(db, "PRAGMA user_version", &version, e);

	if (r == 0 && (version < 0 || version > (int64_t)n))
		r = err_new(e, ERR_INVALID,
		            "the database has version %" PRId64
		            ", this program knows up to %zu: use a newer one",
		            version, n);
	if (r == 0 && version < (int64_t)n)
		r = run_steps(db, steps, (size_t)version, n, e);
	else if (r == 0)
		r = db_do(db, "COMMIT", e);
	if (r < 0 && !sqlite3_get_autocommit(db->c))
		(void)db_do(db, "ROLLBACK", &ignored); /* closing does the same */
	return r;
}

/* Somebody else's database in our place is left alone. */
static int check_owner(struct db *db, struct err *e)
{
	int64_t id = 0, tables = 0;

	if (db_number(db, "PRAGMA application_id", &id, e) < 0 ||
	    db_number(db, "SELECT count(*) FROM sqlite_schema", &tables, e) < 0)
		return -1;
	if (id != APPLICATION_ID && (id != 0 || tables > 0))
		return err_new(e, ERR_INVALID, "it is the database of another program");
	return 0;
}

static int check_pages(struct db *db, struct err *e)
{
	int64_t pages = 0, page_bytes = 0;

	if (db_number(db, "PRAGMA page_count", &pages, e) < 0 ||
	    db_number(db, "PRAGMA page_size", &page_bytes, e) < 0)
		return -1;
	if (pages * page_bytes > CHECK_BYTES_MAX)
		return 0;
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, "PRAGMA quick_check(1)", e);
	if (!st || db_step(db, st, e) < 0)
		return -1;
	const char *found = (const char *)sqlite3_column_text(st, 0);

	if (!found || strcmp(found, "ok") != 0)
		return err_new(e, ERR_INTERNAL, "it is damaged: %s", found ? found : "no finding");
	return 0;
}

static int use_log(struct db *db, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, "PRAGMA journal_mode=WAL", e);

	if (!st || db_step(db, st, e) < 0)
		return -1;
	const char *mode = (const char *)sqlite3_column_text(st, 0);

	if (!mode || strcmp(mode, "wal") != 0)
		return err_new(e, ERR_INTERNAL, "its file system cannot hold a write-ahead log");
	return 0;
}

int store_check(struct store *s, struct err *e)
{
	return check_pages(&s->reader, e);
}

int schema_open(struct db *db, struct err *e)
{
	if (check_owner(db, e) < 0 || check_pages(db, e) < 0 || use_log(db, e) < 0)
		return -1;
	return schema_apply(db, our_steps, COUNT(our_steps), e);
}
