import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EngineError } from "../../core/errors.ts";
import { messageFrame, requestMessage, trailerFrame } from "./web-frames.ts";

const frame = (message: Uint8Array, isText = false) => Buffer.concat(messageFrame(message, isText));

describe("the message of a request", () => {
  test("is what its frame holds, in both forms", () => {
    const message = Buffer.from("any bytes \0\xff", "latin1");
    expect(requestMessage(frame(message), false)).toEqual(message);
    expect(Buffer.from(requestMessage(frame(message, true), true))).toEqual(message);
    expect(requestMessage(frame(new Uint8Array()), false).byteLength).toBe(0);
  });

  test("may come in base64 that is padded in its middle", () => {
    const bytes = frame(Buffer.from("hello"));
    const parts = [bytes.subarray(0, 5), bytes.subarray(5, 9), bytes.subarray(9)];
    const text = parts.map((part) => part.toString("base64")).join("");
    expect(text).toMatch(/=[^=]/);
    expect(Buffer.from(requestMessage(Buffer.from(text), true)).toString()).toBe("hello");
  });

  test.each([
    ["nothing", []],
    ["half a frame", [0, 0, 0]],
    ["less than it says", [0, 0, 0, 0, 2, 1]],
    ["more than it says", [0, 0, 0, 0, 1, 1, 1]],
    ["two messages", [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1]],
    ["a length past all", [0, 0xff, 0xff, 0xff, 0xff]],
    ["a compressed message", [1, 0, 0, 0, 1, 1]],
    ["trailers", [0x80, 0, 0, 0, 1, 1]],
    ["flags that nobody knows", [2, 0, 0, 0, 1, 1]],
  ])("%s is refused", (_, bytes) => {
    expect(() => requestMessage(Buffer.from(bytes), false)).toThrow(EngineError);
  });

  test("a long text that is no base64 is refused at once", () => {
    const startedMs = performance.now();
    for (const text of [`${"A".repeat(100_000)}*`, `${"AA==".repeat(50_000)}*`, "=".repeat(100_000)]) {
      expect(() => requestMessage(Buffer.from(text), true)).toThrow("is not base64");
    }
    expect(performance.now() - startedMs).toBeLessThan(5_000);
  });

  test.each(["AAAAAAA", "AAAA*AAA", "=AAA", "AAAAAAE=\n", "AA=A", "AAAAAAEB===="])("text %j is refused", (text) => {
    expect(() => requestMessage(Buffer.from(text), true)).toThrow(/gRPC-web/);
  });

  test("fuzz: any bytes are one frame, or refused", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.uint8Array({ maxLength: 40 }).map((message) => frame(message)),
      fc.base64String().map((text) => Buffer.from(text)),
    );
    const isRight = (body: Uint8Array, isText: boolean): boolean => {
      let message: Uint8Array;
      try {
        message = requestMessage(body, isText);
      } catch (error) {
        return error instanceof EngineError && error.code === "bad_request_body";
      }
      const [again, got] = [frame(message, isText), Buffer.from(body)];
      const decoded = (bytes: Buffer) => (isText ? Buffer.from(bytes.toString(), "base64") : bytes);
      return decoded(again).equals(decoded(got));
    };
    fc.assert(fc.property(bytes, fc.boolean(), isRight), { numRuns: 10_000 });
  });
});

describe("trailers", () => {
  const text = (failure?: Parameters<typeof trailerFrame>[0]) => Buffer.concat(trailerFrame(failure, false));

  test("say how the call ended", () => {
    const ok = text();
    expect([ok[0], ok.readUInt32BE(1), ok.subarray(5).toString()]).toEqual([0x80, 16, "grpc-status: 0\r\n"]);
  });

  test("hold nothing that would be another trailer", () => {
    const metadata = { "x-bad": "a\r\ngrpc-status: 0", "x-good": "1", "grpc-status": "0", "bad name": "x" };
    const lines = text({ status: "NOT_FOUND", message: "no\r\ngrpc-status: 0\r\n ü \ud800", metadata })
      .subarray(5)
      .toString("latin1")
      .split("\r\n");
    expect(lines).toEqual([
      "x-good: 1",
      "grpc-status: 5",
      "grpc-message: no%0D%0Agrpc-status%3A%200%0D%0A%20%C3%BC%20%EF%BF%BD",
      "",
    ]);
  });
});
