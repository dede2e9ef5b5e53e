#!/bin/sh
# Starts one of the service's two Redis servers with its users; compose.yaml and the manifests beside this file call it.
#   redis-start.sh broker|results [options of redis-server]
#   redis-start.sh broker|results --print      shows the users instead, for a Redis that somebody else runs
#
# Users of our own are written anew at each start, from the password files in $SECRETS, so that rules of a new version arrive.
# Those of platforms (`grader platforms add`) are in the server's ACL file; they keep passwords and keys, and get the commands
# of this version. Only `admin` may administer anything, or run a script that it brings along.
set -eu
umask 077
server=$1
shift
data=${DATA:-/data} secrets=${SECRETS:-/run/secrets} port=${PORT:-6379}

every='+ping +info +client|setname +select +@transaction +llen'
redis-server --version | grep -q 'v=7\.0\.' || every="$every +client|setinfo" # by which clients say their version; 7.2 brought it
consumes='+brpop +lpush +rpush +hset +hget +hdel +zadd +zrem +zrange +set +get +del +sadd +smembers'
case $server in
broker)
    # Celery keeps messages with a priority in lists of their own, whose names end so.
    step=$(printf '\006\026')
    intake=
    for queue in live regrade; do
        for name in "$queue" "$queue${step}3" "$queue${step}6" "$queue${step}9"; do intake="$intake ~$name"; done
    done
    hints='~grader.run.* ~grader.judge.* ~unacked* ~_kombu.binding*.grader.run.* ~_kombu.binding*.grader.judge.*'
    judge="$hints$intake ~grader:intake:* $every $consumes +lrange +lrem +lmove +blmove +scan +exists +pexpire"
    runner="$hints $every $consumes"
    bindings='~_kombu.binding.live ~_kombu.binding.regrade ~_kombu.binding_permanent.live ~_kombu.binding_permanent.regrade'
    # Each with its command alone: SADD to a queue would make something of it into which nobody can push.
    posts="($(echo "$intake" | sed 's/~/%W~/g') +lpush +llen) ($(echo "$bindings" | sed 's/~/%W~/g') +sadd)"
    platform="$every $posts"
    default=$platform
    ;;
results)
    judge="%W~* &celery-task-meta-* $every +publish +lpush +sadd (~celery-task-meta-* +get +set +setex +del)"
    platform="$every $consumes +mget +subscribe +unsubscribe +evalsha"
    # Every name of a queue may be its own, and programs read them in ways of their own. A Celery worker that was not told to
    # leave it makes queues for gossip, and calls scripts for them, which run with the rights of this user.
    default="~* &* +@list +@string -@dangerous +exists +expire +ttl $platform"
    default="$default +@pubsub +script|load +script|exists +time +pexpire +srem +zrangebyscore"
    ;;
*)
    echo "redis-start.sh: expected which server to start, broker or results; got '$server'" >&2
    exit 2
    ;;
esac

user() { # NAME STATE PASSWORD-FILE RULES…
    password=$(head -n 1 "$secrets/$3" | tr -d '[:space:]')
    if [ -z "$password" ]; then
        echo "redis-start.sh: the first line of $secrets/$3 must be the password of the user $1; it is empty, or cannot be read" >&2
        exit 2
    fi
    echo "user $1 $2 #$(printf %s "$password" | sha256sum | cut -d ' ' -f 1) resetchannels -@all $4"
}
users() {
    user admin on redis_admin_password '~* &* +@all'
    user judge on redis_judge_password "$judge"
    [ "$server" = results ] || user runner on redis_runner_password "$runner"
    # What `grader platforms remove default` has switched off stays so.
    state=on
    ! grep -qs '^user default off ' "$data/users.acl" || state=off
    user default $state redis_password "$default"
    echo "user platform off resetchannels -@all $platform" # what `grader platforms add` copies
    # Of theirs stay name, password and what is their own.
    [ ! -e "$data/users.acl" ] || sed -n "/^user platform-/{s/ ([^)]*)//g;s/ [+-][^ ]*//g;s/\$/ -@all $platform/p}" "$data/users.acl"
}

if [ "${1:-}" = --print ]; then
    users
    exit
fi
users >"$data/users.acl.new"
mv "$data/users.acl.new" "$data/users.acl"

# With this script redis-py, and so a platform's Celery worker, releases its lock: the one that platforms may call (EVALSHA).
release="
        local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        redis.call('del', KEYS[1])
        return 1
    "
admin() { REDISCLI_AUTH=$(head -n 1 "$secrets/redis_admin_password") redis-cli -p "$port" --user admin "$@"; }
until admin script load "$release" 2>/dev/null | grep -Eq '^[0-9a-f]{40}$' || ! kill -0 $$ 2>/dev/null; do sleep 0.1; done &
exec redis-server --port "$port" --aclfile "$data/users.acl" --dir "$data" --save "" --appendonly yes --appendfsync always \
    --maxmemory-policy noeviction --maxmemory "${MAXMEMORY:-512mb}" "$@"
