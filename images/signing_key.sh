#!/usr/bin/env bash
# Sees to it that the service `signer` has the key that signs. For images/up.sh.
#   images/signing_key.sh PROJECT IMAGE DATABASE_VOLUME     the volume's name, where it was there before; else an empty text
set -euo pipefail
project=$1 service=$2 old_database=$3

# The one place where a signing key is made in silence: for a database that is made now. Versions before had it in the judge's volume.
for name in signer-keys judge-state; do
    docker volume create --label com.docker.compose.project="$project" --label com.docker.compose.volume="$name" "${project}_$name" >/dev/null
done
docker run --rm -i --network none --user 0 -v "${project}_judge-state:/judge" -v "${project}_signer-keys:/var/lib/grader-signer" \
    -e old_database="$old_database" -e volume="${project}_signer-keys" --entrypoint sh "$service" -seu <<'END'
own=/var/lib/grader-signer/keys/verdict-signing.pem
before=/judge/keys/verdict-signing.pem
signer() { setpriv --reuid 10002 --regid 10001 --clear-groups env GRADER_STATE_DIR=/var/lib/grader-signer python3 -m grader_service keys "$@"; }
if [ -s "$before" ]; then
    known=
    [ ! -s "$own" ] || known=$(signer show)
    theirs=$(GRADER_STATE_DIR=/judge python3 -m grader_service keys show --hex) # the one in use comes first
    theirs=${theirs%% *}
    GRADER_STATE_DIR=/judge python3 -m grader_service keys list --json | signer add - >/dev/null
    if [ -z "$known" ]; then
        signer make --key - <"$before" >/dev/null
    elif [ "${known#*"$theirs"}" = "$known" ]; then # a version before ran again meanwhile, and made another one
        signer rotate --key - <"$before" >/dev/null
    fi
elif [ ! -s "$own" ] && [ -n "$old_database" ]; then
    cat >&2 <<MESSAGE
there is a database in the volume $old_database, and the key that signed its verdicts is not in the volume $volume.
Bring back that volume, or the private key from where you keep secrets: images/compose.sh run --rm -T signer keys make --key - <FILE
A new key, which platforms must be told: images/compose.sh run --rm signer keys make
MESSAGE
    exit 2
elif [ ! -s "$own" ]; then
    signer make >/dev/null
fi
END
