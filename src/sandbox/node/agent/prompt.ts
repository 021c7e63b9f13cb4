import type { ContentBlock as AcpBlock } from "@agentclientprotocol/sdk";
import type { ContentBlock } from "../../contract/content.ts";
import type { Turn, TurnMessage } from "../../contract/turn.ts";

export type PromptOptions = {
  /** Whether the agent takes images. */
  takesImages: boolean;
  /** What was said before, where the agent does not know it. */
  history: readonly TurnMessage[];
  /** Stands before everything, where the agent has no setting for it. */
  preamble: string | undefined;
};

/** Of the history, so much of its end is told: what an agent can read at once is limited. */
const HISTORY_CHARS = 200_000;

/** What an agent is asked, as ACP has it. */
export function promptOf({ content }: Pick<Turn, "content">, options: PromptOptions): AcpBlock[] {
  const { history, preamble } = options;
  const blocks: AcpBlock[] = [];
  if (preamble !== undefined) blocks.push(textBlock(preamble));
  if (history.length > 0) blocks.push(textBlock(historyText(history)));
  return [...blocks, ...content.map((block) => toAcp(block, options))];
}

function toAcp(block: ContentBlock, { takesImages }: PromptOptions): AcpBlock {
  if (block.type === "image" && takesImages) {
    return { type: "image", mimeType: block.media_type, data: block.data };
  }
  return textBlock(textOf(block));
}

/** The conversation so far, for an agent that was not there. */
function historyText(history: readonly TurnMessage[]): string {
  const said = history.map(
    ({ role, content }) => `${role === "user" ? "User" : "Assistant"}:\n${content.map(textOf).join("\n")}`,
  );
  const text = said.join("\n\n");
  const shown = text.length <= HISTORY_CHARS ? text : `…${text.slice(-HISTORY_CHARS).toWellFormed()}`;
  return `This conversation goes on from an earlier one, which was:\n\n${shown}\n\nWhat the user says next:`;
}

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return `[an image: ${block.media_type}]`;
    case "tool_use":
      return `[used the tool ${block.name}: ${JSON.stringify(block.input)}]`;
    case "tool_result":
      return `[the tool ${block.is_error ? "failed" : "answered"}: ${contentText(block.content)}]`;
  }
}

function contentText(content: unknown): string {
  return typeof content === "string" ? content : (JSON.stringify(content) ?? "");
}

function textBlock(text: string): AcpBlock {
  return { type: "text", text };
}
