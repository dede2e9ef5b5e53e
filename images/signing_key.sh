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
    -e old_database="$old_database" -e volume="${project}_signer-keys" -e others="${project}_judge-state" -e image="$service" \
    --entrypoint sh "$service" -seu <<'END'
own=/var/lib/grader-signer/keys/verdict-signing.pem
before=/judge/keys/verdict-signing.pem
signer() { setpriv --reuid 10002 --regid 10001 --clear-groups env GRADER_STATE_DIR=/var/lib/grader-signer python3 -m grader_service keys "$@"; }
judge() { setpriv --reuid 10001 --regid 10001 --clear-groups "$@"; }
if [ -s "$own" ]; then
    # Whoever takes over a judge can write to its volume: what lies there is told, and believed only at an owner's word.
    # images/up.sh removes the folder, so it is copied; not moved, since a judge of a version before may still use it.
    known=$(signer show)
    theirs=
    [ ! -s "$before" ] || theirs=$(judge env GRADER_STATE_DIR=/judge timeout 60 python3 -m grader_service keys show) || theirs=unreadable
    for id in $(printf '%s' "$theirs" | cut -d ' ' -f 1); do
        case "$known" in *"$id"*) continue ;; esac
        judge mkdir -p "/judge/unknown-$id"
        judge cp -aT /judge/keys "/judge/unknown-$id/keys"
        break
    done
    for folder in /judge/unknown-*; do
        id=${folder#/judge/unknown-}
        case "$id" in *[!0-9a-z]*) continue ;; esac # no name of ours, and it would stand in a command below
        case "$known" in *"$id"*)
            judge rm -rf "$folder" || : # said by it
            continue
            ;;
        esac
        cat >&2 <<MESSAGE
The volume $others has a signing key that this service does not know: $id. It is not used, and nothing that it signed is believed.
A version before made it, if one ran without the service's own key; else whoever took over a judge. To know it as this service's own, once it is started:
docker run --rm --network none -v $others:/judge:ro -e GRADER_STATE_DIR=/judge/unknown-$id $image keys list --json | images/compose.sh exec signer python3 -m grader_service keys add -
To remove it for ever: docker run --rm --network none -v $others:/judge --entrypoint rm $image -r /judge/unknown-$id
MESSAGE
    done
elif [ -s "$before" ]; then
    GRADER_STATE_DIR=/judge python3 -m grader_service keys list --json | signer add - >/dev/null
    signer make --key - <"$before" >/dev/null
elif [ -n "$old_database" ]; then
    cat >&2 <<MESSAGE
there is a database in the volume $old_database, and the key that signed its verdicts is not in the volume $volume.
Bring back that volume, or the private key from where you keep secrets: images/compose.sh run --rm -T signer keys make --key - <FILE
A new key, which platforms must be told: images/compose.sh run --rm signer keys make
MESSAGE
    exit 2
else
    signer make >/dev/null
fi
END
