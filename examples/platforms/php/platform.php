<?php
// A lab platform in PHP: posts one submission as a Celery message, waits for the result of its task, and prints the
// verdict as JSON. Needs php-cli and php-redis.
//   GRADER_REDIS_URL=redis://:PASSWORD@HOST:6379/0 GRADER_PUBLIC_KEYS=KEY php platform.php PATH SUBMISSION_ID [STEP…]
require __DIR__ . '/signature.php';

[, $path, $submissionId] = $argv;
$submission = [
    'submission_id' => $submissionId,
    'lab' => 'dali-pipelines',
    'learner' => 'u-17',
    'cohort' => '2026-fall',
    'steps' => array_slice($argv, 3),
    'artifact' => ['filename' => basename($path), 'inline' => base64_encode(file_get_contents($path))],
];

// The task's id is ours to choose: as that of the submission, it can be waited for by any process that knows the one.
$message = [
    'body' => base64_encode(json_encode([[], ['submission' => $submission], ['callbacks' => null]])),
    'content-encoding' => 'utf-8',
    'content-type' => 'application/json',
    'headers' => ['lang' => 'php', 'task' => 'grader.grade', 'id' => $submissionId],
    'properties' => [
        'correlation_id' => $submissionId,
        'body_encoding' => 'base64',
        'delivery_mode' => 2,
        'delivery_info' => ['exchange' => '', 'routing_key' => 'live'],
        'delivery_tag' => bin2hex(random_bytes(16)),
        'priority' => 0,
    ],
];

$url = parse_url(getenv('GRADER_REDIS_URL'));
$redis = new Redis();
$redis->connect($url['host'], $url['port'] ?? 6379, 10);
$redis->auth(rawurldecode($url['pass']));
$result = "celery-task-meta-$submissionId";
$redis->multi()->del($result)->lPush('live', json_encode($message))->exec(); // without the answer of an earlier post

$deadline = time() + 1800;
while (($raw = $redis->get($result)) === false) {
    if (time() > $deadline) {
        fwrite(STDERR, "no verdict came within 1800 s; the submission is still with the service\n");
        exit(3);
    }
    usleep(200_000);
}
$verdict = json_decode($raw)->result; // as objects: an empty one and an empty list are not the same
check_signature($verdict, explode(' ', getenv('GRADER_PUBLIC_KEYS')));
fwrite(STDERR, "$verdict->submission_id $verdict->status: " . json_encode($verdict->score) . " of $verdict->max_score\n");
echo canonical($verdict), "\n";
