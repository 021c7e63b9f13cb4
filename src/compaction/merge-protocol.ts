import type { MergedFile, MergeTask } from "./merge.ts";
import type { ExtentProblem, VerifyTask } from "./verify.ts";

/** What the process is sent, once. */
export type ProcessTask = ({ kind: "merge" } & MergeTask) | ({ kind: "verify" } & VerifyTask);

/** What the process says, once each: that it listens, and what became of its one task. */
export type ProcessMessage =
  | { kind: "ready" }
  | { kind: "merged"; files: MergedFile[] }
  | { kind: "verified"; problems: ExtentProblem[] }
  /** `damaged` names inputs whose bytes are not what was committed. */
  | { kind: "failed"; message: string; damaged: string[] };
