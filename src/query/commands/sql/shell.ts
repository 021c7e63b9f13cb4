import { createInterface, type Interface } from "node:readline";
import { callbackify } from "node:util";
import { messageOf } from "../../../core/errors.ts";
import { tokenize } from "../../parse/tokens.ts";
import type { CliContext } from "../../../client/context.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { runCommand, type ShellState } from "./commands.ts";
import { complete } from "./completion.ts";
import { History, HISTORY_ENTRIES, oneLine } from "./history.ts";
import { QueryCancelled, runQuery, type QueryRun } from "./run-query.ts";
import { readSchema, type SchemaTree } from "./schema-tree.ts";
import { inPlace, splitStatements } from "./statements.ts";

/** Completion asks the server again after that long. */
const TREE_TTL_MS = 10_000;

/**
 * A shell on a terminal: statements of any number of lines, each ended by `;`, and commands that begin with `\`. Lines
 * are edited by `node:readline`. What is typed while a statement runs is taken when it has ended.
 */
export async function runShell(context: CliContext, run: QueryRun, home: string): Promise<number> {
  // A server that is not there, or wants a token, is told at once.
  const tree = await readSchema(run.client, run.target);
  const shell = new Shell(context, run, { history: new History(home), tree });
  return await shell.run();
}

class Shell {
  readonly #context: CliContext;
  readonly #run: QueryRun;
  readonly #history: History;
  readonly #state: ShellState;
  #tree: { value: SchemaTree; readAtMs: number };
  #readline: Interface | undefined;
  /** Lines of the statement that is being typed, and of those before it on its first line. */
  #lines: string[] = [];
  /** What of them was not run yet. */
  #pending = "";
  #running: AbortController | undefined;
  /** Counts the Ctrl-C's: what was typed before one is not run after it. */
  #interrupts = 0;
  #work: Promise<void> = Promise.resolve();
  #failure: Error | undefined;
  #ended = false;
  /** Where `node:readline` keeps what can be recalled, the newest first. */
  #recalled: string[] = [];
  #historyFailed = false;

  constructor(context: CliContext, run: QueryRun, { history, tree }: { history: History; tree: SchemaTree }) {
    this.#context = context;
    this.#run = run;
    this.#history = history;
    this.#tree = { value: tree, readAtMs: context.deps.clock.monotonicMs() };
    const readTree = () => this.#readTree(0);
    this.#state = { database: run.database, format: run.format, showsTime: false, readTree };
  }

