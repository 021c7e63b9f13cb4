import { connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { corpus } from "../../src/io/http/corpus.test-kit.ts";
import { MIB, QUIET, startEdge, startPeer, stopAll } from "./edge.test-kit.ts";

afterEach(stopAll);

/** What another client asks for over the same connections of the edge to its peer. */
const FOLLOWING = "POST /v1/ingest HTTP/1.1\r\nHost: localhost\r\nX-Table: following\r\nContent-Length: 2\r\n\r\n{}";

/** The corpus's requests with a body, for a route that is forwarded. */
const forwarded = corpus
  .filter(({ bytes }) => bytes.toString("latin1").startsWith("POST /a HTTP/1."))
  .map((entry) => {
    const text = entry.bytes.toString("latin1").replaceAll(/Host: a(?=[\r\n])/g, "Host: localhost");
    const head = /^POST \/a (HTTP\/1\.\d)\r\n/;
    const bytes = Buffer.from(text.replace(head, "POST /v1/ingest $1\r\nX-Table: own\r\n"), "latin1");
    return { name: entry.name, served: entry.served, goesOn: entry.goesOn, bytes };
  });

type Passed = { table: string; body: string };

/** What the peer gets of these bytes, and what is answered to them. */
async function passedOn(bytes: Buffer): Promise<{ passed: Passed[]; received: string }> {
  const peer = await startPeer();
  const edge = await startEdge({ driver: "node", ingest: [peer.url], times: QUIET });
  const socket = connect({ port: edge.port, host: "127.0.0.1" });
  let received = "";
  socket.on("error", () => undefined).on("data", (data) => (received += data.toString("latin1")));
  socket.write(bytes);
  const answers = () => received.match(/^HTTP\/1\.1 [2-5]/gm)?.length ?? 0;
  for (let i = 0; i < 500 && !socket.closed && answers() < 2; i++)
    await new Promise((resolve) => setTimeout(resolve, 2));
  socket.destroy();
  const passed = peer.seen.map(({ headers, body }) => ({
    table: String(headers["x-table"]),
    body: body.toString("latin1"),
  }));
  return { passed, received };
}

test("the corpus has requests with bodies of both kinds", () => {
  const kinds = forwarded.map(({ served }) => served.length);
  expect(kinds.filter((count) => count === 1).length).toBeGreaterThan(10);
  expect(kinds.filter((count) => count === 0).length).toBeGreaterThan(30);
});

test.each(forwarded)("a peer gets what the client sent, or nothing: $name", async ({ bytes, served, goesOn }) => {
  const { passed, received } = await passedOn(Buffer.concat([bytes, Buffer.from(FOLLOWING)]));
  const own = served.map((shown) => ({ table: "own", body: /\[(.*)\]/.exec(shown)?.[1] ?? "" }));
  const following = goesOn ? [{ table: "following", body: "{}" }] : [];
  const byTable = (a: Passed, b: Passed) => (a.table < b.table ? 1 : -1);
  expect(passed.toSorted(byTable)).toEqual([...own, ...following]);
  expect(received).toMatch(served.length === 0 ? /^HTTP\/1\.1 4\d\d [^]*"error":\{"code"/ : /^HTTP\/1\.1 200 /);
});

test("a chunked body of any cut goes on whole, and its trailer does not", async () => {
  const pieces = Array.from({ length: 64 }, (_, i) => "x".repeat(i * i + 1));
  const chunks = pieces.map((piece) => `${piece.length.toString(16)};n=v\r\n${piece}\r\n`).join("");
  const head = "POST /v1/ingest HTTP/1.1\r\nHost: localhost\r\nX-Table: own\r\nTransfer-Encoding: chunked\r\n\r\n";
  const request = `${head}${chunks}0\r\nX-Table: trailer\r\nX-Database: trailer\r\n\r\n`;
  expect(request.length).toBeLessThan(MIB);
  const { passed } = await passedOn(Buffer.from(request + FOLLOWING));
  expect(passed.toSorted((a, b) => (a.table < b.table ? 1 : -1))).toEqual([
    { table: "own", body: pieces.join("") },
    { table: "following", body: "{}" },
  ]);
});
