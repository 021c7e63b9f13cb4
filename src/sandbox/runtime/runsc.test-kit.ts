import { findLauncher } from "./open-runtime.ts";

/** Why machines cannot be made by runsc here; undefined where they can. Tests of them are those of who has it. */
export const runscProblem = await findLauncher({ runtime: "runsc" }).then(
  () => undefined,
  (error: unknown) => String(error),
);
if (runscProblem !== undefined) process.stdout.write(`sandboxes by runsc are not tested: ${runscProblem}\n`);
