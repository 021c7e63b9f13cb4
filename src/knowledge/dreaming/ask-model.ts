import type { OpenedEngine } from "../agent/engines/engine.ts";
import { modelStep } from "../agent/run/model-step.ts";
import { RunStopped } from "../agent/run/run-end.ts";
import type { Usage } from "../agent/run/events.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import { PROPOSE_TOOL, proposalsIn, type Proposal } from "./proposals.ts";

export type ModelAnswer = { proposals: Proposal[]; malformed: number; usage: Usage };

/** Asks for proposals, once. Rejects with `RunStopped`, or with the signal's reason. */
export async function askForProposals(
  engine: OpenedEngine,
  { instructions, content }: { instructions: string; content: string },
  { maxOutputTokens, signal }: { maxOutputTokens: number; signal: AbortSignal },
): Promise<ModelAnswer> {
  let bytes = 0;
  const count = (text: string): void => {
    bytes += Buffer.byteLength(text);
    if (bytes <= DREAMING_LIMITS.answerBytes) return;
    throw new RunStopped("context_too_large", `the model said more than ${DREAMING_LIMITS.answerBytes} bytes`);
  };
  const { calls, usage } = await modelStep(
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
  const answers = calls.flatMap(({ name, input, problem }) =>
    name === PROPOSE_TOOL.name && problem === undefined ? [proposalsIn(input)] : [],
  );
  const read = answers.filter((each) => each !== undefined);
  if (read.length === 0) {
    const message = `the model did not hand in proposals with the tool ${PROPOSE_TOOL.name}`;
    const unusable = new RunStopped("engine_failed", message, { retryable: true, isOfContent: true });
    unusable.usage = usage;
    throw unusable;
  }
  const malformed = read.reduce((sum, each) => sum + each.malformed, 0);
  return { proposals: read.flatMap((each) => each.proposals), malformed, usage };
}

/** A model that thinks by a budget takes no order which tool to call. */
function mayBeTold({ providerOptions }: OpenedEngine): boolean {
  return providerOptions["anthropic"]?.["thinking"] === undefined;
}
