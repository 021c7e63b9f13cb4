import type { Origin } from "../../../auth/audit.ts";

/** A memory that a brief may rest on. */
export type BriefSource = { id: string; content: string };

export type Brief = {
  /** At most 200 words. */
  text: string;
  /** Those of the memories that it rests on. */
  memoryIds: string[];
};

/** Has an engine (a language model) say what the memories say to a question. Rejects with why there is none. */
export type BriefWriter = (asked: {
  question: string;
  memories: readonly BriefSource[];
  origin: Origin;
  signal: AbortSignal;
}) => Promise<Brief>;
