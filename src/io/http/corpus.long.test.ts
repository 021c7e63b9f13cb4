import { afterEach, describe, expect, test } from "vitest";
import { corpus, FOLLOWING, FOLLOWING_SERVED, type CorpusEntry } from "./corpus.test-kit.ts";
import type { HttpRequest } from "./http.ts";
import { RawClient, renderError, start, stopAll, text, uwsProblem, type Transport } from "./http.test-kit.ts";
import { delay } from "../../core/waiting.test-kit.ts";

afterEach(stopAll);

type Outcome = { served: string[]; received: string };

type Sending = {
  pieceBytes?: number;
  /** Most time until the connection has come to rest: ended, or with an answer to what follows. */
  restMs?: number;
};

/** What is served of these bytes, and what is answered. */
async function outcomeOf(
  transport: Transport,
  bytes: Buffer,
  { pieceBytes = bytes.length, restMs = 10_000 }: Sending = {},
): Promise<Outcome> {
  const served: string[] = [];
  const { port } = await start(transport, async (request) => {
    try {
      served.push(shown(request, await request.body(100_000)));
      return text("ok");
    } catch (error) {
      return renderError(error);
    }
  });
  const raw = new RawClient(port);
  raw.socket.setNoDelay(true);
  for (let at = 0; at < bytes.length && !raw.isClosed; at += pieceBytes) {
    raw.send(bytes.subarray(at, at + pieceBytes));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const isAnswered = () => served.includes(FOLLOWING_SERVED) && raw.received.split("HTTP/1.1 2").length > served.length;
  const endMs = performance.now() + restMs;
  while (!raw.isClosed && !isAnswered() && performance.now() < endMs) await delay(1);
  // What would be served behind it has the time to.
  await new Promise((resolve) => setImmediate(resolve));
  raw.socket.destroy();
  return { served, received: raw.received };
}

function shown(request: HttpRequest, body: Uint8Array): string {
  const { method, path, query } = request;
  const x = request.header("x");
  const header = x === undefined ? "" : ` x=${JSON.stringify(x)}`;
  return `${method} ${path}${query === "" ? "" : `?${query}`} [${Buffer.from(body).toString("latin1")}]${header}`;
}

/** In any order: what does not wait for its body may be served before what does. */
function expectedOf({ served, goesOn }: CorpusEntry): string[] {
  return [...served, ...(goesOn ? [FOLLOWING_SERVED] : [])].toSorted();
}

const REFUSAL = /^HTTP\/1\.1 4\d\d [^]*\r\nContent-Type: application\/json\r\n(?:[^]*\r\n)?\r\n\{"code":"\w+"\}$/;

const withFollowing = ({ bytes }: CorpusEntry) => Buffer.concat([bytes, Buffer.from(FOLLOWING)]);

describe.each(["node", "node over TLS"] as const)("requests that can be read in two ways: %s", (transport) => {
  test.each(corpus)("$name", async (entry) => {
    const { served, received } = await outcomeOf(transport, withFollowing(entry));
    expect(served.toSorted()).toEqual(expectedOf(entry));
    // What is refused is so in our words, and only once.
    expect(received).toMatch(entry.served.length > 0 ? /^HTTP\/1\.1 200 / : REFUSAL);
    expect(received.match(/HTTP\/1\.1 /g)).toHaveLength(Math.max(1, expectedOf(entry).length));
  });

  test("are read alike in whatever pieces they come", async () => {
    for (const entry of corpus) {
      const bytes = withFollowing(entry);
      for (const pieceBytes of bytes.length > 1_000 ? [997] : [1, 7]) {
        const { served } = await outcomeOf(transport, bytes, { pieceBytes });
        expect(served.toSorted(), `${entry.name}, in pieces of ${pieceBytes}`).toEqual(expectedOf(entry));
        await stopAll();
      }
    }
  });
});

describe.skipIf(uwsProblem !== undefined)("requests that can be read in two ways: uws", () => {
  const strict = corpus.filter((entry) => !entry.isLooseInUws);
  const loose = corpus.filter((entry) => entry.isLooseInUws);

  // It leaves some of them waiting for more.
  const sending = { restMs: 300 };

  test.each(strict)("are read as node reads them, or refused: $name", async (entry) => {
    const { served } = await outcomeOf("uws", withFollowing(entry), sending);
    const expected = expectedOf(entry);
    expect(expected).toEqual(expect.arrayContaining(served));
  });

  // Why it is not taken unless it is asked for; a version that reads one of them like node leaves the list.
  test.each(loose)("are read otherwise: $name", async (entry) => {
    const { served } = await outcomeOf("uws", withFollowing(entry), { restMs: 2_000 });
    expect(expectedOf(entry)).not.toEqual(expect.arrayContaining(served));
  });
});
