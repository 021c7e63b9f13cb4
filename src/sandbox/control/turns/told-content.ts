import type { ContentBlock } from "../../contract/content.ts";

/** What one message of an agent may have, in JSON; the rest of a longer one is cut off. */
export const MOST_MESSAGE_BYTES = 4 * 1024 * 1024;
const CUT: ContentBlock = { type: "text", text: "[the rest of this message is too long to be kept]" };

/** Events of one session that say what the agent said and did. */
export const CONTENT_EVENTS = ["text_delta", "text_complete", "tool_use_start", "tool_result"] as const;
type Told = { type: string; data: Readonly<Record<string, unknown>> };

/** What an agent has said, put together from the events of its turn: what it had not completed is in it, too. */
export class ToldContent {
  readonly #blocks: ContentBlock[] = [];
  #openText = "";
  #sizeBytes = 0;

  /** Whether it takes no more. */
  get isFull(): boolean {
    return this.#sizeBytes > MOST_MESSAGE_BYTES;
  }

  add({ type, data }: Told): void {
    if (this.isFull) return;
    if (type === "text_delta") {
      const text = textIn(data, "text");
      this.#sizeBytes += text.length;
      this.#openText += text;
    } else if (type === "text_complete") {
      // It repeats what came in pieces.
      this.#openText = textIn(data, "text");
      this.#close();
    } else if (type === "tool_use_start") {
      this.#close();
      const { input = {} } = data;
      this.#push({ type: "tool_use", id: textIn(data, "id"), name: textIn(data, "name"), input });
    } else if (type === "tool_result") {
      this.#close();
      const { content = null, is_error: isError } = data;
      const toolUseId = textIn(data, "tool_use_id");
      this.#push({ type: "tool_result", tool_use_id: toolUseId, content, is_error: isError === true });
    }
  }

  blocks(): ContentBlock[] {
    this.#close();
    return boundedContent(this.#blocks);
  }

  #close(): void {
    const text = this.#openText;
    this.#openText = "";
    if (text !== "") this.#push({ type: "text", text });
  }

  #push(block: ContentBlock): void {
    this.#sizeBytes += JSON.stringify(block).length;
    this.#blocks.push(block);
  }
}

/** As much of it as is kept. */
export function boundedContent(content: readonly ContentBlock[]): ContentBlock[] {
  const kept: ContentBlock[] = [];
  let leftBytes = MOST_MESSAGE_BYTES;
  for (const block of content) {
    const sizeBytes = Buffer.byteLength(JSON.stringify(block));
    if (sizeBytes > leftBytes) {
      // A character takes at most six bytes in JSON.
      if (block.type === "text") kept.push({ type: "text", text: block.text.slice(0, leftBytes / 6).toWellFormed() });
      return [...kept, CUT];
    }
    leftBytes -= sizeBytes;
    kept.push(block);
  }
  return kept;
}

function textIn(data: Told["data"], name: string): string {
  const value = data[name];
  return typeof value === "string" ? value : "";
}
