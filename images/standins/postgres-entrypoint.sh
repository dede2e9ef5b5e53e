#!/bin/sh
# Understands what compose.yaml asks of PostgreSQL: POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD_FILE, PGDATA.
set -eu
bin=$(ls -d /usr/lib/postgresql/*/bin)
user=${POSTGRES_USER:-postgres}
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    "$bin/initdb" -D "$PGDATA" -U "$user" --pwfile="$POSTGRES_PASSWORD_FILE" -A scram-sha-256 -E UTF8 --no-locale >/dev/null
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    # Before anybody outside can connect: the database, over a socket of this container's own.
    "$bin/pg_ctl" -D "$PGDATA" -w -o "-c listen_addresses= -k /tmp" start >/dev/null
    PGPASSWORD=$(head -n 1 "$POSTGRES_PASSWORD_FILE") "$bin/createdb" -h /tmp -U "$user" "${POSTGRES_DB:-$user}"
    "$bin/pg_ctl" -D "$PGDATA" -w -m fast stop >/dev/null
fi
exec "$bin/postgres" -D "$PGDATA" -c "listen_addresses=*" -c unix_socket_directories=/tmp
