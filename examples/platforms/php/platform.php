<?php
// A lab platform in PHP: posts one submission as a Celery message, waits for the result of its task, and prints the
// verdict as JSON. Needs php-cli and php-redis.
require __DIR__ . '/signature.php';

const USAGE = <<<'END'
    usage: php platform.php PATH SUBMISSION_ID [STEP…]   (an id is 1 to 128 of A-Za-z0-9._:-)
    needs GRADER_REDIS_URL=redis://:PASSWORD@HOST:6379/0 and GRADER_PUBLIC_KEYS="KEY …", several with spaces between
    and GRADER_RESULT_URL=redis://:PASSWORD@HOST:6380/0 where the service keeps answers in another Redis
    END;

function finish(int $code, string $text): never
{
    fwrite(STDERR, "$text\n");
    exit($code);
}
set_exception_handler(fn (Throwable $error) => finish(1, $error->getMessage()));

[, $path, $submission_id] = $argv + ['', '', ''];
$url = parse_url((string) getenv('GRADER_REDIS_URL'));
$result_url = parse_url(getenv('GRADER_RESULT_URL') ?: (string) getenv('GRADER_REDIS_URL'));
$keys = preg_split('/\s+/', (string) getenv('GRADER_PUBLIC_KEYS'), -1, PREG_SPLIT_NO_EMPTY);
if (!isset($url['host'], $result_url['host']) || !$keys || !preg_match('/^[\w.:-]{1,128}$/D', $submission_id)) {
    finish(2, USAGE);
}
if (!is_file($path) || !is_readable($path)) {
    finish(2, "$path cannot be read: it is no file, or not ours to read");
}
$submission = [
    'submission_id' => $submission_id,
    'lab' => 'dali-pipelines',
    'learner' => 'u-php',
    'cohort' => '2026-fall',
    'steps' => array_slice($argv, 3),
    'artifact' => ['filename' => basename($path), 'inline' => base64_encode(file_get_contents($path))],
];

// The task's id is ours to choose: as that of the submission, it can be waited for by any process that knows the one.
$message = [
    'body' => base64_encode(json_encode([[], ['submission' => $submission], ['callbacks' => null]])),
    'content-encoding' => 'utf-8',
    'content-type' => 'application/json',
    'headers' => ['lang' => 'php', 'task' => 'grader.grade', 'id' => $submission_id],
    'properties' => [
        'correlation_id' => $submission_id,
        'body_encoding' => 'base64',
        'delivery_mode' => 2,
        'delivery_info' => ['exchange' => '', 'routing_key' => 'live'],
        'delivery_tag' => bin2hex(random_bytes(16)),
        'priority' => 0,
    ],
];

function connected(array $url): Redis
{
    $port = $url['port'] ?? 6379;
    try {
        $redis = new Redis();
        $redis->connect(($url['scheme'] === 'rediss' ? 'tls://' : '') . $url['host'], $port, 10);
        $user = rawurldecode($url['user'] ?? '') ?: 'default';
        $redis->auth([$user, rawurldecode($url['pass'] ?? '')]);
        $redis->select((int) substr($url['path'] ?? '/0', 1));
    } catch (RedisException $error) {
        finish(1, "the Redis at {$url['host']}:$port cannot be used: {$error->getMessage()}");
    }
    return $redis;
}

[$results, $broker] = [connected($result_url), connected($url)];
$result = "celery-task-meta-$submission_id";
$results->del($result); // the answer of an earlier post; before this one, which may be answered at once
if ($broker->lPush('live', json_encode($message)) === false) {
    finish(1, 'the broker did not take the submission: ' . $broker->getLastError());
}

$deadline = time() + 1800;
while (($raw = $results->get($result)) === false) {
    if (time() > $deadline) {
        finish(1, 'no verdict came within 1800 s; post the same again to go on waiting');
    }
    usleep(200_000);
}
$verdict = json_decode($raw)->result; // as objects: an empty one and an empty list are not the same
check_signature($verdict, $keys);
// Whoever may write to that Redis can put a genuine verdict on something else there. A message that nobody can read has no id.
if ($verdict->submission_id !== $submission_id && $verdict->code !== 'message.malformed') {
    finish(1, "the answer is a verdict on $verdict->submission_id, not on $submission_id");
}
$points = $verdict->score === null ? "$verdict->code: $verdict->feedback" : "$verdict->score of $verdict->max_score";
fwrite(STDERR, "$verdict->submission_id $verdict->status: $points\n");
echo canonical($verdict), "\n";
exit($verdict->status === 'rejected' ? 1 : 0);
