#!/usr/bin/env bash
# Waits until the service that `images/up.sh` started can grade, and shows it: a tiny submission goes in over the queue, and its
# verdict comes out. Then says where everything is. On a runner host it waits until the runner can work, and on a control
# host without any runner host it says how to add one.
set -euo pipefail
cd "$(dirname "$0")/.."
secrets=${GRADER_SECRETS_DIR:-secrets}
case ${GRADER_ROLE:-all} in
control)
    if [ -z "$(.venv/bin/grader hosts list)" ]; then
        echo "The control host is started, and knows no runner host: .venv/bin/grader hosts add NAME > NAME.tar"
        exit
    fi
    ;;
runner)
    echo "waiting until the runner can do its work …"
    until said=$(images/compose.sh exec runner python3 -m grader_service.health ready </dev/null 2>&1); do
        if ((SECONDS > ${GRADER_READY_S:-120})); then
            printf '%s\nnot ready after %s s; images/compose.sh logs link runner\n' "$said" "$SECONDS" >&2
            exit 3
        fi
        sleep 1
    done
    echo "The runner $GRADER_RUNNER_NAME is ready for the control host at $GRADER_CONTROL_ADDRESS."
    exit
    ;;
esac
broker=127.0.0.1:${GRADER_REDIS_PORT:-6379}/0 results=127.0.0.1:${GRADER_RESULT_PORT:-6380}/0

echo "waiting until every worker can do its work …"
until said=$(images/compose.sh exec judge python3 -m grader_service doctor --service </dev/null 2>&1); do
    if ((SECONDS > ${GRADER_READY_S:-120})); then
        printf '%s\nnot ready after %s s; images/compose.sh ps, images/compose.sh logs runner\n' "$said" "$SECONDS" >&2
        exit 3
    fi
    sleep 1
done
echo "$said"
# As the administrator, since the platform without a name may have been removed.
GRADER_REDIS_URL=redis://admin@$broker GRADER_REDIS_PASSWORD_FILE=$secrets/redis_admin_password \
    GRADER_RESULT_URL=redis://admin@$results GRADER_RESULT_PASSWORD_FILE=$secrets/redis_admin_password \
    .venv/bin/grader submit examples/first_step.py --steps baseline --cohort proof --wait 600

cat <<END

The service grades.
  admin page  http://127.0.0.1:${GRADER_WEB_PORT:-8350}, with the token in $secrets/web_viewer_token, or $secrets/web_operator_token to act
  metrics     http://127.0.0.1:${GRADER_METRICS_PORT:-9464}/metrics
  post        export GRADER_REDIS_PASSWORD_FILE=$secrets/redis_password GRADER_REDIS_URL=redis://$broker
              export GRADER_RESULT_PASSWORD_FILE=$secrets/redis_password GRADER_RESULT_URL=redis://$results
              .venv/bin/grader submit PATH --wait 300          # from a program: docs/platforms.md
  workers     images/compose.sh exec judge python3 -m grader_service doctor --service
  end         make down                                        # keeps the database, artifacts and keys
Variables that were given to this start, such as GRADER_PROJECT, these commands need too.
END
