import { countText, fieldText, type Json } from "../../../client/api.ts";
import type { CliContext } from "../../../client/context.ts";
import { cutToWidth, harmless, styleFor, visible, type Style } from "../../../client/text.ts";

const LINE_WIDTH = 100;

/**
 * Prints the events of a run: the answer on standard output, what it rests on dimmed on standard error. Texts of models
 * and data are made harmless before a terminal sees them.
 */
export class RunPrinter {
  readonly #context: CliContext;
  readonly #style: Style;
  readonly #answer: HarmlessStream;
  readonly #thinking: HarmlessStream;
  /** Numbers of calls, for several may be under way. */
  readonly #calls = new Map<string, number>();
  /** Whether the last character on either was no line's end. */
  #answerIsOpen = false;
  #thinkingIsOpen = false;
  #hasAnswered = false;

  constructor(context: CliContext) {
    this.#context = context;
    this.#style = styleFor(context.deps.stderr, context.deps.env);
    this.#answer = new HarmlessStream();
    this.#thinking = new HarmlessStream();
  }

  /** An event as it was sent, on a line. */
  async raw({ event, id, text }: { event: string; id: string | undefined; text: string }): Promise<void> {
    const fields = [`"event":${JSON.stringify(event)}`, ...(id === undefined ? [] : [`"id":${JSON.stringify(id)}`])];
    const line = `{${[...fields, `"data":${text}`].join(",")}}`;
    // The same JSON, with escapes for what would steer a terminal.
    await this.#context.writeLine(this.#context.deps.stdout.isTTY === true ? harmless(line) : line);
  }

  async event(event: string, data: Json): Promise<void> {
    if (event === "answer_delta") await this.#tellAnswer(this.#answer.take(fieldText(data["text"])));
    else if (event === "thinking_delta") this.#tellThinking(this.#thinking.take(fieldText(data["text"])));
    else if (event === "tool_call") await this.#tellCall(data);
    else if (event === "tool_result") await this.#tellResult(data);
    else if (event === "answer_final") await this.#tellFinal(data);
  }

  failure({ code, message, retryable }: Json): void {
    const advice = retryable === true ? "; asking again may help" : "";
    this.#endThinking();
    this.#context.error(visible(`${fieldText(code)}: ${fieldText(message)}${advice}`));
  }

  /** Ends the lines that are open. */
  async end(): Promise<void> {
    await this.#endAnswer();
    this.#endThinking();
  }

  async #tellAnswer(text: string): Promise<void> {
    if (text === "") return;
    this.#endThinking();
    this.#hasAnswered = true;
    this.#answerIsOpen = !text.endsWith("\n");
    await this.#context.write(text);
  }

  #tellThinking(text: string): void {
    if (text === "") return;
    this.#thinkingIsOpen = !text.endsWith("\n");
    this.#context.deps.stderr.write(this.#style("dim", text));
  }

  async #tellCall({ id, name, input }: Json): Promise<void> {
    const number = this.#calls.size + 1;
    this.#calls.set(fieldText(id), number);
    await this.#note(`[${number}] ${fieldText(name)} ${firstLine(textOfInput(input))}`);
  }

  async #tellResult({ id, name, ok, output, rows, total_rows: total, duration_ms: ms }: Json): Promise<void> {
    const number = this.#calls.get(fieldText(id));
    const which = number === undefined ? fieldText(name) : `[${number}]`;
    const what = ok === true ? rowsText(rows, total) : `failed: ${firstLine(textOfError(output))}`;
    const facts = [what, `${fieldText(ms)} ms`].filter((fact) => fact !== "");
    await this.#note(`${which} ${facts.join(", ")}`);
  }

  async #tellFinal({ text, citations }: Json): Promise<void> {
    if (!this.#hasAnswered) await this.#tellAnswer(this.#answer.take(fieldText(text)));
    await this.#endAnswer();
    const memories = isJson(citations) ? citations["memories"] : undefined;
    if (Array.isArray(memories) && memories.length > 0) await this.#note(`memories: ${fieldText(memories)}`);
  }

  async #note(text: string): Promise<void> {
    await this.end();
    const width = this.#context.deps.stderr.columns ?? LINE_WIDTH;
    this.#context.note(this.#style("dim", cutToWidth(visible(text), width)));
  }

  async #endAnswer(): Promise<void> {
    await this.#tellAnswer(this.#answer.rest());
    if (this.#answerIsOpen) await this.#context.writeLine();
    this.#answerIsOpen = false;
  }

  #endThinking(): void {
    this.#tellThinking(this.#thinking.rest());
    if (this.#thinkingIsOpen) this.#context.deps.stderr.write("\n");
    this.#thinkingIsOpen = false;
  }
}

/** Text that comes in pieces, each of which may end in the middle of a character. */
class HarmlessStream {
  #half = "";

  take(piece: string): string {
    const text = this.#half + piece;
    const isHalf = /[\ud800-\udbff]$/.test(text);
    this.#half = isHalf ? text.slice(-1) : "";
    return harmless((isHalf ? text.slice(0, -1) : text).replaceAll("\r", ""));
  }

  /** What was never completed. */
  rest(): string {
    const left = this.#half;
    this.#half = "";
    return left.toWellFormed();
  }
}

/** Of a query its text, of other tools all that they are given. */
function textOfInput(input: unknown): string {
  if (!isJson(input)) return fieldText(input);
  const { query } = input;
  return typeof query === "string" ? query : JSON.stringify(input);
}

function textOfError(output: unknown): string {
  if (!isJson(output)) return fieldText(output);
  const { error, message } = output;
  if (isJson(error)) return fieldText(error["message"]);
  return typeof message === "string" ? message : JSON.stringify(output);
}

function firstLine(text: string): string {
  const line = text.split(/[\r\n]/).find((found) => found.trim() !== "") ?? "";
  return line.trim();
}

function rowsText(rows: unknown, total: unknown): string {
  if (rows === undefined || rows === null) return "";
  if (total === undefined || total === rows) return countText(rows, "row");
  return `${fieldText(rows)} of ${countText(total, "row")}`;
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
