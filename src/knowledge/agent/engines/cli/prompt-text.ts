import type { LanguageModel } from "ai";

export type CliModel = Extract<Exclude<LanguageModel, string>, { specificationVersion: "v4" }>;
export type CallOptions = Parameters<CliModel["doStream"]>[0];
export type FunctionTool = Extract<NonNullable<CallOptions["tools"]>[number], { type: "function" }>;
type Message = CallOptions["prompt"][number];

/** How a program is to answer. */
export type AnswerForm = {
  hasTools: boolean;
  /** A tool that must be called: its arguments are the answer. */
  mustCall: FunctionTool | undefined;
};

/** All of a conversation as the one text that a program is asked with: our instructions first, the question last. */
export function promptText(prompt: CallOptions["prompt"], { hasTools, mustCall }: AnswerForm): string {
  const instructions = prompt.filter(({ role }) => role === "system").map(textOf);
  const said = prompt.filter(({ role }) => role === "user" || role === "assistant");
  const last = said.at(-1);
  return [
    ...instructions,
    mustCall === undefined ? toolsText(hasTools) : formText(mustCall),
    ...said.slice(0, -1).map((message) => `${HEADINGS[message.role]}\n${textOf(message)}`),
    ...(last === undefined ? [] : [said.length > 1 ? `# To be answered now\n${textOf(last)}` : textOf(last)]),
  ].join("\n\n");
}

const HEADINGS: Readonly<Record<Message["role"], string>> = {
  system: "",
  tool: "",
  user: "# From the person who asks",
  assistant: "# Your earlier answer",
};

function toolsText(hasTools: boolean): string {
  return hasTools
    ? "Your tools are those of the MCP server `engine`. Use no others: they are refused."
    : "You have no tools here. Answer from what follows.";
}

function formText({ name, description = "", inputSchema }: FunctionTool): string {
  return [
    `In the place of a call of the tool ${name}, answer with its arguments: one JSON object, and nothing before or after it.`,
    description,
    `The object must fit this JSON schema:\n${JSON.stringify(inputSchema)}`,
  ].join("\n");
}

function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** The JSON object in an answer that may have words or a fence around it; undefined where there is none. */
export function objectIn(answer: string): string | undefined {
  const text = answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1);
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? text : undefined;
  } catch {
    return undefined;
  }
}
