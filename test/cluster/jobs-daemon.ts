import { fsyncSync, openSync, writeSync } from "node:fs";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { createLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { runDaemon } from "../../src/cli/worker-daemon.ts";
import type { JobHandler, RunningJob } from "../../src/fabric/handler.ts";
import type { Hold } from "../../src/fabric/job.ts";
import { RemotePort } from "../../src/fabric/remote-port.ts";

/**
 * A node of the chaos test of jobs: the real daemon, with handlers that do nothing but leave a line in a file. What a
 * job did, and what the control plane said to its completion, is read from there when all is over.
 */
const { JOBS_URL: url = "", JOBS_TOKEN: token = "", JOBS_FILE: file = "", JOBS_NAME: name = "" } = process.env;
const slots = Number(process.env["JOBS_SLOTS"]);
const longMs = Number(process.env["JOBS_LONG_MS"]);
const STEPS = 6;

const fd = openSync(file, "a");
/** A kill that cuts a line short must not spoil the next one: each begins with an end of line. */
function note(what: "did" | "told", { id, fence }: { id: string; fence: number }): void {
  writeSync(fd, `\n${JSON.stringify({ what, id, fence })}`);
  fsyncSync(fd);
}

class NotingPort extends RemotePort {
  override async complete(hold: Hold, result: unknown): Promise<void> {
    await super.complete(hold, result);
    note("told", { id: hold.jobId, fence: hold.fence });
  }
}

const short: JobHandler = {
  kind: "x.short",
  async run(job: RunningJob) {
    note("did", job);
    return { fence: job.fence };
  },
};

const long: JobHandler = {
  kind: "x.long",
  async run(job: RunningJob) {
    for (let step = 1; step <= STEPS; step++) {
      await sleep(systemClock, longMs / STEPS, job.signal);
      job.progress({ step });
    }
    note("did", job);
    return { fence: job.fence };
  },
};

process.exitCode = await runDaemon({
  port: new NotingPort({ url, token, userAgent: "jobs-daemon" }),
  node: { name, host: "test", version: "test", kinds: [short.kind, long.kind] },
  handlers: [short, long],
  slots,
  drainMs: 2_000,
  unwindMs: 1_000,
  clock: systemClock,
  random: systemRandom,
  log: createLog("info"),
});
