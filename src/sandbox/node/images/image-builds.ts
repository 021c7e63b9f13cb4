import type { Clock } from "../../../core/clock.ts";
import { pause } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Random } from "../../../core/random.ts";
import type { JobHandler, JobPort } from "../../../fabric/handler.ts";
import { JobRunner } from "../../../fabric/runner.ts";

export type ImageBuildsOptions = {
  jobs: JobPort;
  handler: JobHandler;
  /** At once. */
  slots: number;
  clock: Clock;
  random: Random;
  log: Log;
};

/** What a build gets to put its machine away when the node stops. */
const UNWIND_MS = 4_000;

/** The image builds of a node: one that is cut off by its end is begun again, here or elsewhere. */
export class ImageBuilds {
  readonly #options: ImageBuildsOptions;
  readonly #runner: JobRunner;
  readonly #running = new Set<Promise<unknown>>();

  constructor(options: ImageBuildsOptions) {
    this.#options = options;
    const { jobs: port, handler } = options;
    const run: JobHandler["run"] = (job) => {
      const running = handler.run(job);
      this.#running.add(running);
      void running.catch(() => undefined).then(() => this.#running.delete(running));
      return running;
    };
    this.#runner = new JobRunner({ ...options, port, handlers: [{ kind: handler.kind, run }], unwindMs: UNWIND_MS });
  }

  /** Takes builds until `drain`. Never rejects: a node that may not build runs sandboxes all the same. */
  async run(): Promise<void> {
    try {
      await this.#runner.run();
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, "this node builds no images");
    }
  }

  /** Gives what it is at back, at once. */
  async drain(): Promise<void> {
    await this.#runner.drain(0);
  }

  /** Resolves when no build is at work on this computer any more, within some seconds. */
  async stop(): Promise<void> {
    this.#runner.stop();
    const waited = new AbortController();
    await Promise.race([Promise.allSettled(this.#running), pause(this.#options.clock, UNWIND_MS, waited.signal)]);
    waited.abort();
  }
}
