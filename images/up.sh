#!/usr/bin/env bash
# Prepares what compose.yaml needs on this host and starts it: secrets, the runner's state folder, images. Repeating is safe.
#   images/up.sh [arguments of `up`]      everything else through the environment that compose.yaml names
#   GRADER_GPU=GPU-… images/up.sh         with a GPU
#   GRADER_ROLE=control images/up.sh      without a runner; GRADER_ROLE=runner: the runner alone (docs/operations.md)
set -euo pipefail
cd "$(dirname "$0")/.."
export GRADER_STATE_DIR=${GRADER_STATE_DIR:-/var/lib/grader}
export GRADER_BACKUP_DIR=${GRADER_BACKUP_DIR:-$GRADER_STATE_DIR/backups}
export GRADER_LOCK_DIR=${GRADER_LOCK_DIR:-/run/lock}
export GRADER_SECRETS_DIR=${GRADER_SECRETS_DIR:-$PWD/secrets}
export GRADER_DOCKER_SOCKET=${GRADER_DOCKER_SOCKET:-/var/run/docker.sock}
service=${GRADER_SERVICE_IMAGE:-grader-service:latest}
export GRADER_DOCKER_GID=${GRADER_DOCKER_GID:-$(stat -c %g "$GRADER_DOCKER_SOCKET")}

. images/role.sh
role=$GRADER_ROLE
runner_uid=${GRADER_RUNNER_UID:-10004}
if [[ ! $runner_uid =~ ^[1-9][0-9]{4,8}$ ]] || ((runner_uid <= 10003)); then
    echo "GRADER_RUNNER_UID is '$runner_uid'; expected a user id above 10003 that nothing else on this host has" >&2
    exit 2
fi
[ "$role${GRADER_LABS_DIR:-}" = all ] || images/compose.sh config -q # what is wrong with these variables is said before anything is made
if [ "$role" = runner ] && [ ! -s "$GRADER_SECRETS_DIR/hosts/host.key" ]; then
    cat >&2 <<END
$GRADER_SECRETS_DIR has nothing by which the control host knows this one. There, in the folder of the repository:
.venv/bin/grader hosts add $GRADER_RUNNER_NAME > $GRADER_RUNNER_NAME.tar
and here: install -d -m 700 $GRADER_SECRETS_DIR && tar -xp -C $GRADER_SECRETS_DIR -f $GRADER_RUNNER_NAME.tar
END
    exit 2
fi

project=${GRADER_PROJECT:-grader}
volume=${project}_postgres-data
old_database=
if docker volume inspect "$volume" >/dev/null 2>&1; then old_database=$volume; fi
if [ ! -s "$GRADER_SECRETS_DIR/postgres_password" ] && [ -n "$old_database" ]; then
    cat >&2 <<END
the database in the volume $volume has a password that is not in $GRADER_SECRETS_DIR; a new one would not open it.
Bring back the folder with which it was made (or name it: GRADER_SECRETS_DIR), or give up what the service has stored:
images/compose.sh down -v deletes the volumes with database, artifacts and signing keys
END
    exit 2
fi

# The folder is closed; the files in it must be readable by the uids of the containers that they are mounted into.
install -d -m 700 "$GRADER_SECRETS_DIR"
roles=(judge regrade runner backup metrics web operator)
for name in redis_password redis_{admin,judge,runner}_password postgres_password "${roles[@]/#/postgres_}" web_viewer_token web_operator_token; do
    [ "$role" != runner ] || break # they came from the control host
    [ -s "$GRADER_SECRETS_DIR/$name" ] || (umask 077; head -c 24 /dev/urandom | base64 | tr '+/' '-_' >"$GRADER_SECRETS_DIR/$name")
    chmod 444 "$GRADER_SECRETS_DIR/$name"
done
find deploy/kubernetes/redis-start.sh ! -perm -o=r -exec chmod a+r {} + # mounted, too

if [ "$role" = control ]; then
    .venv/bin/grader hosts prepare
    # Of a time when it was the only host; compose would leave it as it is.
    for name in runner pods; do # the one that uses the other first: what it has in hand goes back uncounted
        docker ps -aq --filter "label=com.docker.compose.project=$project" --filter "label=com.docker.compose.service=$name" \
            | xargs -r sh -c 'docker stop -t 60 "$@" && docker rm "$@"' stop >/dev/null
    done
