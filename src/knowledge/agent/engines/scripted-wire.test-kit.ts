/** What a provider is to say to one request. */
export type ScriptedReply = {
  /** Deltas, in this order: what is thought, said, and called. */
  thinking?: readonly string[];
  text?: readonly string[];
  toolCalls?: readonly ScriptedToolCall[];
  /** 10 and 5 tokens unless given. */
  usage?: { input: number; output: number };
  /** Refuses with this status. */
  status?: number;
  /** Of a refusal: JSON, or text as it is. */
  errorBody?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** Before the first byte. */
  delayMs?: number;
  /** Before every further byte. */
  byteDelayMs?: number;
  /** Destroys the socket after so many bytes of the body. */
  cutAfterBytes?: number;
  /** Ends the stream with an error event in these words, in place of its regular end. */
  streamError?: string;
  /** Says what the reply has, without its end, and then nothing more; of an empty reply not even headers are sent. */
  hang?: true;
  /** In place of the frames or the answer: what is sent as it is. */
  rawBody?: string;
};

/** `rawText` is what the model writes for the input, JSON or not. */
export type ScriptedToolCall = { id?: string; name: string } & ({ input: unknown } | { rawText: string });

/**
 * What a scripted reply looks like on the wire, by the three protocols that providers speak: as the frames of a stream,
 * as one JSON answer, and as an error.
 */
export type Wire = {
  frames: (reply: ScriptedReply, made: Made) => string[];
  answer: (reply: ScriptedReply, made: Made) => unknown;
  /** Of a reply that has a status, and no body of its own. */
  failure: (status: number) => unknown;
  /** In the middle of a stream, where the script asks for one. */
  streamFailure: (words: string) => string;
};

/** Of one request: its number in the script, and the model it names. */
export type Made = { index: number; model: string };

type Call = { id: string; name: string; input: unknown; text: string };

function callsOf({ toolCalls = [] }: ScriptedReply, { index }: Made): Call[] {
  return toolCalls.map((call: ScriptedToolCall, at) => {
    const { id = `call_${index}_${at}`, name } = call;
    if ("rawText" in call) return { id, name, input: {}, text: call.rawText };
    return { id, name, input: call.input, text: JSON.stringify(call.input) };
  });
}

function usageOf({ usage = { input: 10, output: 5 } }: ScriptedReply): { input: number; output: number } {
  return usage;
}

const joined = (parts: readonly string[] | undefined): string => (parts ?? []).join("");
const isSaid = (parts: readonly string[] | undefined): parts is readonly string[] =>
  parts !== undefined && parts.length > 0;
/** Models write their JSON in pieces, and not where a parser would cut it. */
const halves = (text: string): string[] => [
  text.slice(0, Math.ceil(text.length / 2)),
  text.slice(Math.ceil(text.length / 2)),
];

const named = (data: { type: string } & Record<string, unknown>): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const unnamed = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;

