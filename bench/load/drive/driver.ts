import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { isolateFile } from "../../../src/core/isolate.ts";
import type { DrivePlan, DriveResult, FromDriver, ToDriver } from "./plan.ts";

const CHILD = isolateFile(new URL("./drive-child.ts", import.meta.url));

/** A generator process. What it says on standard error is shown. */
export class Driver {
  readonly #child: ChildProcess;
  readonly #gone: Promise<unknown>;

  constructor() {
    // `advanced` carries typed arrays as they are.
    this.#child = fork(CHILD, {
      execArgv: [],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#gone = once(this.#child, "exit");
  }

  /** Resolves when it has its bodies, and its connections are open. */
  async prepare(plan: DrivePlan): Promise<void> {
    const ready = await this.#exchange({ kind: "prepare", plan });
    if (ready.kind !== "ready") throw new Error("a load generator did not prepare");
  }

  /** Runs the plan; it ends by itself then. */
  async run(startAtMs: number): Promise<DriveResult> {
    const done = await this.#exchange({ kind: "go", startAtMs });
    if (done.kind !== "done") throw new Error("a load generator did not run");
    return done.result;
  }

  /** Resolves when the process is gone. */
  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill("SIGKILL");
    await this.#gone;
  }

  /** Sends a message and resolves with the next that comes back; rejects when the process ends without one. */
  #exchange(message: ToDriver): Promise<FromDriver> {
    return new Promise((resolve, reject) => {
      // Not "exit", which may come before the last message.
      const ended = () => reject(new Error("a load generator ended early; it says why above"));
      this.#child.once("disconnect", ended);
      this.#child.once("message", (answer) => {
        this.#child.off("disconnect", ended);
        resolve(answer as FromDriver);
      });
      this.#child.send(message, (error) => {
        if (error !== null) reject(error);
      });
    });
  }
}
