import { afterEach, describe, expect, test } from "vitest";
import { EngineError, fromErrorRecord, messageOf, publicText, toErrorRecord } from "../../src/core/errors.ts";
import { keepPathsPrivate } from "../../src/core/private-paths.ts";
import { JobFailure } from "../../src/fabric/handler.ts";
import { failureOf } from "../../src/fabric/runner-failure.ts";
import { asEngineError, errorResponse } from "../../src/server/error-response.ts";

afterEach(() => keepPathsPrivate([]));

describe("an error whose message names one", () => {
  const text = 'IO Error: Cannot open file "/private/home-of-engine/data/a/t/x.tlm"';

  test("keeps its code and its details, and its message for the log", () => {
    keepPathsPrivate(["/private/home-of-engine"]);
    for (const code of ["query_failed", "invalid_query", "internal", "insufficient_storage"] as const) {
      const error = new EngineError(code, text, { line: 3, headers: { "Retry-After": "1" } });
      expect([error.message, String(error.stack), JSON.stringify(error.details)].join(" ")).not.toContain(
        "home-of-engine",
      );
      expect([messageOf(error), error.withheld]).toEqual([text, text]);
      const { status, headers, body } = errorResponse(asEngineError(error, "r-7"), "r-7");
      expect([status, headers["Retry-After"]]).toEqual([error.status, "1"]);
      expect(typeof body === "string" && JSON.parse(body)).toEqual({
        error: {
          code,
          message: "unexpected failure; the log has it under request r-7",
          request_id: "r-7",
          line: 3,
        },
      });
    }
  });

  test("loses it when it comes back from a process that keeps nothing back", () => {
    const record = toErrorRecord(new EngineError("query_failed", text));
    expect(record.message).toBe(text);
    keepPathsPrivate(["/private/home-of-engine"]);
    expect(fromErrorRecord(record)).toMatchObject({ code: "query_failed", withheld: text });
    expect(fromErrorRecord(record).message).not.toContain("home-of-engine");
  });

  test("says no more of it in a job that it fails, or in a message that is built of it", () => {
    keepPathsPrivate(["/private/home-of-engine"]);
    for (const error of [new Error(text), new EngineError("query_failed", text), new JobFailure({ error: text })]) {
      expect(failureOf(error).error).toBe("unexpected failure; the log of the server says more");
      expect(new EngineError("unavailable", `try later: ${messageOf(error)}`).message).not.toContain("home-of-engine");
    }
    expect(publicText(`lost: ${text}`)).not.toContain("home-of-engine");
    expect(publicText("lost: it ended")).toBe("lost: it ended");
  });

  test("is another one's own where nothing is private", () => {
    const error = new EngineError("query_failed", text);
    expect([error.message, "withheld" in error]).toEqual([text, false]);
  });
});