  async run(): Promise<number> {
    const { stdin, stdout, version } = this.#context.deps;
    await this.#context.writeLine(`engine ${version} at ${this.#run.target.url}; \\? for help, Ctrl-D to end`);
    const history = await this.#history.read().catch((error: unknown) => this.#warnOfHistory(error, []));
    const readline = createInterface({
      input: stdin,
      output: stdout,
      terminal: true,
      history,
      historySize: HISTORY_ENTRIES,
      removeHistoryDuplicates: true,
      completer: callbackify((text: string) => this.#complete(text)),
    });
    this.#readline = readline;
    const closed = new Promise<void>((resolve) => readline.once("close", resolve));
    readline.on("line", (line) => this.#enqueue(line));
    readline.on("SIGINT", () => this.#interrupt());
    readline.on("history", (entries) => (this.#recalled = entries));
    this.#prompt();
    await closed;
    // Ctrl-D, or the end of the terminal: nobody waits for a statement any more.
    const isGone = !this.#ended;
    this.#ended = true;
    this.#running?.abort();
    await this.#work;
    if (isGone) await this.#context.writeLine();
    if (this.#failure !== undefined) throw this.#failure;
    return EXIT.ok;
  }

  #enqueue(line: string): void {
    const interrupts = this.#interrupts;
    this.#work = this.#work.then(async () => {
      if (this.#ended || interrupts !== this.#interrupts) return;
      try {
        await this.#take(line);
      } catch (error) {
        this.#failure = error instanceof Error ? error : new Error(messageOf(error));
        this.#end();
      }
      if (this.#context.readerGone) this.#end();
      if (!this.#ended) this.#prompt();
    });
  }

  #end(): void {
    this.#ended = true;
    this.#readline?.close();
  }

  #interrupt(): void {
    this.#interrupts++;
    const { stdout } = this.#context.deps;
    if (this.#running !== undefined) {
      stdout.write("^C\n");
      this.#running.abort();
      return;
    }
    this.#lines = [];
    this.#pending = "";
    stdout.write("^C\n");
    // What is typed is taken back, before and behind the cursor.
    this.#readline?.write(null, { ctrl: true, name: "e" });
    this.#readline?.write(null, { ctrl: true, name: "u" });
    this.#prompt();
  }

  #prompt(): void {
    const { database } = this.#state;
    const sign = this.#pending === "" ? "=" : isWithin(this.#pending) ? "'" : "-";
    this.#readline?.setPrompt(`${database}${sign}> `);
    this.#readline?.prompt();
  }

  async #take(line: string): Promise<void> {
    const isFirst = this.#pending === "";
    if (isFirst && line.trim() === "") return;
    this.#lines.push(line);
    const command = isFirst ? commandOf(line.trim()) : undefined;
    if (command !== undefined) {
      await this.#remember();
      await this.#tell(async () => {
        if ((await runCommand(this.#context, this.#state, command)) === "quit") this.#end();
      });
      return;
    }
    const text = isFirst ? line : `${this.#pending}\n${line}`;
    const { statements, rest } = splitStatements(text);
    const last = statements.at(-1);
    const behind = last === undefined ? 0 : text.indexOf(";", last.start + last.text.length) + 1;
    this.#pending =
      rest === undefined ? (isWithin(text.slice(behind)) ? text.slice(behind) : "") : text.slice(rest.start);
    if (this.#pending === "") await this.#remember();
    const interrupts = this.#interrupts;
    for (const statement of statements) {
      if (this.#ended || interrupts !== this.#interrupts) break;
      await this.#execute(inPlace(text, statement));
    }
  }

  async #execute(text: string): Promise<void> {
    const { clock } = this.#context.deps;
    const startedMs = clock.monotonicMs();
    const running = new AbortController();
    this.#running = running;
    const { database, format } = this.#state;
    await this.#tell(() => runQuery(this.#context, { ...this.#run, database, format }, text, running.signal));
    this.#running = undefined;
    if (!this.#state.showsTime) return;
    await this.#context.writeLine(`time: ${(clock.monotonicMs() - startedMs).toFixed(1)} ms`);
  }

  /** A failure of what was asked for is told, and the shell goes on. */
  async #tell(task: () => Promise<void>): Promise<void> {
    try {
      await task();
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      if (error instanceof QueryCancelled) this.#context.note(error.message);
      else this.#context.error(error.message);
      if (error.detail !== undefined) this.#context.note(error.detail);
    }
  }

  /** Keeps what was typed, as one entry where that is the same. */
  async #remember(): Promise<void> {
    const lines = this.#lines;
    this.#lines = [];
    const joined = oneLine(lines);
    if (lines.length > 1 && joined !== undefined) {
      for (const line of lines) {
        const at = this.#recalled.slice(0, lines.length).indexOf(line);
        if (at >= 0) this.#recalled.splice(at, 1);
      }
      this.#recalled.unshift(joined);
    }
    try {
      for (const entry of joined === undefined ? lines : [joined]) await this.#history.add(entry);
    } catch (error) {
      this.#warnOfHistory(error, undefined);
    }
  }

  #warnOfHistory<T>(error: unknown, otherwise: T): T {
    if (!this.#historyFailed) this.#context.warn(`what is typed is not kept: ${messageOf(error)}`);
    this.#historyFailed = true;
    return otherwise;
  }

  async #complete(text: string): Promise<[string[], string]> {
    // Without a server there are names of old, and keywords.
    const tree = await this.#readTree(TREE_TTL_MS).catch(() => this.#tree.value);
    return complete(text, { before: this.#pending, tree, database: this.#state.database });
  }

  async #readTree(ttlMs: number): Promise<SchemaTree> {
    const { clock } = this.#context.deps;
    if (clock.monotonicMs() - this.#tree.readAtMs < ttlMs) return this.#tree.value;
    const value = await readSchema(this.#run.client, this.#run.target);
    this.#tree = { value, readAtMs: clock.monotonicMs() };
    return value;
  }
}

/** The words by which people leave other shells, and ask them for help, are commands here. */
function commandOf(line: string): string | undefined {
  if (line.startsWith("\\")) return line;
  const word = line.replace(/\s*;$/, "").toLowerCase();
  if (word === "exit" || word === "quit") return "\\q";
  return word === "help" ? "\\?" : undefined;
}

/** Whether the text ends within quotes or a comment: whatever follows, it is no end of the statement. */
function isWithin(text: string): boolean {
  const end = tokenize(`${text}\n;`).at(-1);
  return end === undefined || end.kind !== "symbol" || end.start !== text.length + 1;
}
