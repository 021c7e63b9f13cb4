import { AcpTurn, type LentTool, type TurnDeps, type TurnItem } from "./acp-turn.ts";
import { AgentFault } from "./agent-fault.ts";
import { objectIn, promptText, type CallOptions, type CliModel, type FunctionTool } from "./prompt-text.ts";

type Streamed = Awaited<ReturnType<CliModel["doStream"]>>["stream"];
type Part = Streamed extends ReadableStream<infer P> ? P : never;
type Finish = Extract<Part, { type: "finish" }>;
type Generated = Awaited<ReturnType<CliModel["doGenerate"]>>;

/**
 * A program as a language model of the library. A prompt starts it; where it calls tools, the step ends with these calls, as
 * that of any model does, and the program waits until the next step brings what they gave. One conversation at a time.
 */
export class AcpModel implements CliModel {
  readonly specificationVersion = "v4";
  readonly provider = "cli";
  readonly modelId: string;
  readonly supportedUrls = {};
  readonly #deps: TurnDeps;
  #turn: AcpTurn | undefined;
  #ending: Promise<void> | undefined;

  constructor(modelId: string, deps: TurnDeps) {
    this.modelId = modelId;
    this.#deps = deps;
  }

  async doStream(options: CallOptions): Promise<{ stream: ReadableStream<Part> }> {
    return { stream: ReadableStream.from(this.#parts(options)) };
  }

  async doGenerate(options: CallOptions): Promise<Generated> {
    const content: Generated["content"] = [];
    for await (const part of this.#parts(options)) {
      const last = content.at(-1);
      if (part.type === "text-delta" && last?.type === "text") last.text += part.delta;
      else if (part.type === "text-delta") content.push({ type: "text", text: part.delta });
      else if (part.type === "tool-call") content.push(part);
      else if (part.type === "error") throw part.error;
      else if (part.type === "finish") {
        return { content, finishReason: part.finishReason, usage: part.usage, warnings: [] };
      }
    }
    throw new AgentFault("it ended without an answer");
  }

  /** Ends the program, whatever it is at. Never rejects. */
  async end(): Promise<void> {
    if (this.#turn !== undefined) this.#ending = this.#turn.end();
    this.#turn = undefined;
    await this.#ending;
  }

  async *#parts(options: CallOptions): AsyncGenerator<Part, void> {
    yield { type: "stream-start", warnings: [] };
    const turn = (this.#turn ??= this.#begin(options));
    for (const { id, text, isError } of answersIn(options.prompt)) turn.answer(id, { text, isError });
    let isWaiting = false;
    try {
      const parts = partsOf(turn, mustCallOf(options), options.abortSignal);
      for (let step = await parts.next(); ; step = await parts.next()) {
        if (step.done !== true) yield step.value;
        else {
          isWaiting = step.value === "waiting";
          return;
        }
      }
    } catch (error) {
      if (options.abortSignal?.aborted === true) throw options.abortSignal.reason;
      yield { type: "error", error };
    } finally {
      if (!isWaiting) await this.end();
    }
  }

  #begin(options: CallOptions): AcpTurn {
    const mustCall = mustCallOf(options);
    const tools = mustCall === undefined ? toolsOf(options) : [];
    const hasTools = tools.length > 0 && this.#deps.mcpUrl !== undefined;
    const text = promptText(options.prompt, { hasTools, mustCall });
    return new AcpTurn({ text, model: this.modelId, tools }, this.#deps);
  }
}

/** The parts of a step; `waiting` when the program waits for the answers to its calls. */
async function* partsOf(
  turn: AcpTurn,
  mustCall: FunctionTool | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<Part, "waiting" | "over"> {
  const blocks = new Blocks();
  let answer = "";
  for (;;) {
    const item = await turn.next(signal);
    if (item.type === "end") {
      yield* blocks.end();
      const input = mustCall && objectIn(answer);
      if (mustCall !== undefined && input !== undefined) {
        yield { type: "tool-call", toolCallId: "answer", toolName: mustCall.name, input };
      }
      yield finish(input === undefined ? reasonOf(item) : "tool-calls", item);
      return "over";
    }
    if (item.type === "calls") {
      yield* blocks.end();
      for (const { id: toolCallId, name: toolName, input } of item.calls) {
        yield { type: "tool-call", toolCallId, toolName, input };
      }
      yield finish("tool-calls");
      return "waiting";
    }
    if (item.type === "text" && mustCall !== undefined) answer += item.text;
    else yield* blocks.add(item);
  }
}

/** Text and thinking in turn, each piece in a block of the library's form. */
class Blocks {
  #kind: "text" | "reasoning" | undefined;
  #count = 0;

  *add({ type, text }: Extract<TurnItem, { text: string }>): Generator<Part> {
    const kind = type === "text" ? "text" : "reasoning";
    if (kind !== this.#kind) {
      yield* this.end();
      this.#kind = kind;
      this.#count++;
      yield { type: `${kind}-start`, id: this.#id };
    }
    yield { type: `${kind}-delta`, id: this.#id, delta: text };
  }

  *end(): Generator<Part> {
    if (this.#kind !== undefined) yield { type: `${this.#kind}-end`, id: this.#id };
    this.#kind = undefined;
  }

  get #id(): string {
    return `block_${this.#count}`;
  }
}

function finish(unified: Finish["finishReason"]["unified"], end?: Extract<TurnItem, { type: "end" }>): Finish {
  const { inputTokens, outputTokens } = end?.usage ?? {};
  return {
    type: "finish",
    finishReason: { unified, raw: end?.stopReason },
    usage: {
      inputTokens: { total: inputTokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: outputTokens, text: undefined, reasoning: undefined },
    },
  };
}

/** Throws `AgentFault` for an end that is no answer. */
function reasonOf({ stopReason }: Extract<TurnItem, { type: "end" }>): Finish["finishReason"]["unified"] {
  switch (stopReason) {
    case "end_turn":
      return "stop";
    case "max_tokens":
      return "length";
    case "refusal":
      throw new AgentFault("it refused to answer", { isOfContent: true });
    default:
      throw new AgentFault(`it ended its answer for the reason ${JSON.stringify(stopReason.slice(0, 100))}`);
  }
}

function toolsOf({ tools = [] }: CallOptions): LentTool[] {
  return functionTools(tools).map(({ name, description = "", inputSchema }) => {
    return { name, description, inputSchema: { ...inputSchema } };
  });
}

function mustCallOf({ tools = [], toolChoice }: CallOptions): FunctionTool | undefined {
  if (toolChoice?.type !== "tool") return undefined;
  return functionTools(tools).find(({ name }) => name === toolChoice.toolName);
}

function functionTools(tools: NonNullable<CallOptions["tools"]>): FunctionTool[] {
  return tools.filter((tool) => tool.type === "function");
}

/** What the calls gave that a program waits for: only those of its turn have its ids. */
function* answersIn(prompt: CallOptions["prompt"]): Generator<{ id: string; text: string; isError: boolean }> {
  for (const message of prompt) {
    if (message.role !== "tool") continue;
    for (const part of message.content) {
      if (part.type !== "tool-result") continue;
      const { output } = part;
      const isError = output.type === "error-text" || output.type === "error-json";
      const text = "value" in output ? textOf(output.value) : "the call was not made";
      yield { id: part.toolCallId, text, isError };
    }
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
