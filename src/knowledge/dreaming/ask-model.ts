import type { Clock } from "../../core/clock.ts";
import type { OpenedEngine } from "../agent/engines/engine.ts";
import type { Usage } from "../agent/run/events.ts";
import { modelStep } from "../agent/run/model-step.ts";
import { RunStopped } from "../agent/run/run-end.ts";
import { engineFailureOf } from "./failure.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import { addUsage, type DreamAnswer, type Question } from "./loop.ts";
import { PROPOSE_TOOL, proposalsIn, type Proposal } from "./proposals.ts";

const NO_PROPOSALS = `the model did not hand in proposals with the tool ${PROPOSE_TOOL.name}`;

/**
 * Asks a question until the time of the run is up; an answer that has no proposals is asked for once more. What the engine
 * fails with is an answer, too; rejects with the reason of `stop`, and with what is no failure of an engine.
 */
export async function askModel(
  engine: OpenedEngine,
  question: Question,
  { clock, stop }: { clock: Clock; stop: AbortSignal },
): Promise<DreamAnswer> {
  const usage: Usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
  const late = new AbortController();
  const timer = clock.after(question.timeLeftMs, () => late.abort(), { background: true });
  const signal = AbortSignal.any([stop, late.signal]);
  try {
    for (let isAgain = false; ; isAgain = true) {
      try {
        return { ...(await askOnce(engine, question, { signal, usage })), usage };
      } catch (error) {
        stop.throwIfAborted();
        if (late.signal.aborted) return { isLate: true, usage };
        if (!(error instanceof RunStopped)) throw error;
        if (isAgain || !error.isOfContent || !error.retryable) return { failure: engineFailureOf(error), usage };
      }
    }
  } finally {
    timer.cancel();
  }
}

/** Counts in `usage` what it takes, also where it rejects. */
async function askOnce(
  engine: OpenedEngine,
  { instructions, content, maxOutputTokens }: Question,
  { signal, usage }: { signal: AbortSignal; usage: Usage },
): Promise<{ proposals: Proposal[]; malformed: number }> {
  let bytes = 0;
  const count = (text: string): void => {
    bytes += Buffer.byteLength(text);
    if (bytes <= DREAMING_LIMITS.answerBytes) return;
    throw new RunStopped("context_too_large", `the model said more than ${DREAMING_LIMITS.answerBytes} bytes`);
  };
  try {
    const { calls, usage: spent } = await modelStep(
      {
        engine: { ...engine, maxOutputTokens: Math.min(engine.maxOutputTokens, maxOutputTokens) },
        instructions,
        messages: [{ role: "user", content }],
        tools: [PROPOSE_TOOL],
        ...(mayBeTold(engine) && { mustCall: PROPOSE_TOOL.name }),
        signal,
      },
      { onText: count, onThinking: count },
    );
    addUsage(usage, spent);
    const answers = calls.flatMap(({ name, input, problem }) =>
      name === PROPOSE_TOOL.name && problem === undefined ? [proposalsIn(input)] : [],
    );
    const read = answers.filter((each) => each !== undefined);
    if (read.length === 0) {
      throw new RunStopped("engine_failed", NO_PROPOSALS, { retryable: true, isOfContent: true });
    }
    const proposals = read.flatMap((each) => each.proposals);
    const taken = proposals.slice(0, DREAMING_LIMITS.proposals);
    const malformed = read.reduce((sum, each) => sum + each.malformed, proposals.length - taken.length);
    return { proposals: taken, malformed };
  } catch (error) {
    if (error instanceof RunStopped && error.usage !== undefined) addUsage(usage, error.usage);
    throw error;
  }
}

/** A model that thinks by a budget takes no order which tool to call. */
function mayBeTold({ providerOptions }: OpenedEngine): boolean {
  return providerOptions["anthropic"]?.["thinking"] === undefined;
}
