import { constants } from "node:os";
import { callTarget, fieldText, withApiFlags, type ApiFlags, type Json } from "../../../client/api.ts";
import {
  apiFailure,
  connectionFailure,
  openClient,
  readApiError,
  type ClientReply,
  type EngineClient,
  type Target,
} from "../../../client/client.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { eventTextsIn } from "../../../client/server-sent-events.ts";
import { resolveTarget } from "../../../client/target.ts";
import { checkName } from "../../../core/names.ts";
import { onStopSignal } from "../../../core/stop-signal.ts";
import { AGENT_LIMITS } from "../limits.ts";
import { readLastSession, saveLastSession } from "./last-session.ts";
import { RunPrinter } from "./run-printer.ts";
import { sessionPath } from "./session-path.ts";

type Flags = ApiFlags & { session?: string; continue?: true; database?: string; thinking?: true };

/** The server says something every 15 s. */
const SILENCE_MS = 60_000;

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("query")
    .description(
      "Ask a question in plain words. The answer comes out as it is made, the queries that it rests on come on standard " +
        "error. Ctrl-C cancels.",
    )
    .argument("<question>", "the question")
    .option("--session <id>", "go on with this session")
    .option("--continue", "go on with the last session that was used with the server")
    .option("--database <name>", "database asked about; that of the session, or default")
    .option("--thinking", "show what the model thinks, on standard error");
  withExamples(withApiFlags(command), [
    'engine query "How many orders came in today?"',
    'engine query --continue "And yesterday?"',
    'engine query --database logs "Which service fails most?" --json',
  ]).action(context.action((question: string, flags: Flags) => query(context, question, flags)));
};

async function query(context: CliContext, question: string, flags: Flags): Promise<number> {
  checkQuestion(question);
  if (flags.session !== undefined && flags.continue === true) {
    throw new CliError("--session and --continue say the same: give one of them", EXIT.usage);
  }
  if (flags.database !== undefined) checkName("database", flags.database);
  const loaded = await context.loadConfig({ serverUrl: flags.server, token: flags.token });
  const target = await resolveTarget(context, loaded);
  const { home } = loaded.config;
  const sessionId = flags.continue === true ? await readLastSession(home, target.url) : flags.session;
  const database = flags.database ?? (await databaseOf(context, target, sessionId));
  const body: Json = {
    question,
    source: "engine query",
    ...(database !== undefined && { database }),
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(flags.thinking === true && { include_thinking: true }),
  };
  const client = await openClient(target, `engine/${context.deps.version}`);
  const asking = new Asking(context, { client, target, json: flags.json === true, home });
  try {
    return await asking.run(body);
  } finally {
    await client.close();
  }
}

function checkQuestion(question: string): void {
  if (question.trim() === "") throw new CliError("the question is empty", EXIT.usage);
  if (Buffer.byteLength(question) > AGENT_LIMITS.questionBytes) {
    throw new CliError(`a question has at most ${AGENT_LIMITS.questionBytes} bytes`, EXIT.usage);
  }
}

/** What a session is about; undefined without one. */
async function databaseOf(
  context: CliContext,
  target: Target,
  sessionId: string | undefined,
): Promise<string | undefined> {
  if (sessionId === undefined) return undefined;
  return fieldText((await callTarget(context, target, "GET", sessionPath(sessionId)))["database"]);
}

type AskingOptions = { client: EngineClient; target: Target; json: boolean; home: string };

/** One question and the events of its run. */
class Asking {
  readonly #context: CliContext;
  readonly #options: AskingOptions;
  readonly #printer: RunPrinter;
  #sessionId: string | undefined;
  #hasFailed = false;
  /** How the run ended; undefined until it has. */
  #status: unknown;

  constructor(context: CliContext, options: AskingOptions) {
    this.#context = context;
    this.#options = options;
    this.#printer = new RunPrinter(context);
  }

  /** The exit code. Leaving the connection cancels the run. */
  async run(body: Json): Promise<number> {
    const leaving = new AbortController();
    let stoppedBy: NodeJS.Signals | undefined;
    const letSignalsBe = onStopSignal((signal) => {
      stoppedBy = signal;
      leaving.abort();
    });
    try {
      await this.#follow(body, leaving.signal);
    } catch (error) {
      if (stoppedBy === undefined) throw error;
    } finally {
      letSignalsBe();
      await this.#printer.end();
    }
    // As a shell has it for a command that a signal ended.
    if (stoppedBy !== undefined) return 128 + constants.signals[stoppedBy];
    if (this.#context.readerGone) return EXIT.ok;
    return this.#hasFailed || this.#status !== "done" ? EXIT.failed : EXIT.ok;
  }

  async #follow(body: Json, signal: AbortSignal): Promise<void> {
    const { target } = this.#options;
    const reply = await this.#send(body, signal);
    try {
      for await (const { event, id, text } of eventTextsIn(reply.body)) {
        await this.#take(event, id, text);
        // Leaving the loop closes the connection, and that ends the run.
        if (this.#status !== undefined || this.#context.readerGone) return;
      }
    } catch (error) {
      if (error instanceof CliError || signal.aborted) throw error;
      throw new CliError(`${connectionFailure(error, target).message}${this.#advice()}`, EXIT.failed, { cause: error });
    }
    throw new CliError(`${target.url} ended the connection before the end of the run${this.#advice()}`);
  }

  async #send(body: Json, signal: AbortSignal): Promise<ClientReply> {
    const { client, target } = this.#options;
    let reply: ClientReply;
    try {
      reply = await client.send({
        method: "POST",
        path: "/v1/agent/ask",
        headers: { accept: "text/event-stream", "content-type": "application/json" },
        body: JSON.stringify(body),
        timeoutMs: SILENCE_MS,
        signal,
      });
    } catch (error) {
      throw error instanceof CliError || signal.aborted ? error : connectionFailure(error, target);
    }
    if (reply.status !== 200) throw apiFailure(await readApiError(reply), target);
    if (reply.header("content-type")?.startsWith("text/event-stream") === true) return reply;
    throw new CliError(`what answers at ${target.url} is no engine`);
  }

  async #take(event: string, id: string | undefined, text: string): Promise<void> {
    const { target, home, json } = this.#options;
    const data = this.#dataIn(text);
    if (event === "session" && typeof data["sessionId"] === "string") {
      this.#sessionId = data["sessionId"];
      await saveLastSession(this.#context, home, target.url, this.#sessionId);
    }
    if (json) await this.#printer.raw({ event, id, text });
    else await this.#printer.event(event, data);
    if (event === "run_error") {
      this.#hasFailed = true;
      this.#printer.failure(data);
    }
    if (event === "run_finished") this.#status = data["status"] ?? "unknown";
  }

  /** An event that is not whole is the last one of a stream that was cut. */
  #dataIn(text: string): Json {
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
    } catch {
      // Told below.
    }
    throw new CliError(`${this.#options.target.url} broke off in the middle of an event${this.#advice()}`);
  }

  /** What to do when the end of the run is not known. */
  #advice(): string {
    const place = this.#sessionId === undefined ? "sessions list" : `sessions turns ${this.#sessionId}`;
    return `; the run may have ended or go on: \`engine ${place}\` shows what was answered`;
  }
}
