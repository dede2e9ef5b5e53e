// A lab platform in JavaScript: posts one submission with a public Celery client, waits for the result of its task,
// and consumes the message that `reply_to` asked for. Prints both as one JSON object.
//   node platform.js REDIS_URL MESSAGE.json
import { readFileSync } from "node:fs";
import celery from "celery-node";

const [url, file] = process.argv.slice(2);
const submission = JSON.parse(readFileSync(file, "utf8"));

const told = new Promise((resolve) => {
  const worker = celery.createWorker(url, url, submission.reply_to.queue);
  worker.register(submission.reply_to.task, (...args) => resolve(args.find((value) => value && value.verdict)?.verdict));
  worker.start();
});

const client = celery.createClient(url, url, "live");
const sent = client.createTask("grader.grade").applyAsync([], { submission });
const result = await sent.get(280_000);
console.log(JSON.stringify({ task: sent.taskId, result, told: await told }));
process.exit(0);
