import { request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { uwsProblem } from "../../src/io/http/http.test-kit.ts";
import { ask, metric, MIB, QUIET, startEdge, startPeer, startRawPeer, stopAll } from "./edge.test-kit.ts";
import { delay, eventually } from "../../src/core/waiting.test-kit.ts";

afterEach(stopAll);

const DRIVERS = uwsProblem === undefined ? (["node", "uws"] as const) : (["node"] as const);
/** What sockets, parsers and pipes between two ends may hold, and far less than what is sent. */
const IN_BETWEEN_BYTES = 24 * MIB;
const PIECE = Buffer.alloc(256 * 1024, "x");

/** An open request whose body the test writes. */
function open(url: string, headers: Record<string, string> = {}) {
  const request: ClientRequest = httpRequest(url, { method: "POST", headers, agent: false });
  const failure = new Promise<Error>((resolve) => request.once("error", resolve));
  const response = new Promise<IncomingMessage>((resolve) => request.once("response", resolve));
  return { request, response, failure };
}

describe.each(DRIVERS)("an edge on %s", (driver) => {
  const startTo = (url: string) => startEdge({ driver, query: [url], ingest: [url], times: QUIET });

  test("a slow client slows the peer down, and gets all of it in the end", async () => {
    const totalBytes = 96 * MIB;
    let writtenBytes = 0;
    const peer = await startPeer((_seen, response) => {
      const write = (): void => {
        while (writtenBytes < totalBytes) {
          writtenBytes += PIECE.length;
          if (!response.write(PIECE)) return void response.once("drain", write);
        }
        response.end();
      };
      write();
    });
    const edge = await startTo(peer.url);
    const { request, response } = open(`${edge.url}/v1/query`);
    request.end("q");
    const answer = await response;
    answer.pause();
    let before = -1;
    // Until it stands still.
    await eventually(async () => {
      const same = before === writtenBytes;
      before = writtenBytes;
      await delay(150);
      return same;
    });
    expect(writtenBytes).toBeLessThan(IN_BETWEEN_BYTES);
    let receivedBytes = 0;
    for await (const chunk of answer) receivedBytes += (chunk as Buffer).length;
    expect([receivedBytes, answer.complete]).toEqual([totalBytes, true]);
  });

  test("a slow peer slows the client down, and gets all of it in the end", async () => {
    const totalBytes = 63 * MIB;
    const gate = Promise.withResolvers<void>();
    const peer = await startRawPeer((message, response) => {
      void gate.promise.then(async () => {
        let receivedBytes = 0;
        for await (const chunk of message) receivedBytes += (chunk as Buffer).length;
        response.end(String(receivedBytes));
      });
    });
    const edge = await startTo(peer.url);
    const { request, response } = open(`${edge.url}/v1/ingest`, { "content-length": String(totalBytes) });
    let writtenBytes = 0;
    const write = (): void => {
      while (writtenBytes < totalBytes) {
        writtenBytes += PIECE.length;
        if (!request.write(PIECE)) return void request.once("drain", write);
      }
      request.end();
    };
    write();
    let before = -1;
    await eventually(async () => {
      const same = before === writtenBytes;
      before = writtenBytes;
      await delay(150);
      return same;
    });
    expect(writtenBytes).toBeLessThan(IN_BETWEEN_BYTES);
    gate.resolve();
    const answer = await response;
    let text = "";
    for await (const chunk of answer) text += String(chunk);
    expect(text).toBe(String(totalBytes));
  });

  test.each(["while it waits for the answer", "in the middle of the answer"])(
    "a client that leaves %s cancels the peer's request",
    async (when) => {
      const closed = Promise.withResolvers<boolean>();
      const peer = await startPeer((_seen, response) => {
        response.once("close", () => closed.resolve(response.writableFinished));
        if (when === "in the middle of the answer") response.write("part");
      });
      const edge = await startTo(peer.url);
      const { request, response } = open(`${edge.url}/v1/query`);
      request.on("error", () => undefined);
      request.end("q");
      if (when === "in the middle of the answer") (await response).on("error", () => undefined);
      else await eventually(() => peer.seen.length === 1);
      request.destroy();
      expect(await closed.promise).toBe(false);
      await eventually(async () => (await metric(edge.metrics, "engine_edge_in_flight")) === 0);
      expect(await metric(edge.metrics, "engine_edge_requests_total", { outcome: "cancelled" })).toBe(1);
    },
  );

  test.each([{ "content-length": "1000000" }, { "transfer-encoding": "chunked" }])(
    "a client that leaves in the middle of its body (%o) cuts it for the peer, which never takes it for whole",
    async (headers: Record<string, string>) => {
      const end = Promise.withResolvers<string>();
      const peer = await startRawPeer((message) => {
        message.resume();
        message.once("close", () => end.resolve(message.complete ? "whole" : "cut"));
      });
      const edge = await startTo(peer.url);
      const { request } = open(`${edge.url}/v1/ingest`, headers);
      request.on("error", () => undefined);
      request.write(Buffer.alloc(70_000, "x"));
      await eventually(() => peer.begun === 1);
      request.destroy();
      expect(await end.promise).toBe("cut");
    },
  );

  test.each(["content-length", "chunked"])("a peer that dies in its answer (%s) cuts the client's", async (framing) => {
    const peer = await startPeer((_seen, response, self) => {
      if (framing === "content-length") response.setHeader("content-length", "1000000");
      response.write(Buffer.alloc(100_000, "x"));
      setTimeout(() => void self.kill(), 50);
    });
    const edge = await startTo(peer.url);
    const answer = await ask(`${edge.url}/v1/query`, { body: "q" });
    expect([answer.status, answer.complete]).toEqual([200, false]);
    expect(await metric(edge.metrics, "engine_edge_requests_total", { outcome: "cut" })).toBe(1);
    expect(edge.failures).toHaveLength(1);
  });

  test("an answer that comes before the body is read reaches the client, and the peer gets no false end", async () => {
    const ends: string[] = [];
    const peer = await startRawPeer((message, response) => {
      message.socket.once("close", () => ends.push(message.complete ? "whole" : "cut"));
      message.resume();
      // The rest comes later: in between the edge has long begun to answer, and reads no more of its client's body.
      response.writeHead(413).write("too ");
      setTimeout(() => response.end("large"), 100);
    });
    const edge = await startTo(peer.url);
    const { request, response } = open(`${edge.url}/v1/ingest`, { "transfer-encoding": "chunked" });
    request.on("error", () => undefined);
    request.write(PIECE);
    const answer = await response;
    let text = "";
    for await (const chunk of answer) text += String(chunk);
    expect([answer.statusCode, text]).toEqual([413, "too large"]);
    await eventually(() => ends.length === 1);
    expect(ends).toEqual(["cut"]);
    request.destroy();
  });

  test("one connection serves many requests", async () => {
    const ports = new Set<number | undefined>();
    const peer = await startRawPeer((message, response) => {
      ports.add(message.socket.remotePort);
      message.resume();
      message.once("end", () => void response.end("ok"));
    });
    const edge = await startTo(peer.url);
    for (let i = 0; i < 20; i++) await ask(`${edge.url}/v1/ingest`, { body: Buffer.alloc(i * 10_000, "x") });
    expect(ports.size).toBe(1);
  });
});
