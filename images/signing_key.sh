#!/usr/bin/env bash
# Sees to it that the service `signer` has the key that signs. For images/up.sh.
#   images/signing_key.sh PROJECT IMAGE DATABASE_VOLUME     the volume's name, where it was there before; else an empty text
set -euo pipefail
project=$1 service=$2 old_database=$3

# The one place where a signing key is made in silence: for a database that is made now.
volume=${project}_signer-keys
docker volume create --label com.docker.compose.project="$project" --label com.docker.compose.volume=signer-keys "$volume" >/dev/null
docker run --rm -i --network none --user 0 -v "$volume:/var/lib/grader-signer" -e old_database="$old_database" -e volume="$volume" \
    --entrypoint sh "$service" -seu <<'END'
[ ! -s /var/lib/grader-signer/keys/verdict-signing.pem ] || exit 0
if [ -n "$old_database" ]; then
    cat >&2 <<MESSAGE
there is a database in the volume $old_database, and the key that signed its verdicts is not in the volume $volume.
Bring back that volume, or the private key from where you keep secrets: images/compose.sh run --rm -T signer keys make --key - <FILE
A new key, which platforms must be told: images/compose.sh run --rm signer keys make
MESSAGE
    exit 2
fi
exec setpriv --reuid 10002 --regid 10001 --clear-groups env GRADER_STATE_DIR=/var/lib/grader-signer python3 -m grader_service keys make >/dev/null
END