export const MESSAGES: Wire = {
  frames(reply, made) {
    const { input, output } = usageOf(reply);
    const calls = callsOf(reply, made);
    const message = {
      id: `msg_${made.index}`,
      type: "message",
      role: "assistant",
      model: made.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: input, output_tokens: 1 },
    };
    const frames = [named({ type: "message_start", message }), named({ type: "ping" })];
    let index = 0;
    const block = (content_block: unknown, deltas: readonly unknown[]): void => {
      frames.push(named({ type: "content_block_start", index, content_block }));
      for (const delta of deltas) frames.push(named({ type: "content_block_delta", index, delta }));
      frames.push(named({ type: "content_block_stop", index }));
      index++;
    };
    if (isSaid(reply.thinking)) {
      const deltas = reply.thinking.map((thinking) => ({ type: "thinking_delta", thinking }));
      block({ type: "thinking", thinking: "" }, [...deltas, { type: "signature_delta", signature: "signed" }]);
    }
    if (isSaid(reply.text)) {
      const deltas = reply.text.map((text) => ({ type: "text_delta", text }));
      block({ type: "text", text: "" }, deltas);
    }
    for (const { id, name, text } of calls) {
      const deltas = halves(text).map((partial_json) => ({ type: "input_json_delta", partial_json }));
      block({ type: "tool_use", id, name, input: {} }, deltas);
    }
    const stop_reason = calls.length > 0 ? "tool_use" : "end_turn";
    frames.push(
      named({
        type: "message_delta",
        delta: { stop_reason, stop_sequence: null },
        usage: { input_tokens: input, output_tokens: output },
      }),
      named({ type: "message_stop" }),
    );
    return frames;
  },
  answer(reply, made) {
    const { input, output } = usageOf(reply);
    const calls = callsOf(reply, made);
    const thinking = isSaid(reply.thinking)
      ? [{ type: "thinking", thinking: joined(reply.thinking), signature: "signed" }]
      : [];
    const text = isSaid(reply.text) ? [{ type: "text", text: joined(reply.text) }] : [];
    const uses = calls.map(({ id, name, input: arguments_ }) => ({ type: "tool_use", id, name, input: arguments_ }));
    return {
      id: `msg_${made.index}`,
      type: "message",
      role: "assistant",
      model: made.model,
      content: [...thinking, ...text, ...uses],
      stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
      stop_sequence: null,
      usage: { input_tokens: input, output_tokens: output },
    };
  },
  failure(status) {
    const types: Record<number, string> = {
      401: "authentication_error",
      429: "rate_limit_error",
      529: "overloaded_error",
    };
    return { type: "error", error: { type: types[status] ?? "api_error", message: `scripted status ${status}` } };
  },
  streamFailure: (message) => named({ type: "error", error: { type: "overloaded_error", message } }),
};

const responsesUsage = (reply: ScriptedReply) => {
  const { input, output } = usageOf(reply);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
};

export const RESPONSES: Wire = {
  frames(reply, made) {
    const frames: string[] = [];
    const say = (data: { type: string } & Record<string, unknown>): void => {
      frames.push(named({ ...data, sequence_number: frames.length }));
    };
    const response = { id: `resp_${made.index}`, object: "response", created_at: 1_700_000_000, model: made.model };
    say({ type: "response.created", response: { ...response, status: "in_progress", output: [] } });
    say({ type: "response.in_progress", response: { ...response, status: "in_progress", output: [] } });
    let output_index = 0;
    if (isSaid(reply.thinking)) {
      const item_id = `rs_${made.index}`;
      const item = { type: "reasoning", id: item_id, summary: [], encrypted_content: "sealed" };
      say({ type: "response.output_item.added", output_index, item });
      say({ type: "response.reasoning_summary_part.added", output_index, item_id, summary_index: 0 });
      for (const delta of reply.thinking) {
        say({ type: "response.reasoning_summary_text.delta", output_index, item_id, summary_index: 0, delta });
      }
      say({ type: "response.reasoning_summary_part.done", output_index, item_id, summary_index: 0 });
      say({ type: "response.output_item.done", output_index, item });
      output_index++;
    }
    if (isSaid(reply.text)) {
      const item_id = `msg_${made.index}`;
      const item = { type: "message", id: item_id, role: "assistant" };
      say({ type: "response.output_item.added", output_index, item: { ...item, status: "in_progress", content: [] } });
      for (const delta of reply.text) {
        say({ type: "response.output_text.delta", output_index, item_id, content_index: 0, delta });
      }
      const content = [{ type: "output_text", text: joined(reply.text), annotations: [] }];
      say({ type: "response.output_item.done", output_index, item: { ...item, status: "completed", content } });
      output_index++;
    }
    for (const { id, name, text } of callsOf(reply, made)) {
      const item = { type: "function_call", id: `fc_${id}`, call_id: id, name };
      const begun = { ...item, arguments: "", status: "in_progress" };
      say({ type: "response.output_item.added", output_index, item: begun });
      for (const delta of halves(text)) {
        say({ type: "response.function_call_arguments.delta", output_index, item_id: item.id, delta });
      }
      say({ type: "response.function_call_arguments.done", output_index, item_id: item.id, arguments: text });
      const done = { ...item, arguments: text, status: "completed" };
      say({ type: "response.output_item.done", output_index, item: done });
      output_index++;
    }
    say({ type: "response.completed", response: { ...response, status: "completed", usage: responsesUsage(reply) } });
    return frames;
  },
  answer(reply, made) {
    const thinking = isSaid(reply.thinking)
      ? [
          {
            type: "reasoning",
            id: `rs_${made.index}`,
            summary: [{ type: "summary_text", text: joined(reply.thinking) }],
          },
        ]
      : [];
    const content = [{ type: "output_text", text: joined(reply.text), annotations: [] }];
    const text = isSaid(reply.text)
      ? [{ type: "message", id: `msg_${made.index}`, role: "assistant", status: "completed", content }]
      : [];
    const calls = callsOf(reply, made).map(({ id, name, text: arguments_ }) => {
      return { type: "function_call", id: `fc_${id}`, call_id: id, name, arguments: arguments_, status: "completed" };
    });
    return {
      id: `resp_${made.index}`,
      object: "response",
      created_at: 1_700_000_000,
      model: made.model,
      status: "completed",
      error: null,
      incomplete_details: null,
      output: [...thinking, ...text, ...calls],
      usage: responsesUsage(reply),
    };
  },
  failure: openaiFailure,
  streamFailure: (message) =>
    named({
      type: "error",
      sequence_number: 0,
      error: { type: "server_error", code: "server_error", message, param: null },
    }),
};

