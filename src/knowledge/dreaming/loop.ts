import type { Usage } from "../agent/run/events.ts";
import type { EngineFailure } from "./failure.ts";

/** What the model is shown in one question, and what its answer may take. */
export type Question = {
  /** Names the question: its answer is handed in under it. */
  position: string;
  instructions: string;
  content: string;
  maxOutputTokens: number;
  /** After it the run asks no further. */
  timeLeftMs: number;
};

/** What came of a question. */
export type DreamAnswer = { usage: Usage } & (
  | {
      /** As the model said them: each is checked where it is applied. */
      proposals: readonly unknown[];
      /** Those that were left out because nobody could read them. */
      malformed: number;
    }
  | { failure: EngineFailure }
  /** The time of the run was up before the answer was there. */
  | { isLate: true }
);

/** What a job of a dream comes to. */
export type DreamResult = { run_id: string; events_scanned: number; memories_written: number };

/**
 * A dream as whoever asks the model sees it: the dream itself where the server asks, its routes on a worker. What it
 * rejects with fails the job.
 */
export interface DreamPages<Q extends Question> {
  /** The next question; or what the dream came to, when there is none. The same question again until it is answered. */
  next(): Promise<{ question: Q } | { result: DreamResult }>;
  /** Takes the answer to a question, once. Resolves to what the dream came to, if that was the last one. */
  apply(position: string, answer: DreamAnswer): Promise<DreamResult | undefined>;
}

/** Dreams: answers questions until there are no more. */
export async function answerPages<Q extends Question>(
  pages: DreamPages<Q>,
  ask: (question: Q) => Promise<DreamAnswer>,
): Promise<DreamResult> {
  for (;;) {
    const step = await pages.next();
    if ("result" in step) return step.result;
    const { question } = step;
    const result = await pages.apply(question.position, await ask(question));
    if (result !== undefined) return result;
  }
}

/** Adds the tokens of one question to those of others. */
export function addUsage(sum: Usage, { input_tokens: input, output_tokens: output, total_tokens: total }: Usage): void {
  sum.input_tokens += input;
  sum.output_tokens += output;
  sum.total_tokens += total;
}
