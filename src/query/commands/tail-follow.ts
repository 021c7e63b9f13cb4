import { Backoff } from "../../core/backoff.ts";
import { sleep } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { fieldText } from "../../client/api.ts";
import {
  apiFailure,
  connectionFailure,
  openClient,
  readApiError,
  type ApiError,
  type EngineClient,
  type Target,
} from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { dataIn, eventTextsIn } from "../../client/server-sent-events.ts";
import { visible } from "../../client/text.ts";

export type TailAsked = { database: string; table: string; where?: string; from?: string };

/** The server says something every 15 s. */
const SILENCE_MS = 60_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

/**
 * The rows of a live tail as lines of JSON, each once, over as many connections as it takes, until the caller leaves.
 * Throws a `CliError` when the first connection fails, and later for what another one would not change.
 */
export async function* followTail(context: CliContext, target: Target, asked: TailAsked): AsyncGenerator<string> {
  const client = await openClient(target, `engine/${context.deps.version}`);
  const { clock, random } = context.deps;
  const backoff = new Backoff({ random, firstMs: FIRST_PAUSE_MS, mostMs: LONGEST_PAUSE_MS });
  const place: Place = { lastId: undefined };
  let isTold = false;
  const onConnected = (): void => {
    backoff.reset();
    isTold = false;
  };
  try {
    for (;;) {
      try {
        yield* connection({ client, target, asked, place, onConnected });
      } catch (error) {
        if (error instanceof CliError) throw error;
        if (place.lastId === undefined) throw firstFailure(error, target);
        if (!isTold) context.warn(`the connection to ${target.url} broke (${visible(messageOf(error))}); trying again`);
        isTold = true;
      }
      await sleep(clock, backoff.next());
    }
  } finally {
    await client.close();
  }
}

/** The last id that came: where the next connection goes on. */
type Place = { lastId: string | undefined };

type Connection = { client: EngineClient; target: Target; asked: TailAsked; place: Place; onConnected: () => void };

async function* connection({ client, target, asked, place, onConnected }: Connection): AsyncGenerator<string> {
  const { database, table, where, from } = asked;
  const query = new URLSearchParams({ table, ...(where && { filter: where }), ...(from && { from }) });
  const reply = await client.send({
    method: "GET",
    path: `/v1/tail?${query.toString()}`,
    headers: {
      accept: "text/event-stream",
      "x-database": database,
      ...(place.lastId !== undefined && { "last-event-id": place.lastId }),
    },
    timeoutMs: SILENCE_MS,
  });
  if (reply.status !== 200) throw refusal(await readApiError(reply), target);
  onConnected();
  const onPosition = (id: string): void => {
    place.lastId = id;
  };
  for await (const { event, id, text } of eventTextsIn(reply.body, onPosition)) {
    if (event === "end") {
      checkEnd(text, target);
      return;
    }
    yield text;
    // Whoever has the row does not want it again.
    place.lastId = id ?? place.lastId;
  }
}

/** A refusal that another try may not meet; others are failures of the command. */
class MayPass extends Error {
  readonly answer: ApiError;
  constructor(answer: ApiError) {
    super(answer.message);
    this.answer = answer;
  }
}

function refusal(answer: ApiError, target: Target): Error {
  const mayPass = answer.status === 429 || answer.status >= 500;
  return mayPass ? new MayPass(answer) : apiFailure(answer, target);
}

function firstFailure(error: unknown, target: Target): CliError {
  return error instanceof MayPass ? apiFailure(error.answer, target) : connectionFailure(error, target);
}

/** Throws for an end that coming again would not change. */
function checkEnd(text: string, target: Target): void {
  const { message, reconnect } = dataIn(text, target);
  if (reconnect !== true) throw new CliError(`the tail ended: ${visible(fieldText(message))}`, EXIT.failed);
}
