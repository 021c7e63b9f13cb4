#!/bin/sh
# Makes the engine's user of the catalog and keeps its password as the secret has it. The administrator's name and
# password are in PGUSER and PGPASSWORD, the engine's in ENGINE_USER and ENGINE_PASSWORD. `once` ends after one round.
set -eu

if [ -n "${CATALOG_AUTHORITY:-}" ]; then
  PGSSLROOTCERT=${TMPDIR:-/tmp}/catalog-authority.pem
  printf '%s\n' "$CATALOG_AUTHORITY" >"$PGSSLROOTCERT"
  export PGSSLROOTCERT PGSSLMODE=verify-full
fi

# psql quotes the values (:'x' as text, :"x" as a name): none becomes part of a statement. `\password` sends a hash, so the
# password is in no log of statements; it reads its standard input where there is no terminal.
reconcile() {
  psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --dbname="$PGDATABASE" <<'SQL' || return 1
\getenv user ENGINE_USER
\getenv database PGDATABASE
SELECT format('CREATE ROLE %I LOGIN', :'user') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'user') \gexec
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
GRANT CONNECT, CREATE, TEMPORARY ON DATABASE :"database" TO :"user";
SQL
  printf '%s\n%s\n' "$ENGINE_PASSWORD" "$ENGINE_PASSWORD" |
    psql --no-psqlrc --quiet --dbname="$PGDATABASE" --command="\\password $ENGINE_USER" 2>/dev/null
}

if [ "${1:-}" = once ]; then
  reconcile
  exit
fi
while :; do
  if reconcile; then
    echo "the engine's user is as it should be"
    touch "${TMPDIR:-/tmp}/reconciled"
    sleep 60
  else
    echo "the engine's user could not be made; trying again" >&2
    sleep 5
  fi
done
