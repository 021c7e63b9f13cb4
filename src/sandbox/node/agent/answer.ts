import type { SandboxEventType } from "../../contract/event.ts";
import type { ContentBlock } from "../../contract/content.ts";
import { AgentFault } from "./fault.ts";
import { EVENT_BYTES, jsonBytes, piecesOf, shortened } from "./sizes.ts";
import { namesOf, type ToolContent, type ToolUpdate, type Update, type UpdateBlock } from "./updates.ts";

/** Of the JSON of all that an agent says in one turn: the report of its end has it all. */
const ANSWER_BYTES = 3 * 1_024 * 1_024;
const OPEN_TOOLS = 1_000;

type ToolUse = Extract<ContentBlock, { type: "tool_use" }>;
type OpenTool = { use: ToolUse; inputBytes: number; names: string[]; content: unknown; rawOutput: unknown };

/**
 * What an agent says in one turn: events as it comes, and blocks of the message that it makes. A text that no event can
 * say at once is completed in parts, each a block of its own; of inputs and results that are larger the beginning is
 * kept. Throws `AgentFault` when it is more in all than a message may be.
 */
export class Answer {
  readonly #event: (type: SandboxEventType, data: Record<string, unknown>) => void;
  readonly #blocks: ContentBlock[] = [];
  readonly #tools = new Map<string, OpenTool>();
  #bytes = 0;
  #text: string[] = [];
  #textBytes = 0;
  #messageId: string | undefined;
  #isEnding = false;

  constructor(event: (type: SandboxEventType, data: Record<string, unknown>) => void) {
    this.#event = event;
  }

  /** All that was said so far, with a text that is not complete. */
  get content(): ContentBlock[] {
    const begun = this.#text.join("");
    return begun === "" ? [...this.#blocks] : [...this.#blocks, { type: "text", text: begun }];
  }

  take(update: Update): void {
    if (update.type === "tool") {
      this.#tool(update.tool);
      return;
    }
    const { messageId } = update;
    if (messageId !== undefined && messageId !== this.#messageId) this.#endText();
    this.#messageId = messageId ?? this.#messageId;
    if (update.type === "text") this.#say(update.text);
    else this.#show(update.block);
  }

  /** What a tool is called that the agent asks about by its id: it may say less then than before. */
  namesOf(toolCallId: string): readonly string[] {
    return this.#tools.get(toolCallId)?.names ?? [];
  }

  /** Nothing more comes: what is open is closed. Never throws. */
  end(): void {
    this.#isEnding = true;
    this.#endText();
    for (const id of this.#tools.keys()) this.#result(id, "the turn ended before the tool did", true);
  }

  #say(text: string): void {
    for (const piece of piecesOf(text)) {
      const bytes = jsonBytes(piece);
      if (this.#textBytes + bytes > EVENT_BYTES) this.#endText();
      this.#count(bytes);
      this.#text.push(piece);
      this.#textBytes += bytes;
      this.#event("text_delta", { text: piece });
    }
  }

  #endText(): void {
    const text = this.#text.join("");
    this.#text = [];
    this.#textBytes = 0;
    if (text === "") return;
    this.#blocks.push({ type: "text", text });
    this.#event("text_complete", { text });
  }

  #show(block: UpdateBlock): void {
    if (block.type !== "image") {
      this.#say(textOf(block));
      return;
    }
    this.#endText();
    this.#add({ type: "image", media_type: block.mimeType, data: block.data });
  }

  #tool(tool: ToolUpdate): void {
    const { toolCallId: id, status, rawInput } = tool;
    const open = this.#tools.get(id) ?? this.#begin(id, tool);
    if (rawInput !== undefined) this.#setInput(open, bounded(rawInput));
    open.names = [...new Set([...open.names, ...namesOf(tool)])];
    if (tool.content !== undefined && tool.content !== null) open.content = contentOf(tool.content);
    if (tool.rawOutput !== undefined) open.rawOutput = bounded(tool.rawOutput);
    if (status !== "completed" && status !== "failed") return;
    this.#result(id, open.content ?? open.rawOutput ?? "", status === "failed");
  }

  #begin(id: string, tool: ToolUpdate): OpenTool {
    this.#endText();
    if (this.#tools.size >= OPEN_TOOLS) throw new AgentFault(`it uses more than ${OPEN_TOOLS} tools at once`);
    const names = namesOf(tool);
    const name = tool.name ?? tool._meta?.claudeCode?.toolName ?? tool.title ?? tool.kind ?? "tool";
    const use: ToolUse = { type: "tool_use", id, name: shortened(name), input: bounded(tool.rawInput ?? {}) };
    this.#add(use);
    this.#event("tool_use_start", { id, name: use.name, input: use.input });
    const open = { use, inputBytes: jsonBytes(use.input), names, content: undefined, rawOutput: undefined };
    this.#tools.set(id, open);
    return open;
  }

  /** It may come in parts, after the tool began. */
  #setInput(open: OpenTool, input: unknown): void {
    const bytes = jsonBytes(input);
    this.#count(Math.max(0, bytes - open.inputBytes));
    open.use.input = input;
    open.inputBytes = bytes;
  }

  #result(id: string, content: unknown, isError: boolean): void {
    this.#tools.delete(id);
    this.#endText();
    this.#add({ type: "tool_result", tool_use_id: id, content, is_error: isError });
    this.#event("tool_result", { tool_use_id: id, content, is_error: isError });
    this.#event("tool_use_complete", { id });
  }

  #add(block: ContentBlock): void {
    this.#count(jsonBytes(block));
    this.#blocks.push(block);
  }

  #count(bytes: number): void {
    if (this.#bytes + bytes > ANSWER_BYTES && !this.#isEnding) {
      throw new AgentFault(`its answer has more than ${ANSWER_BYTES} bytes`);
    }
    this.#bytes += bytes;
  }
}

/** Undefined where there is none; a text where it is all text. */
function contentOf(content: readonly ToolContent[]): unknown {
  if (content.length === 0) return undefined;
  const blocks = content.map((one) => {
    if (one.type === "diff")
      return { type: "diff", path: one.path, old_text: one.oldText ?? null, new_text: one.newText };
    if (one.type === "terminal") return { type: "text", text: `[the terminal ${one.terminalId}]` };
    if (one.content.type === "image") {
      return { type: "image", media_type: one.content.mimeType, data: one.content.data };
    }
    return { type: "text", text: textOf(one.content) };
  });
  const texts = blocks.flatMap((one) => (one.type === "text" && "text" in one ? [one.text] : []));
  return texts.length === blocks.length ? shortened(texts.join("\n")) : bounded(blocks);
}

function textOf(block: Exclude<UpdateBlock, { type: "image" }>): string {
  if (block.type === "text") return block.text;
  if (block.type === "resource_link") return block.uri;
  return block.type === "resource" ? (block.resource.text ?? block.resource.uri) : "[audio]";
}

/** The value, or the beginning of its JSON where an event cannot say it. */
function bounded(value: unknown): unknown {
  const json = JSON.stringify(value) ?? "null";
  return Buffer.byteLength(json) <= EVENT_BYTES ? value : { shortened: shortened(json) };
}
