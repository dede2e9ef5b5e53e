#!/usr/bin/env bash
# Docker's compose for this service, under whichever name it has here: images/compose.sh ps
set -euo pipefail
cd "$(dirname "$0")/.."
. images/role.sh
files=compose.yaml
[ "$GRADER_ROLE" = all ] || files+=:compose.$GRADER_ROLE.yaml
[ "${GRADER_GPU:-none}" = none ] || files+=:compose.gpu.yaml
if [ "$GRADER_ROLE" != all ] && [ -n "${COMPOSE_FILE:-}" ] && [[ ":$COMPOSE_FILE:" != *":compose.$GRADER_ROLE.yaml:"* ]]; then
    echo "COMPOSE_FILE is '$COMPOSE_FILE'; expected compose.$GRADER_ROLE.yaml among its files, since GRADER_ROLE is $GRADER_ROLE, or no COMPOSE_FILE" >&2
    exit 2
fi
if [ "$files" != compose.yaml ] && [ -z "${COMPOSE_FILE:-}" ]; then
    [ ! -e compose.override.yaml ] || files+=:compose.override.yaml # as compose does without the variable
    export COMPOSE_FILE=$files
fi
if [ -n "${GRADER_LABS_DIR:-}" ]; then
    # Compose takes a word without a slash for a volume, and makes a folder that is not there.
    [ -d "$GRADER_LABS_DIR" ] || { echo "GRADER_LABS_DIR is '$GRADER_LABS_DIR', which is no folder; expected one with labs, each as ID.toml, ID.yaml or ID.yml" >&2; exit 2; }
    GRADER_LABS_DIR=$(realpath "$GRADER_LABS_DIR")
    export GRADER_LABS_DIR
fi
project=${GRADER_PROJECT:-grader}
GRADER_REDIS_USERS=$(sha256sum deploy/kubernetes/redis-start.sh | cut -c 1-12)
export GRADER_REDIS_USERS # another one where the users of Redis have other rights: both are started anew
GRADER_LINK_CERTIFICATES=$({ cat "${GRADER_SECRETS_DIR:-secrets}"/hosts/{control,host}.pem 2>/dev/null || true; } | sha256sum | cut -c 1-12)
export GRADER_LINK_CERTIFICATES # the same for `link`, which reads its key and certificates when it starts
export GRADER_BACKUP_DIR=${GRADER_BACKUP_DIR:-${GRADER_STATE_DIR:-/var/lib/grader}/backups}
if [ "${1:-}" = exec ]; then
    label=label=com.docker.compose
    # Compose v1 ends without a word here.
    running=$(docker ps -q --filter "$label.project=$project" --filter "$label.service=${2:-}" --filter status=running)
    if [ -z "$running" ]; then
        echo "no container of the service '${2:-}' runs in the project '$project'; GRADER_PROJECT names another project, make up starts it" >&2
        exit 1
    fi
    { [ -t 0 ] && [ -t 1 ]; } || set -- exec -T "${@:2}" # or it wants a terminal, or ends lines as one does
fi
compose=(docker-compose)
docker compose version >/dev/null 2>&1 && compose=(docker compose)
exec "${compose[@]}" -p "$project" "$@"
