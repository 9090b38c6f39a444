#!/usr/bin/env python3
"""Tests against a real PostgreSQL that is started inside, in memory, and gone with the sandbox: no container, no port,
no password, and as many side by side as there is room for."""
import glob

from caisson import Sandbox

SCHEMA = """
create table account (id serial primary key, owner text not null unique, cents bigint not null check (cents >= 0));
insert into account (owner, cents) values ('ada', 1000), ('bob', 0);
"""
# name, SQL, what psql prints
TESTS = [
    ("money moves", "begin; update account set cents = cents - 300 where owner = 'ada'; "
     "update account set cents = cents + 300 where owner = 'bob'; commit; select owner, cents from account order by 1", "ada|700\nbob|300"),
    ("nobody owes", "update account set cents = cents - 9999 where owner = 'bob'", 'violates check constraint "account_cents_check"'),
    ("names are unique", "insert into account (owner, cents) values ('ada', 1)", "duplicate key value"),
]


def main():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not found:
        print("PostgreSQL is not installed here")
        return 77
    with Sandbox(net="deny", limits=dict(mem="1g", disk="512m", pids=128)) as s:
        server = dict(PATH=f"{found[-1]}:/usr/bin:/bin", PGHOST="/tmp", PGDATABASE="postgres", PGDATA="/tmp/data")
        s.exec("initdb -A trust --no-sync >/dev/null && pg_ctl -w start -l /tmp/log "
               "-o '-c listen_addresses= -c unix_socket_directories=/tmp -c fsync=off -c full_page_writes=off'",
               env=server, timeout="1m", check=True)
        where = s.exec("stat -f -c %T /tmp/data").stdout.strip()
        print(s.exec(["psql", "-tAc", "show server_version"], env=server, check=True).stdout.strip(), "on", where)
        s.exec(["psql", "-v", "ON_ERROR_STOP=1", "-qf", "-"], stdin=SCHEMA, env=server, check=True)
        failed = 0
        for name, sql, expected in TESTS:
            r = s.exec(["psql", "-qtA", "-c", sql], env=server, timeout="10s")
            is_good = expected in r.stdout + r.stderr
            failed += not is_good
            print("ok  " if is_good else "FAIL", name, "" if is_good else r.stdout + r.stderr)
    return 1 if failed or where != "tmpfs" else 0


if __name__ == "__main__":
    raise SystemExit(main())
