import { describe, expect, it } from "vitest";
import { z } from "zod";
import { failureOf } from "./runner-failure.ts";
import { readPayload } from "./job-payload.ts";

const schema = z.strictObject({ table: z.string(), budgets: z.strictObject({ rows: z.int().optional() }).default({}) });

describe("the payload of a job", () => {
  const failed = (payload: unknown): unknown => {
    try {
      return readPayload(schema, { payload });
    } catch (error) {
      return failureOf(error);
    }
  };

  it("of an earlier version has what came later by default", () => {
    expect(readPayload(schema, { payload: { table: "t" } })).toEqual({ table: "t", budgets: {} });
  });

  it("of a newer version is left for a server of that version, which comes by within seconds", () => {
    const error = expect.stringMatching(
      /does not know budgets\.seconds, except of the payload: a newer one runs the job/,
    );
    expect(failed({ table: "t", except: "x", budgets: { seconds: 1 } })).toEqual({
      error,
      retryable: true,
      retryAfterMs: 15_000,
    });
  });

  it("that is wrong is wrong for ever", () => {
    expect(failed({ table: 1, except: "x" })).toMatchObject({ retryable: false });
    expect(failed("text")).toMatchObject({ retryable: false });
  });
});
