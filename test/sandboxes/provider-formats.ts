import { fieldOf } from "./sandboxes.test-kit.ts";

/** What a model says next: that it wants a tool (with a text for one that takes no JSON), or a text. */
export type ModelStep = { tool: string; input: Readonly<Record<string, unknown>> | string } | { text: string };

/** Server-sent events, each with a name where the format has them. */
export type ModelEvent = { name?: string; data: Readonly<Record<string, unknown>> };

/** How the API of a provider speaks: so much of it as its agent needs. */
export type ModelFormat = {
  /** Whether a POST to this path asks the model. */
  asks: (path: string) => boolean;
  /** Whether the answer is wanted as events. */
  streams: (path: string, body: unknown) => boolean;
  /** Names of the tools that the agent offers; none where it only wants a title, or the like. */
  tools: (body: unknown) => string[];
  /** How many tools of the conversation were used so far. */
  results: (body: unknown) => number;
  events: (step: ModelStep, id: string) => ModelEvent[];
  whole: (step: ModelStep, id: string) => Record<string, unknown>;
};

const MODEL = "model-of-the-test";

function listIn(value: unknown, name: string): unknown[] {
  const list = fieldOf(value, name);
  return Array.isArray(list) ? list : [];
}

const namesIn = (tools: readonly unknown[]): string[] => tools.map((tool) => String(fieldOf(tool, "name")));

function countOf(values: readonly unknown[], isIt: (value: unknown) => boolean): number {
  return values.filter(isIt).length;
}

/** Anthropic's Messages. */
const anthropic: ModelFormat = {
  asks: (path) => path.endsWith("/messages"),
  streams: (_, body) => fieldOf(body, "stream") === true,
  tools: (body) => namesIn(listIn(body, "tools")),
  results: (body) => {
    const blocks = listIn(body, "messages").flatMap((message) => listIn(message, "content"));
    return countOf(blocks, (block) => fieldOf(block, "type") === "tool_result");
  },
  events(step, id) {
    const whole = anthropic.whole(step, id);
    const [block, delta] =
      "text" in step
        ? [
            { type: "text", text: "" },
            { type: "text_delta", text: step.text },
          ]
        : [
            { type: "tool_use", id: `toolu_${id}`, name: step.tool, input: {} },
            { type: "input_json_delta", partial_json: JSON.stringify(step.input) },
          ];
    const events: ModelEvent["data"][] = [
      { type: "message_start", message: { ...whole, content: [], stop_reason: null } },
      { type: "content_block_start", index: 0, content_block: block },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: whole["stop_reason"], stop_sequence: null },
        usage: { output_tokens: 5 },
      },
      { type: "message_stop" },
    ];
    return events.map((data) => ({ name: String(data["type"]), data }));
  },
  whole: (step, id) => ({
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model: MODEL,
    content:
      "text" in step
        ? [{ type: "text", text: step.text }]
        : [{ type: "tool_use", id: `toolu_${id}`, name: step.tool, input: step.input }],
    stop_reason: "text" in step ? "end_turn" : "tool_use",
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 5 },
  }),
};

/** OpenAI's Responses. */
const openai: ModelFormat = {
  asks: (path) => path.endsWith("/responses"),
  streams: (_, body) => fieldOf(body, "stream") === true,
  tools(body) {
    // Where the form of the answer is given, no tool is wanted.
    if (fieldOf(fieldOf(body, "text"), "format") !== undefined) return [];
    return namesIn([body, ...listIn(body, "input")].flatMap((one) => listIn(one, "tools")));
  },
  results: (body) =>
    countOf(listIn(body, "input"), (item) =>
      /^(function|custom_tool)_call_output$/.test(String(fieldOf(item, "type"))),
    ),
  events(step, id) {
    const response = openai.whole(step, id);
    const item = outputItem(step, id);
    const events: ModelEvent["data"][] = [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
      ...("text" in step
        ? [
            {
              type: "response.output_text.delta",
              item_id: item["id"],
              output_index: 0,
              content_index: 0,
              delta: step.text,
            },
          ]
        : []),
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response },
    ];
    return events.map((data, i) => ({ name: String(data["type"]), data: { ...data, sequence_number: i } }));
  },
  whole: (step, id) => ({
    id: `resp_${id}`,
    object: "response",
    model: MODEL,
    status: "completed",
    output: [outputItem(step, id)],
    usage: {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 15,
    },
  }),
};

function outputItem(step: ModelStep, id: string): Record<string, unknown> {
  if ("text" in step) {
    const content = [{ type: "output_text", text: step.text, annotations: [] }];
    return { type: "message", id: `msg_${id}`, status: "completed", role: "assistant", content };
  }
  const call = { id: `fc_${id}`, call_id: `call_${id}`, status: "completed", name: step.tool };
  if (typeof step.input === "string") return { ...call, type: "custom_tool_call", input: step.input };
  return { ...call, type: "function_call", arguments: JSON.stringify(step.input) };
}

/** Gemini's `generateContent` and `streamGenerateContent?alt=sse`. */
const gemini: ModelFormat = {
  asks: (path) => /:(?:streamG|g)enerateContent$/.test(path),
  streams: (path) => path.endsWith(":streamGenerateContent"),
  tools: (body) => namesIn(listIn(body, "tools").flatMap((tool) => listIn(tool, "functionDeclarations"))),
  results: (body) => {
    const parts = listIn(body, "contents").flatMap((content) => listIn(content, "parts"));
    return countOf(parts, (part) => fieldOf(part, "functionResponse") !== undefined);
  },
  events: (step, id) => [{ data: gemini.whole(step, id) }],
  whole: (step, id) => ({
    responseId: id,
    modelVersion: MODEL,
    candidates: [
      {
        index: 0,
        content: {
          role: "model",
          parts: ["text" in step ? { text: step.text } : { functionCall: { id, name: step.tool, args: step.input } }],
        },
        finishReason: "STOP",
      },
    ],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  }),
};

export const MODEL_FORMATS: readonly ModelFormat[] = [anthropic, openai, gemini];
