#!/usr/bin/env bash
# Docker's compose for this service, under whichever name it has here: images/compose.sh ps
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${GRADER_GPU:-none}" != none ] && [ -z "${COMPOSE_FILE:-}" ]; then
    COMPOSE_FILE=compose.yaml:compose.gpu.yaml
    [ ! -e compose.override.yaml ] || COMPOSE_FILE=$COMPOSE_FILE:compose.override.yaml # as compose does without the variable
    export COMPOSE_FILE
fi
[ "${1:-}" != exec ] || [ -t 0 ] || set -- exec -T "${@:2}" # or it wants a terminal
compose=(docker-compose)
docker compose version >/dev/null 2>&1 && compose=(docker compose)
exec "${compose[@]}" -p "${GRADER_PROJECT:-grader}" "$@"
