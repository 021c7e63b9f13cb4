import { isLoopback } from "../auth/option-kinds.ts";
import { withTimeLimit, type Clock } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import { cappedText } from "../io/http/client/capped-text.ts";
import type { HeartBeat } from "./heart-beat.ts";
import type { ServerAddress } from "./server-rows.ts";

/** What one server asks each of the others, with what shows who asks. */
export type ServerQuestion = {
  method: "GET" | "DELETE";
  /** With its query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  signal: AbortSignal;
};

/** What one of them said, or why it said nothing. */
export type ServerAnswer = { id: string; name: string } & (
  | { kind: "answered"; status: number; text: string }
  | { kind: "silent"; reason: string }
);

const TIMEOUT_MS = 1_000;
/** No answer of the routes that are asked is as large. */
const MAX_CHARS = 16 * 1024 * 1024;

/**
 * Asks the other servers of the catalog that answer routes, all at once and a second each. Whoever asks shows the credentials of
 * its caller, and the others judge them as if the caller had come to them: no server trusts another one.
 */
export class OtherServers {
  readonly #heartBeat: Pick<HeartBeat, "others" | "self">;
  readonly #clock: Clock;

  constructor({ heartBeat, clock }: { heartBeat: Pick<HeartBeat, "others" | "self">; clock: Clock }) {
    this.#heartBeat = heartBeat;
    this.#clock = clock;
  }

  get self(): { id: string; name: string } {
    return this.#heartBeat.self;
  }

  /** One answer of each; rejects only when the catalog does not say who they are. */
  async ask(question: ServerQuestion): Promise<ServerAnswer[]> {
    const others = await this.#heartBeat.others();
    return await Promise.all(others.map((server) => this.#askOne(server, question)));
  }

  async #askOne(server: ServerAddress, { signal, ...question }: ServerQuestion): Promise<ServerAnswer> {
    const { id, name, url } = server;
    // Behind such an address on this machine is somebody else, who must not see credentials.
    if (isLoopback(new URL(url).hostname) && name !== this.self.name) {
      return {
        id,
        name,
        kind: "silent",
        reason: `its address ${url} is loopback: set ENGINE_ADVERTISE_URL on that server`,
      };
    }
    try {
      const late = (): Error => new Error(`it did not answer within ${TIMEOUT_MS} ms`);
      const answer = await withTimeLimit(this.#clock, { ms: TIMEOUT_MS, late, signal }, (inTime) =>
        ask(`${url}${question.path}`, question, inTime),
      );
      return { id, name, kind: "answered", ...answer };
    } catch (error) {
      signal.throwIfAborted();
      return { id, name, kind: "silent", reason: messageOf(error) };
    }
  }
}

async function ask(
  url: string,
  { method, headers }: Pick<ServerQuestion, "method" | "headers">,
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  // Loaded by the first question: a start would be 30 ms slower for it.
  const { request } = await import("undici");
  const { statusCode, body } = await request(url, { method, headers: { ...headers }, signal });
  return { status: statusCode, text: await cappedText(body, MAX_CHARS) };
}
