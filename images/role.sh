# Sourced by the scripts beside it: GRADER_ROLE is what this host has. A host stays what it was made, whoever gives the next
# command, and from whichever shell.
for was in control:control runner:host; do
    key=${GRADER_SECRETS_DIR:-$PWD/secrets}/hosts/${was#*:}.key
    [ -z "${GRADER_ROLE:-}" ] && [ -e "$key" ] || continue
    cat >&2 <<END
$key makes this a ${was%:*} host, and GRADER_ROLE is not set. As before: GRADER_ROLE=${was%:*}, with its
other variables; to make it a host of all services: GRADER_ROLE=all
END
    exit 2
done
export GRADER_ROLE=${GRADER_ROLE:-all}
case $GRADER_ROLE in
all | control | runner) ;;
*)
    echo "GRADER_ROLE is '$GRADER_ROLE'; expected all (one host, the default), control or runner" >&2
    exit 2
    ;;
esac
