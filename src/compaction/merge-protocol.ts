import type { MergedFile, MergeTask } from "./merge.ts";
import type { ExtentProblem, VerifyTask } from "./verify.ts";

/** What the process is sent, one after the other. */
export type ProcessTask = ({ kind: "merge" } & MergeTask) | ({ kind: "verify" } & VerifyTask);

/** What the process says: that it listens, once, and what became of each task. */
export type ProcessMessage =
  | { kind: "ready" }
  | { kind: "merged"; files: MergedFile[] }
  | { kind: "verified"; problems: ExtentProblem[] }
  /** `damaged` names inputs whose bytes are not what was committed. */
  | { kind: "failed"; message: string; damaged: string[] };
