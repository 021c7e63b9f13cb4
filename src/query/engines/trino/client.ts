import { Agent, request } from "undici";
import { sleep, withTimeLimit, type Clock } from "../../../core/clock.ts";
import { EngineError, messageOf, systemCodeOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { EngineColumn, EnginePage, EngineRun } from "../../contract/engines.ts";
import type { EnginePlace, EnginePort, Statement } from "../port.ts";
import { readPage, type TrinoPage } from "./page.ts";
import { foreignType, type ForeignType } from "./types.ts";

/**
 * Trino by its own protocol (https://trino.io/docs/current/develop/client-protocol.html): a text is sent, and the address
 * in each answer is asked for the next one, until there is none.
 *
 * Not by way of `trino-client`: it reads integers as numbers of JavaScript (9007199254740993 comes as …992), is sent times
 * cut to milliseconds, asks whatever address an answer names, with the secret, and can be neither stopped nor bounded.
 *
 * Every text runs in a transaction of its own that only reads. So none changes anything in that engine, whatever its
 * credential may: what writes is refused there, by the engine, as are procedures.
 */
export type TrinoOptions = { place: EnginePlace; clock: Clock; log: Log };

const ANSWER_MS = 60_000;
/** Most of a page is rows, of which Trino sends some megabytes at once; one large row may be more. */
const PAGE_BYTES = 256 * 1024 * 1024;
const REFUSAL_CHARS = 300;
/** The protocol asks for a pause of that length. */
const BUSY_MS = 100;
/** An engine that has not answered for so long is gone. */
const GIVE_UP_MS = 30_000;
const CANCEL_MS = 5_000;
/** "There was an intermittent problem processing the request": the same again. */
const BUSY = new Set([429, 502, 503, 504]);

const NO_TRANSACTION = "NONE";

type Headers = Record<string, string>;
type Answer = { status: number; headers: Readonly<Record<string, string | string[] | undefined>>; text: string };

export class TrinoClient implements EnginePort {
  readonly #options: TrinoOptions;

  constructor(options: TrinoOptions) {
    this.#options = options;
  }

  async begin(statement: Statement): Promise<EngineRun> {
    const session = new Session(this.#options, statement);
    const transaction = await session.transaction();
    try {
      const first = await session.post(statement.text, transaction);
      return { queryId: first.id, pages: session.pages(first, transaction) };
    } catch (error) {
      await session.rollBack(transaction);
      throw error;
    }
  }

  async cancel(queryId: string): Promise<void> {
    await soon(this.#options, (signal) => ask(this.#options.place, "DELETE", `/v1/query/${queryId}`, { signal }));
  }
}

/** One text and the transaction around it. */
class Session {
  readonly #options: TrinoOptions;
  readonly #headers: Headers;
  readonly #signal: AbortSignal;

  constructor(options: TrinoOptions, { catalog, schema, onBehalfOf, requestId, signal }: Statement) {
    this.#options = options;
    this.#signal = signal;
    this.#headers = {
      "X-Trino-Catalog": catalog,
      "X-Trino-Schema": schema,
      "X-Trino-Source": "engine",
      "X-Trino-Client-Info": encodeURIComponent(onBehalfOf),
      "X-Trino-Trace-Token": requestId,
      "X-Trino-Time-Zone": "UTC",
      // Without it times are cut to milliseconds.
      "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",
    };
  }

  /** Begins one that only reads. */
  async transaction(): Promise<string> {
    let id: unknown;
    for (let page = await this.#post("START TRANSACTION READ ONLY", NO_TRANSACTION); ; page = await this.#next(page)) {
      id ??= page.headers["x-trino-started-transaction-id"];
      failIn(page);
      if (page.nextUri === undefined) break;
    }
    if (typeof id === "string") return id;
    throw new EngineError(
      "engine_failed",
      "the query engine did not start a read-only transaction, so the query was not sent",
    );
  }

  async post(text: string, transaction: string): Promise<AnsweredPage> {
    const page = await this.#post(text, transaction);
    failIn(page);
    return page;
  }

  /** Ends the transaction, and the query with it, as well as that can be done. */
  async rollBack(transaction: string): Promise<void> {
    const { place } = this.#options;
    const headers = { ...this.#headers, "X-Trino-Transaction-Id": transaction };
    try {
      await soon(this.#options, async (signal) => {
        let page = readAnswer(await ask(place, "POST", "/v1/statement", { headers, body: "ROLLBACK", signal }));
        while (page.nextUri !== undefined) page = readAnswer(await ask(place, "GET", pathOf(page.nextUri), { signal }));
      });
    } catch (error) {
      // It forgets transactions that nobody uses by itself.
      this.#options.log.warn({ err: error }, "a transaction of a query engine was not ended");
    }
  }

  /** Not a generator: one that was never started would not end the query when it is given up. */
  pages(first: AnsweredPage, transaction: string): AsyncIterable<EnginePage> {
    let page: AnsweredPage | undefined;
    let types: readonly ForeignType[] | undefined;
    let columns: readonly EngineColumn[] | undefined;
    let isOver = false;
    const end = async (): Promise<void> => {
      if (isOver) return;
      isOver = true;
      if (page?.nextUri !== undefined || page === undefined) await this.#cancel(page ?? first);
      await this.rollBack(transaction);
    };
    const next = async (): Promise<IteratorResult<EnginePage>> => {
      if (isOver) return { done: true, value: undefined };
      if (page !== undefined && page.nextUri === undefined) {
        await end();
        return { done: true, value: undefined };
      }
      page = page === undefined ? first : await this.#next(page);
      failIn(page);
      if (page.columns !== undefined && types === undefined) {
        const known = page.columns.map((column) => ({ name: column.name, ...foreignType(column) }));
        types = known;
        columns = known.map(({ name, sqlType, isNested }) => ({ name, sqlType, isNested }));
      }
      const { state, progressPercentage: percent, processedRows: rowsRead } = page.stats;
      const rows = (page.data ?? []).map((row) => row.map((value, i) => types?.[i]?.text(value)));
      return { done: false, value: { columns, rows, progress: { state, percent, rowsRead } } };
    };
    const iterator: AsyncIterator<EnginePage> = {
      async next() {
        try {
          return await next();
        } catch (error) {
          await end();
          throw error;
        }
      },
      async return() {
        await end();
        return { done: true, value: undefined };
      },
    };
    return { [Symbol.asyncIterator]: () => iterator };
  }

  async #cancel({ id, nextUri }: AnsweredPage): Promise<void> {
    const { place, log } = this.#options;
    const path = nextUri === undefined ? `/v1/query/${id}` : pathOf(nextUri);
    try {
      await soon(this.#options, (signal) => ask(place, "DELETE", path, { signal }));
    } catch (error) {
      // One whose client does not ask for more is ended there after minutes.
      log.warn({ err: error, queryId: id }, "a query of a query engine was not ended");
    }
  }

  async #post(text: string, transaction: string): Promise<AnsweredPage> {
    const headers = { ...this.#headers, "X-Trino-Transaction-Id": transaction };
    return readAnswer(await this.#untilAnswered("POST", "/v1/statement", { headers, body: text }));
  }

  async #next({ nextUri = "" }: AnsweredPage): Promise<AnsweredPage> {
    return readAnswer(await this.#untilAnswered("GET", pathOf(nextUri), {}));
  }

  /** Asks again while the engine says that it is busy; for the next page also while it cannot be reached. */
  async #untilAnswered(
    method: "GET" | "POST",
    path: string,
    { headers = {}, body }: { headers?: Headers; body?: string },
  ): Promise<Answer> {
    const { clock, place } = this.#options;
    const signal = this.#signal;
    const startedMs = clock.monotonicMs();
    for (;;) {
      try {
        return await ask(place, method, path, { headers, body, signal });
      } catch (error) {
        signal.throwIfAborted();
        const isOver = clock.monotonicMs() - startedMs >= GIVE_UP_MS;
        const mayRepeat = error instanceof Busy || (error instanceof Unreachable && method === "GET");
        if (!mayRepeat || isOver) throw error;
        await sleep(clock, BUSY_MS, signal);
      }
    }
  }
}

type AnsweredPage = TrinoPage & Pick<Answer, "headers">;

/** What ends a query is not waited for any longer. */
async function soon<T>({ clock }: TrinoOptions, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = (): Error => new EngineError("engine_timeout", `the query engine did not answer in ${CANCEL_MS} ms`);
  return await withTimeLimit(clock, { ms: CANCEL_MS, late }, work);
}

class Unreachable extends EngineError {}
class Busy extends EngineError {}

const agent = new Agent({ connections: 32, maxResponseSize: PAGE_BYTES });

/** Throws for whatever is no page. A redirect is no answer: it would take the secret somewhere else. */
async function ask(
  { url, user, secret }: EnginePlace,
  method: "DELETE" | "GET" | "POST",
  path: string,
  { headers = {}, body, signal }: { headers?: Headers; body?: string | undefined; signal: AbortSignal },
): Promise<Answer> {
  const own = { "X-Trino-User": user, ...(secret !== undefined && { [secret.header]: secret.value }) };
  const timeouts = { headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS, dispatcher: agent };
  let answer: Answer;
  try {
    const response = await request(url + path, {
      method,
      headers: { ...headers, ...own },
      ...(body !== undefined && { body }),
      signal,
      ...timeouts,
    });
    answer = { status: response.statusCode, headers: response.headers, text: await response.body.text() };
  } catch (error) {
    signal.throwIfAborted();
    throw new Unreachable(
      "engine_failed",
      `the query engine does not answer: ${systemCodeOf(error) ?? messageOf(error)}`,
    );
  }
  const { status, text } = answer;
  if (status === 200 || status === 204) return answer;
  if (status === 401 || status === 403) {
    throw new EngineError("engine_failed", `the query engine refuses the credential that it is sent (${status})`);
  }
  if (BUSY.has(status)) throw new Busy("engine_failed", `the query engine is busy: it answers ${status}`);
  const words = text
    .slice(0, REFUSAL_CHARS)
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim();
  throw new EngineError("engine_failed", `the query engine answers ${status}${words === "" ? "" : `: ${words}`}`);
}

function readAnswer({ headers, text }: Answer): AnsweredPage {
  try {
    return { ...readPage(text), headers };
  } catch (error) {
    const message = "the server at the query engine's address does not speak the Trino protocol";
    throw new EngineError("engine_failed", message, { cause: error });
  }
}

/** Where to go on, at the address that an admin has given: an answer cannot name another. */
function pathOf(nextUri: string): string {
  const { pathname = "", search = "" } = URL.parse(nextUri, "http://engine.invalid") ?? {};
  // Of some schemes a path begins with something else, which would go on with the name of the host.
  if (pathname.startsWith("/")) return pathname + search;
  throw new EngineError("engine_failed", "the query engine names no address to go on at");
}

/** Throws what an answer says that went wrong. */
function failIn({ error }: TrinoPage): void {
  if (error === undefined) return;
  const { errorName, errorType, message } = error;
  const words = message.slice(0, MAX_MESSAGE_CHARS);
  if (errorName === "READ_ONLY_VIOLATION") {
    throw new EngineError("invalid_query", "the query writes; query engines are read-only from here");
  }
  if (errorName === "USER_CANCELED") throw new EngineError("engine_failed", "the query was ended at the query engine");
  if (errorType === "USER_ERROR") throw new EngineError("invalid_query", `the query engine says: ${words}`);
  throw new EngineError("engine_failed", `the query engine says: ${words} (${errorName})`);
}

const MAX_MESSAGE_CHARS = 4_000;
