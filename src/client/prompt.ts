import { StringDecoder } from "node:string_decoder";
import type { CliContext, ContextDeps } from "./context.ts";
import { CliError, EXIT } from "./failure.ts";

/** Questions to whoever sits at the terminal, and secrets on standard input. */

/** More than any secret has. */
const MAX_INPUT_BYTES = 1_048_576;

/** Everything on standard input; `what` names it in the error for too much of it. */
export async function readInput(
  { deps }: { deps: Pick<ContextDeps, "stdin"> },
  what: string,
  maxBytes = MAX_INPUT_BYTES,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of deps.stdin as AsyncIterable<Uint8Array | string>) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    chunks.push(bytes);
    sizeBytes += bytes.length;
    if (sizeBytes > maxBytes) throw new CliError(`standard input is too long for ${what}`, EXIT.usage);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * A password from standard input (its first line, whatever ends it), or asked for on the terminal without being shown;
 * a new one twice.
 * @throws CliError for wrong usage where there is neither.
 */
export async function askPassword(
  context: CliContext,
  options: { fromStdin: boolean; isNew: boolean },
): Promise<string> {
  if (options.fromStdin) {
    const [line = ""] = (await readInput(context, "a password")).split(/\r?\n/, 1);
    if (line === "") throw new CliError("standard input holds no password", EXIT.usage);
    return line;
  }
  requireTerminal(context, "give the password with --password-stdin");
  const password = await ask(context, options.isNew ? "New password: " : "Password: ", { hidden: true });
  if (password === "") throw new CliError("no password was given", EXIT.usage);
  if (options.isNew && (await ask(context, "The same again: ", { hidden: true })) !== password) {
    throw new CliError("the two passwords differ; nothing was changed", EXIT.usage);
  }
  return password;
}

export async function askText(context: CliContext, question: string, otherwise: string): Promise<string> {
  requireTerminal(context, otherwise);
  const text = (await ask(context, question, { hidden: false })).trim();
  if (text === "") throw new CliError(`nothing was given; ${otherwise}`, EXIT.usage);
  return text;
}

/** @throws CliError unless the answer is yes. */
export async function confirm(context: CliContext, question: string): Promise<void> {
  requireTerminal(context, "say --yes");
  const text = await ask(context, `${question} [y/N] `, { hidden: false });
  if (!/^y(es)?$/i.test(text.trim())) throw new CliError("nothing was changed");
}

/** @throws CliError unless the name is typed again, as it is. */
export async function confirmName(context: CliContext, question: string, name: string): Promise<void> {
  requireTerminal(context, "say --yes");
  const text = await ask(context, `${question} Type ${name} to go on: `, { hidden: false });
  if (text.trim() !== name) throw new CliError("that is another name; nothing was changed");
}

function requireTerminal(context: CliContext, otherwise: string): void {
  if (context.deps.stdin.isTTY === true) return;
  throw new CliError(`standard input is no terminal; ${otherwise}`, EXIT.usage);
}

async function ask(context: CliContext, question: string, { hidden }: { hidden: boolean }): Promise<string> {
  const { stdin, stderr } = context.deps;
  stderr.write(question);
  if (!hidden) return await readLine(context);
  if (stdin.setRawMode === undefined) throw new CliError("the terminal cannot hide a password; use --password-stdin");
  stdin.setRawMode(true);
  try {
    return await readLine(context);
  } finally {
    stdin.setRawMode(false);
    stderr.write("\n");
  }
}

const [CTRL_C, CTRL_D, CTRL_U, BACKSPACE, DELETE] = ["\u0003", "\u0004", "\u0015", "\b", "\u007f"];

/** Without raw mode the terminal edits the line, and none of the keys arrives. */
function readLine({ deps: { stdin } }: CliContext): Promise<string> {
  const decoder = new StringDecoder("utf8");
  let typed: string[] = [];
  return new Promise((resolve, reject) => {
    const finish = (outcome: () => void) => {
      stdin.off("data", onData).off("end", onEnd);
      stdin.pause();
      outcome();
    };
    const cancel = () => finish(() => reject(new CliError("cancelled; nothing was changed")));
    const onEnd = () => (typed.length === 0 ? cancel() : finish(() => resolve(typed.join(""))));
    const onData = (chunk: Uint8Array | string) => {
      const text = typeof chunk === "string" ? chunk : decoder.write(Buffer.from(chunk));
      const keys = Array.from(text);
      for (const [i, key] of keys.entries()) {
        if (key === "\r" || key === "\n") {
          const rest = keys.slice(i + 1).join("");
          finish(() => resolve(typed.join("")));
          if (rest !== "") stdin.unshift(Buffer.from(rest));
          return;
        }
        if (key === CTRL_C || (key === CTRL_D && typed.length === 0)) return cancel();
        if (key === BACKSPACE || key === DELETE) typed.pop();
        else if (key === CTRL_U) typed = [];
        else if (key !== CTRL_D) typed.push(key);
      }
    };
    stdin.on("data", onData).on("end", onEnd);
    stdin.resume();
  });
}
