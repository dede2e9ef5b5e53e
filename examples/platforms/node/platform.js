// A lab platform in JavaScript, with a public Celery client: posts one submission, is told its verdict on a queue of its
// own, and prints it as JSON.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import celery from "celery-node";
import { checkSignature } from "./signature.js";

const USAGE = `usage: node platform.js PATH SUBMISSION_ID [STEP…]   (an id is 1 to 128 of A-Za-z0-9._:-)
needs GRADER_REDIS_URL=redis://:PASSWORD@HOST:6379/0 and GRADER_PUBLIC_KEYS="KEY …", several with spaces between
and GRADER_RESULT_URL=redis://:PASSWORD@HOST:6380/0 where the service keeps answers in another Redis`;

function end(code, text) {
  console.error(text);
  process.exit(code);
}
process.on("uncaughtException", (error) => end(1, error.message));
console.info = () => {}; // celery-node would print what it does, and every verdict as a whole

const [path, submissionId, ...steps] = process.argv.slice(2);
const { GRADER_REDIS_URL: address, GRADER_PUBLIC_KEYS: publicKeys } = process.env;
// A malformed id is answered under the name "unknown", for which nobody would wait.
if (!address || !publicKeys?.trim() || !/^[\w.:-]{1,128}$/.test(submissionId ?? "")) end(2, USAGE);

// The client leaves the user out of an address unless that asks for it.
const named = (text) => (new URL(text).username ? `${text}?allowUsernameInURI=true` : text);
const [url, resultUrl] = [address, process.env.GRADER_RESULT_URL || address].map(named);

let bytes;
try {
  bytes = readFileSync(path);
} catch (error) {
  end(2, `${path} cannot be read: ${error.message}`);
}
if (bytes.length > 1 << 20) end(2, `${path} has ${bytes.length} bytes; at most 1 MiB goes in a message`);
const submission = {
  submission_id: submissionId,
  lab: "dali-pipelines",
  learner: "u-node",
  cohort: "2026-fall",
  steps,
  artifact: { filename: basename(path), inline: bytes.toString("base64") },
  reply_to: { queue: "node-platform", task: "lab.verdict_ready" },
};
celery.createClient(url, resultUrl, "live").createTask("grader.grade").applyAsync([], { submission });
setTimeout(() => end(1, "no verdict came within 1800 s; post the same again to go on waiting"), 1_800_000);

// The queue is in the Redis where the service keeps answers, so the worker, unlike the client above, has no other broker.
// A platform has one such worker, which stores each verdict that comes by its submission_id; this one waits for one verdict.
const verdict = await new Promise((resolve) => {
  const worker = celery.createWorker(resultUrl, resultUrl, "node-platform");
  worker.register("lab.verdict_ready", (...args) => {
    const { verdict: came } = args.find((value) => value?.verdict);
    if (came.submission_id === submissionId) resolve(came);
    else console.error(`${came.submission_id} was answered, which is not waited for here: post it again to be told again`);
  });
  worker.start();
});
checkSignature(verdict, publicKeys.trim().split(/\s+/));
const { status, score, max_score, code, feedback } = verdict;
console.error(`${submissionId} ${status}: ${score === null ? `${code}: ${feedback}` : `${score} of ${max_score}`}`);
console.log(JSON.stringify(verdict));
process.exit(status === "rejected" ? 1 : 0);
