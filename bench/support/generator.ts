import { fork, type ChildProcess } from "node:child_process";
import { isolateFile } from "../../src/core/isolate.ts";
import type { FromGenerator, LoadPlan, LoadResult, ToGenerator } from "./load-plan.ts";

/** A load generator that has read its bodies and opened its connections. */
export type Generator = { readonly bodies: number; run(): Promise<LoadResult> };

const CHILD = isolateFile(new URL("./generator-child.ts", import.meta.url));

/** Starts a process for the plan; it ends after its one run. What it says on standard error is shown. */
export async function prepareLoad(plan: LoadPlan): Promise<Generator> {
  const child = fork(CHILD, { execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const ready = await exchange(child, { kind: "prepare", plan });
  if (ready.kind !== "ready") throw new Error("the load generator did not prepare");
  return {
    bodies: ready.bodies,
    run: async () => {
      const done = await exchange(child, { kind: "go" });
      if (done.kind !== "done") throw new Error("the load generator did not run");
      return done.result;
    },
  };
}

/** Sends a message and resolves with the next that comes back; rejects when the process ends without one. */
function exchange(child: ChildProcess, message: ToGenerator): Promise<FromGenerator> {
  return new Promise((resolve, reject) => {
    // Not "exit", which may come before the last message.
    const ended = () => reject(new Error("the load generator failed"));
    child.once("disconnect", ended);
    child.once("message", (answer) => {
      child.off("disconnect", ended);
      resolve(answer as FromGenerator);
    });
    child.send(message);
  });
}
