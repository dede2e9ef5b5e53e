// A lab platform in JavaScript, with a public Celery client: posts one submission, is told its verdict on a queue of its
// own, and prints it as JSON.
//   npm ci
//   GRADER_REDIS_URL=redis://:PASSWORD@HOST:6379/0 GRADER_PUBLIC_KEYS=KEY node platform.js PATH SUBMISSION_ID [STEP…]
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import celery from "celery-node";
import { checkSignature } from "./signature.js";

const [path, submissionId, ...steps] = process.argv.slice(2);
const url = process.env.GRADER_REDIS_URL;
console.info = console.error; // what celery-node says of itself: standard output is for the verdict

// A platform has one such worker; it stores each verdict that comes by its submission_id.
const told = new Promise((resolve) => {
  const worker = celery.createWorker(url, url, "node-platform");
  worker.register("lab.verdict_ready", (...args) => resolve(args.find((value) => value?.verdict).verdict));
  worker.start();
});

const submission = {
  submission_id: submissionId,
  lab: "dali-pipelines",
  learner: "u-17",
  cohort: "2026-fall",
  steps,
  artifact: { filename: basename(path), inline: readFileSync(path).toString("base64") },
  reply_to: { queue: "node-platform", task: "lab.verdict_ready" },
};
celery.createClient(url, url, "live").createTask("grader.grade").applyAsync([], { submission });

const verdict = await told;
checkSignature(verdict, process.env.GRADER_PUBLIC_KEYS.split(" "));
console.error(`${verdict.submission_id} ${verdict.status}: ${verdict.score} of ${verdict.max_score}`);
console.log(JSON.stringify(verdict));
process.exit(0);
