import type { ModelMessage, StreamTextResult, TextStreamPart, ToolSet } from "ai";
import type { OpenedEngine } from "../engines/engine.ts";
import type { Usage } from "./events.ts";
import { problemOfFinish } from "../engines/problems.ts";
import { RunStopped } from "./run-end.ts";
import type { OfferedTool } from "./tools.ts";

/** A call that the model asks for; `problem` where it is none: of a tool that is not there, or with arguments that are no JSON. */
export type AskedCall = { id: string; name: string; input: unknown; problem?: string };

export type StepResult = {
  calls: AskedCall[];
  /** What the model said and the library answered to it, for the next step. */
  messages: ModelMessage[];
  usage: Usage;
};

export type StepHooks = {
  onText: (text: string) => void;
  onThinking: (text: string) => void;
};

export type StepRequest = {
  engine: OpenedEngine;
  instructions: string;
  messages: readonly ModelMessage[];
  tools: readonly OfferedTool[];
  /** The tool that the model must call; it chooses unless given. */
  mustCall?: string;
  signal: AbortSignal;
};

/**
 * Asks the model once. The library runs no tool and repeats nothing: how many calls there are, and when they end, is for the
 * run to say. Rejects with `RunStopped`, or with the signal's reason.
 */
export async function modelStep(request: StepRequest, hooks: StepHooks): Promise<StepResult> {
  const { engine, signal } = request;
  const { streamText, jsonSchema, tool } = await import("ai");
  const tools: ToolSet = Object.fromEntries(
    request.tools.map(({ name, description, inputSchema }) => [
      name,
      tool({ description, inputSchema: jsonSchema(inputSchema) }),
    ]),
  );
  const result = streamText({
    model: engine.model,
    instructions: request.instructions,
    messages: [...request.messages],
    tools,
    ...(request.mustCall !== undefined && { toolChoice: { type: "tool" as const, toolName: request.mustCall } }),
    maxOutputTokens: engine.maxOutputTokens,
    ...(engine.temperature !== undefined && { temperature: engine.temperature }),
    providerOptions: engine.providerOptions,
    maxRetries: 0,
    abortSignal: signal,
    // What fails comes as a part of the stream, too; without this it is printed.
    onError: () => {},
  });
  const step: StepResult = { calls: [], messages: [], usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0 } };
  try {
    await readParts(result, step, { ...hooks, engine, signal });
    step.messages = (await result.response).messages;
    return step;
  } catch (error) {
    // A stream that is left before its end leaves a program running.
    await engine.end();
    signal.throwIfAborted();
    const stopped = error instanceof RunStopped ? error : stoppedBy(error, engine);
    stopped.usage ??= step.usage;
    throw stopped;
  }
}

function stoppedBy(error: unknown, engine: OpenedEngine): RunStopped {
  if (error instanceof Error && error.name === "AI_ToolChoiceViolationError") {
    return new RunStopped("engine_failed", "the model did not call the tool that it must", {
      retryable: true,
      isOfContent: true,
    });
  }
  return RunStopped.of(engine.problemOf(error));
}

type Parts = Pick<StreamTextResult<ToolSet, never, never>, "fullStream">;

async function readParts(
  { fullStream }: Parts,
  step: StepResult,
  { engine, signal, onText, onThinking }: StepHooks & Pick<StepRequest, "engine" | "signal">,
): Promise<void> {
  for await (const part of fullStream) {
    signal.throwIfAborted();
    const { type } = part;
    if (type === "text-delta") onText(part.text);
    else if (type === "reasoning-delta") onThinking(part.text);
    else if (type === "tool-call") step.calls.push(callOf(part));
    else if (type === "finish-step") finish(step, part);
    else if (type === "error") throw stoppedBy(part.error, engine);
    else if (type === "abort")
      throw new RunStopped("engine_failed", "the provider ended its answer", { retryable: true });
  }
}

type Part<T> = Extract<TextStreamPart<ToolSet>, { type: T }>;

function callOf(part: Part<"tool-call">): AskedCall {
  const { toolCallId: id, toolName: name, input } = part;
  const problem = "invalid" in part && part.invalid === true ? problemOfCall(part.error) : undefined;
  return { id, name, input, ...(problem !== undefined && { problem }) };
}

function finish(step: StepResult, { usage, finishReason }: Part<"finish-step">): void {
  const [input, output] = [countOf(usage.inputTokens), countOf(usage.outputTokens)];
  step.usage = { input_tokens: input, output_tokens: output, total_tokens: input + output };
  if (finishReason === "length" && step.calls.length === 0) {
    throw new RunStopped("context_too_large", "the model came to the end of the tokens that it may say", {
      isOfContent: true,
    });
  }
  const problem = problemOfFinish(finishReason);
  if (problem !== undefined) throw RunStopped.of(problem);
}

/** A provider may say anything. */
function countOf(tokens: number | undefined): number {
  return Number.isSafeInteger(tokens) && (tokens ?? 0) > 0 ? Math.min(tokens ?? 0, MOST_TOKENS) : 0;
}

const MOST_TOKENS = 1_000_000_000;

/** The names of what is there, for a model that made one up. */
function problemOfCall(error: unknown): string {
  const { name, message } = error instanceof Error ? error : { name: "", message: String(error) };
  return name === "AI_NoSuchToolError" ? message : "the arguments are no JSON";
}