export const CHAT_COMPLETIONS: Wire = {
  frames(reply, made) {
    const chunk = {
      id: `chatcmpl-${made.index}`,
      object: "chat.completion.chunk",
      created: 1_700_000_000,
      model: made.model,
    };
    const frames: string[] = [];
    const say = (delta: unknown, finish_reason: string | null = null): void => {
      frames.push(unnamed({ ...chunk, choices: [{ index: 0, delta, finish_reason }] }));
    };
    say({ role: "assistant", content: "" });
    for (const reasoning_content of reply.thinking ?? []) say({ reasoning_content });
    for (const content of reply.text ?? []) say({ content });
    const calls = callsOf(reply, made);
    for (const [index, { id, name, text }] of calls.entries()) {
      say({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] });
      for (const part of halves(text)) say({ tool_calls: [{ index, function: { arguments: part } }] });
    }
    say({}, calls.length > 0 ? "tool_calls" : "stop");
    frames.push(unnamed({ ...chunk, choices: [], usage: chatUsage(reply) }), "data: [DONE]\n\n");
    return frames;
  },
  answer(reply, made) {
    const tool_calls = callsOf(reply, made).map(({ id, name, text }) => {
      return { id, type: "function", function: { name, arguments: text } };
    });
    const message = {
      role: "assistant",
      content: joined(reply.text),
      ...(isSaid(reply.thinking) && { reasoning_content: joined(reply.thinking) }),
      ...(tool_calls.length > 0 && { tool_calls }),
    };
    return {
      id: `chatcmpl-${made.index}`,
      object: "chat.completion",
      created: 1_700_000_000,
      model: made.model,
      choices: [{ index: 0, message, finish_reason: tool_calls.length > 0 ? "tool_calls" : "stop" }],
      usage: chatUsage(reply),
    };
  },
  failure: openaiFailure,
  streamFailure: (message) => unnamed({ error: { message, type: "server_error", code: null, param: null } }),
};

function chatUsage(reply: ScriptedReply) {
  const { input, output } = usageOf(reply);
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

function openaiFailure(status: number): unknown {
  return { error: { message: `scripted status ${status}`, type: "scripted", param: null, code: null } };
}