fi

wanted=(all)
[ "$role" != control ] || wanted=(service)
if [ "$role" != runner ] && [ -z "${GRADER_REDIS_IMAGE:-}${GRADER_POSTGRES_IMAGE:-}" ] && ! timeout 15 docker pull -q "$(sed -n 's/.*{GRADER_REDIS_IMAGE:-\(.*\)}.*/\1/p' compose.yaml)" >/dev/null 2>&1; then
    wanted+=(stand-ins)
    export GRADER_REDIS_IMAGE=grader-redis:latest GRADER_POSTGRES_IMAGE=grader-postgres:latest
fi
.venv/bin/grader images build "${wanted[@]}"

# Of the service alone: what `grader grade` leaves in the folder above belongs to whoever called it. The engine makes it, since
# a user who may use Docker need not be root.
new_locks=
[ -e "$GRADER_LOCK_DIR" ] || new_locks=yes
docker run --rm -i --network none --user 0 -v "$GRADER_STATE_DIR:$GRADER_STATE_DIR" -v "$GRADER_BACKUP_DIR:$GRADER_BACKUP_DIR" \
    -v "$GRADER_LOCK_DIR:/run/lock" -e new_locks="$new_locks" -e locks="$GRADER_LOCK_DIR" -e docker_gid="$GRADER_DOCKER_GID" -e runner_uid="$runner_uid" \
    --entrypoint sh "$service" -seu "$GRADER_STATE_DIR/service" "$GRADER_BACKUP_DIR" "$GRADER_STATE_DIR/pods" <<'END'
# Every grader of the host writes to this folder, whoever runs it; one that was there keeps its rights.
[ -z "$new_locks" ] || chmod 1777 /run/lock
locked() {
    setpriv --reuid "$2" --regid "$2" --groups "$3" test -w /run/lock -a -x /run/lock && return
    echo "$1 works as uid $2 and cannot write to the lock folder $locks; let it (chmod 1777 $locks), or name another folder, the same for every grader of this host: GRADER_LOCK_DIR" >&2
    exit 2
}
locked "the runner" "$runner_uid" 10003
locked "the pod broker" 10003 "$docker_gid"
own() {
    [ -d "$3" ] || install -d -o "$2" -g "$2" -m 750 "$3"
    stranger=$(find "$3" -maxdepth 1 ! -uid "$2" -print -quit)
    [ -n "$stranger" ] || return 0
    echo "$stranger belongs to uid $(stat -c %u "$stranger"), and $1 works as uid $2; if nobody else uses $3: chown -R $2:$2 $3" >&2
    exit 2
}
own "the runner" "$runner_uid" "$1"
own "the pod broker" 10003 "$3"
# Perhaps another machine's disk, where root is nobody.
writable() { setpriv --reuid 10001 --regid 10001 --clear-groups test -w "$1" -a -x "$1"; }
writable "$2" || [ -n "$(ls -A "$2" 2>/dev/null)" ] || install -d -o 10001 -g 10001 -m 750 "$2" || true
if ! writable "$2"; then
    echo "the judge works as uid 10001 and cannot write to the folder of backups $2: chown 10001:10001 $2, or name another one: GRADER_BACKUP_DIR" >&2
    exit 2
fi
END

[ "$role" = runner ] || images/signing_key.sh "$project" "$service" "$old_database"

if [ $# = 0 ] && [ "$role" != control ]; then
    images/compose.sh stop runner # before its broker, so that it finishes what it has in hand, or gives it back uncounted
fi

here=() first=migrate
if [ "$role" = runner ]; then
    # Of compose.yaml, what holds learners' pods; what it depends on there is on the control host here.
    mapfile -t here < <(images/compose.sh config --services | grep -xE 'link|pods|runner')
    here=(--no-deps "${here[@]}") first=link
fi
status=0
images/compose.sh up -d "$@" "${here[@]}" || status=$?
[ "$status" != 0 ] || exit 0
echo "the services did not start; the last lines of $first, for which the workers wait:" >&2
images/compose.sh logs --no-color --tail 3 "$first" >&2
exit "$status"
